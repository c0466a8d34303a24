#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace talweg {
namespace {

std::vector<uint64_t> rows_of(const Sampler& sampler, uint64_t epoch, uint64_t step, uint32_t worker) {
  std::vector<uint64_t> rows;
  sampler.rows_of(epoch, step, worker, &rows);
  return rows;
}

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

TEST(Sampler, every_row_is_taken_exactly_once_per_epoch) {
  for (const uint64_t n : {1, 2, 3, 16, 17, 100, 1000, 1025}) {
    for (const uint64_t batch : {1, 3, 16, 100, 5000}) {
      for (const uint32_t workers : {1, 2, 3, 7, 40}) {
        for (const auto partition : {Partition::kContiguous, Partition::kRoundRobin}) {
          const Sampler sampler(n, batch, workers, n * batch, partition);
          std::vector<uint64_t> all, rows;
          for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
            for (uint32_t worker = 0; worker < workers; ++worker) {
              sampler.rows_of(3, step, worker, &rows);
              all.insert(all.end(), rows.begin(), rows.end());
            }
          }
          std::sort(all.begin(), all.end());
          std::vector<uint64_t> expected(n);
          std::iota(expected.begin(), expected.end(), 0);
          ASSERT_EQ(all, expected) << n << " rows, batch " << batch << ", workers " << workers;
        }
      }
    }
  }
}

TEST(Sampler, the_rows_of_a_step_do_not_depend_on_the_number_of_workers) {
  const Sampler alone(1000, 64, 1, 5);
  const Sampler shared(1000, 64, 3, 5);
  for (uint64_t step = 0; step < alone.steps_per_epoch(); ++step) {
    std::vector<uint64_t> joined;
    for (uint32_t worker = 0; worker < 3; ++worker) {
      const auto part = rows_of(shared, 2, step, worker);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, rows_of(alone, 2, step, 0)) << "contiguous slices, in order";
    EXPECT_EQ(joined.size(), alone.batch_rows(step));
  }
}

TEST(Sampler, shares_of_a_batch_differ_by_at_most_one_row) {
  for (const auto partition : {Partition::kContiguous, Partition::kRoundRobin}) {
    const Sampler sampler(100, 10, 4, std::nullopt, partition);
    for (uint32_t worker = 0; worker < 4; ++worker) {
      EXPECT_EQ(rows_of(sampler, 0, 0, worker).size(), worker < 2 ? 3u : 2u);
    }
  }
}

TEST(Sampler, without_a_seed_the_order_is_that_of_the_data) {
  const Sampler contiguous(10, 6, 2, std::nullopt);
  EXPECT_EQ(rows_of(contiguous, 0, 0, 1), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(rows_of(contiguous, 9, 1, 0), (std::vector<uint64_t>{6, 7}));
  const Sampler round_robin(10, 6, 2, std::nullopt, Partition::kRoundRobin);
  EXPECT_EQ(rows_of(round_robin, 0, 0, 1), (std::vector<uint64_t>{1, 3, 5}));
}

TEST(Sampler, seed_and_epoch_choose_the_order_and_nothing_else_does) {
  const Sampler sampler(1000, 1000, 1, 5), same(1000, 1000, 1, 5), other(1000, 1000, 1, 6);
  EXPECT_EQ(rows_of(sampler, 1, 0, 0), rows_of(same, 1, 0, 0));
  EXPECT_NE(rows_of(sampler, 1, 0, 0), rows_of(sampler, 2, 0, 0));
  EXPECT_NE(rows_of(sampler, 1, 0, 0), rows_of(other, 1, 0, 0));
}

TEST(Sampler, an_epoch_without_rows_has_no_steps) { EXPECT_EQ(Sampler(0, 16, 2, 1).steps_per_epoch(), 0u); }

}  // namespace
}  // namespace talweg
