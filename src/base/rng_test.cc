#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

namespace talweg {
namespace {

constexpr int kDraws = 200'000;

// Random123's known answers for philox4x32 with 10 rounds: counter words 0-1 are our counter, 2-3 the stream, the key
// is our seed.
TEST(Rng, gives_the_published_philox_values) {
  struct Known {
    uint64_t seed, stream, counter, first, second;
  };
  const Known answers[] = {
      {0, 0, 0, 0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c},
      {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0x41c83b0e408f276d, 0x6d5451fda20bc7c6},
      {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, 0x94fdccebd16cfe09, 0x24126ea15001e420},
  };
  for (const Known& known : answers) {
    Rng rng(known.seed, known.stream);
    rng.seek(known.counter);
    EXPECT_EQ(rng.next(), known.first);
    EXPECT_EQ(rng.next(), known.second);
  }
}

TEST(Rng, a_draw_can_be_reproduced_without_those_before_it) {
  Rng one(42, 7);
  std::vector<uint64_t> draws(100);
  for (uint64_t& draw : draws) draw = one.next();
  for (const size_t block : {0, 1, 17, 49}) {
    Rng other(42, 7);
    other.next();  // half a block drawn before the seek must not be seen after it
    other.seek(block);
    EXPECT_EQ(other.next(), draws[2 * block]);
    EXPECT_EQ(other.next(), draws[2 * block + 1]);
  }
}

TEST(Rng, neighbouring_seeds_and_streams_have_nothing_in_common) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) {
      Rng rng(seed, stream);
      for (int i = 0; i < 100; ++i) seen.insert(rng.next());
    }
  }
  EXPECT_EQ(seen.size(), 6400u);

  Rng a(1, 0), b(1, 1);
  int64_t equal_bits = 0;
  for (int i = 0; i < 10'000; ++i) equal_bits += std::popcount(~(a.next() ^ b.next()));
  EXPECT_NEAR(static_cast<double>(equal_bits) / 640'000, 0.5, 0.005);
}

TEST(Rng, below_stays_below_and_reaches_all) {
  Rng rng(3);
  std::vector<int> seen(7);
  for (int i = 0; i < 70'000; ++i) ++seen.at(rng.below(7));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(rng.below(1), 0u);
  EXPECT_EQ(scale_to(~uint64_t{0}, ~uint64_t{0}), ~uint64_t{0} - 1);
  EXPECT_EQ(scale_to(0, 5), 0u);
  EXPECT_EQ(scale_to(~uint64_t{0}, 5), 4u);
}

TEST(Rng, uniform_draws_fill_the_unit_interval) {
  Rng rng(4);
  double sum = 0, squares = 0, least = 1, most = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u, squares += u * u, least = std::min(least, u), most = std::max(most, u);
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.005);
  EXPECT_LT(least, 0.001);
  EXPECT_GT(most, 0.999);
}

TEST(Rng, normal_draws_have_the_moments_of_the_normal_distribution) {
  Rng rng(5);
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x, squares += x * x, cubes += x * x * x, fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.02);
  EXPECT_NEAR(cubes / kDraws, 0.0, 0.05);
  EXPECT_NEAR(fourths / kDraws, 3.0, 0.1);
}

TEST(Rng, lognormal_draws_have_one_as_their_median) {
  Rng rng(6);
  int above = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.lognormal(0.7);
    ASSERT_GT(x, 0.0);
    above += x > 1.0;
  }
  EXPECT_NEAR(above, kDraws / 2, kDraws / 100);
  EXPECT_EQ(rng.lognormal(0), 1.0);
}

// The first outputs of SplitMix64 from seed 0, whose state grows by the constant that mix64 adds.
TEST(Rng, mix64_is_the_step_of_splitmix64) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15), 0x6e789e6aa1b965f4u);
}

TEST(Rng, serves_the_standard_algorithms) {
  std::vector<int> values(100);
  for (int i = 0; i < 100; ++i) values[static_cast<size_t>(i)] = i;
  const std::vector<int> sorted = values;
  std::shuffle(values.begin(), values.end(), Rng(9));
  EXPECT_NE(values, sorted);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, sorted);
}

}  // namespace
}  // namespace talweg
