// A shuffled order that is computed, not stored.
#pragma once

#include <cstdint>

namespace talweg {

// A bijection of [0, n), chosen by a key: a Feistel network on the smallest power of two that holds n, applied again
// while it leads outside (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t encrypt(uint64_t x) const;

  uint64_t n_, key_;
  unsigned right_bits_;
  uint64_t left_mask_, right_mask_;
};

}  // namespace talweg
