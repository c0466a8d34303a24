// Which keys of a sparse table get a row, when a row goes, and how much memory all may take.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "base/time.h"

namespace talweg {

struct RowPolicy {
  uint32_t admit_count = 1;
  double admit_probability = 1;
  uint64_t admit_memory = uint64_t{16} << 20;
  Duration expire_after = {};
  uint64_t max_bytes = 0;

  bool operator==(const RowPolicy&) const = default;
  bool admits_all() const { return admit_count <= 1 && admit_probability >= 1; }

  template <class Fields>
  void fields(Fields& f) {
    f("admit_count", admit_count, "a key gets a row when it is touched this often; 1: at once", between(1, 255));
    f("admit_probability", admit_probability, "and then at each touch with this probability", between(0, 1));
    f("admit_memory", admit_memory, "bytes in which touches of keys without a row are counted, on each shard",
      between(1 << 10, 1ULL << 40));
    f("expire_after", expire_after, "a row goes when it was not touched for this long; 0s: never");
    f("max_bytes", max_bytes, "what the table may take on each shard; past it new keys are refused; 0: no limit",
      at_least(0));
  }
};

}  // namespace talweg
