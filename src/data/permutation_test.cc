#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace talweg {
namespace {

TEST(Permutation, is_a_bijection_for_every_size) {
  for (uint64_t n = 1; n < 300; ++n) {
    const Permutation order(n, n * 7);
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      ASSERT_LT(order(i), n);
      ASSERT_FALSE(seen[order(i)]);
      seen[order(i)] = true;
    }
  }
}

TEST(Permutation, moves_rows_far_and_without_pattern) {
  constexpr uint64_t kRows = 10'000;
  const Permutation order(kRows, 1);
  double distance = 0;
  uint64_t rising = 0;
  for (uint64_t i = 0; i + 1 < kRows; ++i) {
    distance += std::abs(static_cast<double>(order(i)) - static_cast<double>(i)) / kRows;
    rising += order(i) < order(i + 1) ? 1 : 0;
  }
  // A uniform permutation moves a row by a third of the length, and rises at every second step.
  EXPECT_NEAR(distance / kRows, 1.0 / 3, 0.02);
  EXPECT_NEAR(static_cast<double>(rising) / kRows, 0.5, 0.02);
}

}  // namespace
}  // namespace talweg
