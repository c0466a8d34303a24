// The keys that are touched most, from a sample, in a fixed number of counters: Misra and Gries, "Finding repeated
// elements" (1982), in the form that makes room for many at once (Anderson et al., "A high-performance algorithm for
// identifying frequent items in data streams", IMC 2017). A count is too low by at most 2 / kCounters of the sample, so
// a key that makes up more than that is never lost. The same touches give the same sample. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace talweg {

class HotKeys {
 public:
  static constexpr size_t kCounters = 256;
  // One key in so many is sampled, at gaps that vary: lists have a structure, and a fixed gap would follow it.
  static constexpr uint64_t kMeanGap = 64;

  // Takes its sample of the touched keys.
  void sample(std::span<const uint64_t> keys) {
    size_t at = gap_;
    for (; at < keys.size(); at += gap_) {
      count(keys[at]);
      gap_ = next_gap();
    }
    gap_ = at - keys.size();
  }

  // The hottest first, each with an estimate of its touches that errs low; of equals the smaller key first.
  std::vector<std::pair<uint64_t, uint64_t>> hottest(size_t n) const;

  size_t bytes() const { return counters_.capacity() * sizeof(Counter) + counts_.capacity() * sizeof(uint64_t); }

 private:
  static constexpr size_t kSlots = 2 * kCounters;  // open addressing with linear probing
  struct Counter {
    uint64_t key;
    uint64_t count;  // 0: the slot is free
  };

  uint64_t next_gap();
  void count(uint64_t key);
  void make_room();
  Counter& find(uint64_t key);

  uint64_t gap_ = 0;    // how far the next sampled key is
  uint64_t drawn_ = 0;  // gaps so far
  size_t used_ = 0;
  std::vector<Counter> counters_;  // none until the first sample
  std::vector<uint64_t> counts_;   // scratch
};

}  // namespace talweg
