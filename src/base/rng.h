// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// A value depends only on (seed, stream, counter), so every node can reproduce any other's draws without having made
// the earlier ones, and thread counts do not change a generated data set.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace talweg {

// A strong 64-bit mixing step (the finaliser of SplitMix64): hashes keys, derives seeds.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Maps a uniform 64-bit value onto [0, n) without a division; the bias is below n / 2^64.
constexpr uint64_t scale_to(uint64_t uniform, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(uniform) * n) >> 64);
}

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // Not thread-safe; give each thread its own stream.
  uint64_t next() {
    if (used_ == 2) {
      block_ = block(counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  void seek(uint64_t counter) {
    counter_ = counter;
    used_ = 2;
  }

  uint64_t below(uint64_t n) { return scale_to(next(), n); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  // A positive factor whose logarithm has mean 0 and standard deviation sigma.
  double lognormal(double sigma) { return std::exp(sigma * normal()); }

  // For <algorithm>.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return next(); }

 private:
  std::array<uint64_t, 2> block(uint64_t counter) const {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream_), c3 = static_cast<uint32_t>(stream_ >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1), c3 = static_cast<uint32_t>(p0), c0 = n0, c2 = n2;
      k0 += 0x9E3779B9, k1 += 0xBB67AE85;
    }
    return {c0 | uint64_t{c1} << 32, c2 | uint64_t{c3} << 32};
  }

  uint64_t seed_, stream_, counter_ = 0;
  std::array<uint64_t, 2> block_{};
  unsigned used_ = 2;
};

}  // namespace talweg
