#include "data/permutation.h"

#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace talweg {
namespace {

constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(mix64(key)) {
  const unsigned bits = n > 1 ? static_cast<unsigned>(std::bit_width(n - 1)) : 0;
  right_bits_ = bits - bits / 2;
  right_mask_ = (uint64_t{1} << right_bits_) - 1;
  left_mask_ = (uint64_t{1} << (bits / 2)) - 1;
}

// Halves of unequal width do not swap places; each round changes one by a function of the other, which can be undone.
uint64_t Permutation::encrypt(uint64_t x) const {
  uint64_t left = x >> right_bits_, right = x & right_mask_;
  for (uint64_t round = 0; round < kRounds; round += 2) {
    right ^= mix64(left + key_ + (round << 56)) & right_mask_;
    left ^= mix64(right + key_ + ((round + 1) << 56)) & left_mask_;
  }
  return left << right_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  CHECK(i < n_);
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

}  // namespace talweg
