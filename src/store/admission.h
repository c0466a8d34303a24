// Decides when a key that has no row gets one, in memory that does not grow. Touches are counted in a count-min sketch
// with conservative update (Estan and Varghese, "New directions in traffic measurement and accounting", SIGCOMM 2002).
// Counts are never too small between two halvings, and too large only where rare keys share all their counters. Each
// counter is halved from time to time, so that keys that come once and never again do not fill the sketch: a key must
// come admit_count times while about a quarter as many touches pass as there are counters.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "store/row_policy.h"
#include "store/zeroed_array.h"

namespace talweg {

class Admission {
 public:
  explicit Admission(const RowPolicy& policy);

  // Whether every key is admitted at once; then nobody need ask.
  bool open() const { return count_ == 1 && probability_ >= 1; }
  // Counts one touch of a key without a row, and says whether it gets one now.
  bool admit(uint64_t key);
  // Asks for the memory that `admit` will need.
  void prefetch(uint64_t key) const;

  size_t bytes() const { return blocks_.bytes(); }

 private:
  static constexpr size_t kCountersPerKey = 4;
  // After so many counted touches the next block is halved: of the counters of a block one in four then grows between
  // two halvings, if every key comes once.
  static constexpr uint64_t kTouchesPerHalving = 16;

  // All counters of a key lie in one cache line.
  struct Block {
    std::array<uint8_t, 64> counters;
  };

  static uint64_t hash(uint64_t key);
  bool count(uint64_t key);
  bool draw(uint64_t key);
  void halve_next_block();

  uint32_t count_;
  double probability_;
  uint64_t touches_ = 0;
  size_t hand_ = 0;  // the block that is halved next
  ZeroedArray<Block> blocks_;
};

}  // namespace talweg
