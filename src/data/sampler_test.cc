#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace talweg {
namespace {

std::vector<uint64_t> rows_of(const Sampler& sampler, uint64_t epoch, uint64_t step, uint32_t worker) {
  std::vector<uint64_t> rows;
  sampler.rows_of(epoch, step, worker, &rows);
  return rows;
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

constexpr Partition kFixedShares[] = {Partition::kHash, Partition::kOverlapping, Partition::kByLabel,
                                      Partition::kDirichlet};

// Ten labels in no order of their own.
std::vector<float> labels_of(uint64_t rows) {
  std::vector<float> labels(rows);
  for (uint64_t i = 0; i < rows; ++i) labels[i] = static_cast<float>(i * 7 % 10);
  return labels;
}

// How often each row is taken in an epoch; on the way, that the steps' sizes add up.
std::vector<uint64_t> times_taken(const Sampler& sampler, uint64_t rows, uint32_t workers, uint64_t epoch = 3) {
  std::vector<uint64_t> times(rows);
  for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    uint64_t count = 0;
    for (uint32_t worker = 0; worker < workers; ++worker) {
      for (const uint64_t row : rows_of(sampler, epoch, step, worker)) {
        ++times[row];
        ++count;
      }
    }
    EXPECT_EQ(count, sampler.batch_rows(step));
    EXPECT_GT(count, 0u) << "no step is for nothing";
  }
  return times;
}

std::vector<std::vector<uint64_t>> shares_of(const Sampler& sampler, uint32_t workers, uint64_t epoch) {
  std::vector<std::vector<uint64_t>> shares(workers);
  for (uint32_t worker = 0; worker < workers; ++worker) {
    for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      const auto rows = rows_of(sampler, epoch, step, worker);
      shares[worker].insert(shares[worker].end(), rows.begin(), rows.end());
    }
  }
  return shares;
}

// Of each worker: the part of its rows that its most frequent label has, averaged.
double skew_of(const SamplerOptions& options) {
  double sum = 0;
  for (const auto& share : shares_of(Sampler(options), options.workers, 0)) {
    std::map<float, uint64_t> counts;
    uint64_t most = 0;
    for (const uint64_t row : share) most = std::max(most, ++counts[options.labels[row]]);
    sum += static_cast<double>(most) / static_cast<double>(std::max<size_t>(1, share.size()));
  }
  return sum / options.workers;
}

TEST(Sampler, with_fixed_shares_too_every_row_is_taken_exactly_once_per_epoch) {
  for (const uint64_t n : {1, 2, 3, 17, 100, 1025}) {
    const std::vector<float> labels = labels_of(n);
    for (const uint64_t batch : {1, 3, 16, 100, 5000}) {
      for (uint32_t workers = 1; workers <= 7; ++workers) {
        for (const Partition partition : kFixedShares) {
          const Sampler sampler({.rows = n,
                                 .batch = batch,
                                 .workers = workers,
                                 .seed = n + batch,
                                 .partition = partition,
                                 .alpha = 0.3,
                                 .labels = labels});
          ASSERT_EQ(times_taken(sampler, n, workers), std::vector<uint64_t>(n, 1))
              << n << " rows, batch " << batch << ", workers " << workers << ", partition "
              << static_cast<int>(partition);
        }
      }
    }
  }
}

TEST(Sampler, a_worker_keeps_its_rows_from_epoch_to_epoch_and_shuffles_them) {
  const std::vector<float> labels = labels_of(500);
  for (const Partition partition : kFixedShares) {
    const Sampler sampler(
        {.rows = 500, .batch = 60, .workers = 3, .partition = partition, .overlap = 0.5, .labels = labels});
    auto first = shares_of(sampler, 3, 0), second = shares_of(sampler, 3, 1);
    EXPECT_NE(first, second);
    for (auto* shares : {&first, &second}) {
      for (auto& share : *shares) std::sort(share.begin(), share.end());
    }
    EXPECT_EQ(first, second);
  }
}

TEST(Sampler, full_steps_with_fixed_shares_have_the_batch_size) {
  const Sampler sampler({.rows = 1000, .batch = 100, .workers = 7, .partition = Partition::kOverlapping});
  EXPECT_EQ(sampler.batch_rows(0), 100u);
  EXPECT_EQ(sampler.steps_per_epoch(), 11u) << "143 rows of a worker, 14 or 15 at a step";
  EXPECT_EQ(rows_of(sampler, 0, 0, 0).size(), 15u);
  EXPECT_EQ(rows_of(sampler, 0, 0, 6).size(), 14u);
}

TEST(Sampler, a_worker_whose_rows_have_run_out_takes_none) {
  // One label: with a small alpha one worker holds nearly all of it.
  const std::vector<float> labels(1000, 1.0f);
  const Sampler sampler(
      {.rows = 1000, .batch = 40, .workers = 4, .partition = Partition::kDirichlet, .alpha = 0.01, .labels = labels});
  EXPECT_GT(sampler.steps_per_epoch(), 90u);
  uint32_t idle = 0;
  for (uint32_t worker = 0; worker < 4; ++worker) {
    idle += rows_of(sampler, 0, sampler.steps_per_epoch() - 1, worker).empty() ? 1 : 0;
  }
  EXPECT_EQ(idle, 3u);
}

TEST(Sampler, shares_by_hash_are_about_equal_and_spread_over_the_file) {
  const Sampler sampler({.rows = 10'000, .batch = 100, .workers = 4, .partition = Partition::kHash});
  for (const auto& share : shares_of(sampler, 4, 0)) {
    EXPECT_NEAR(static_cast<double>(share.size()), 2500, 200);
    const auto early = std::count_if(share.begin(), share.end(), [](uint64_t row) { return row < 5000; });
    EXPECT_NEAR(static_cast<double>(early), 1250, 150);
  }
}

TEST(Sampler, by_label_a_worker_sees_few_labels) {
  const std::vector<float> labels = labels_of(1000);
  const Sampler sampler({.rows = 1000, .batch = 100, .workers = 5, .partition = Partition::kByLabel, .labels = labels});
  const auto shares = shares_of(sampler, 5, 0);
  for (uint32_t worker = 0; worker < 5; ++worker) {
    EXPECT_EQ(shares[worker].size(), 200u);
    for (const uint64_t row : shares[worker]) EXPECT_EQ(static_cast<uint32_t>(labels[row]) / 2, worker);
  }
}

TEST(Sampler, the_smaller_alpha_the_more_skewed_the_labels) {
  const std::vector<float> labels = labels_of(5000);
  SamplerOptions options{
      .rows = 5000, .batch = 500, .workers = 5, .partition = Partition::kDirichlet, .labels = labels};
  options.alpha = 1000;
  EXPECT_NEAR(skew_of(options), 0.1, 0.02) << "all workers alike";
  options.alpha = 0.1;
  const double small = skew_of(options);
  EXPECT_GT(small, 0.25);
  options.alpha = 1e-6;
  EXPECT_GT(skew_of(options), small) << "each label at one worker; nothing underflows";
  options.alpha = 0.1;
  options.seed = 2;
  EXPECT_NE(skew_of(options), small) << "the seed makes the draw";
}

TEST(Sampler, a_part_of_a_label_is_no_stretch_of_the_file) {
  const std::vector<float> labels(1000, 1.0f);
  const Sampler sampler({.rows = 1000,
                         .batch = 100,
                         .workers = 2,
                         .shuffle = false,
                         .partition = Partition::kDirichlet,
                         .alpha = 10,
                         .labels = labels});
  for (const auto& share : shares_of(sampler, 2, 0)) EXPECT_GT(share.back() - share.front(), 950u);
}

TEST(Sampler, overlapping_takes_exactly_the_front_of_each_slice_twice) {
  constexpr uint64_t kRows = 103;
  for (uint32_t workers = 1; workers <= 7; ++workers) {
    for (const double overlap : {0.0, 0.25, 0.5, 1.0}) {
      const Sampler sampler({.rows = kRows,
                             .batch = 10,
                             .workers = workers,
                             .shuffle = false,
                             .partition = Partition::kOverlapping,
                             .overlap = overlap});
      std::vector<uint64_t> expected;
      for (uint32_t worker = 0; worker < workers; ++worker) {
        const uint64_t size = kRows / workers + (worker < kRows % workers ? 1 : 0);
        const uint64_t lent = workers == 1 ? 0 : static_cast<uint64_t>(overlap * static_cast<double>(size));
        expected.insert(expected.end(), lent, 2);
        expected.insert(expected.end(), size - lent, 1);
      }
      EXPECT_EQ(times_taken(sampler, kRows, workers), expected) << workers << " workers, overlap " << overlap;
    }
  }
}

TEST(Sampler, overlapping_rows_are_the_neighbours_the_last_workers_the_first) {
  const Sampler sampler(
      {.rows = 10, .batch = 100, .workers = 2, .shuffle = false, .partition = Partition::kOverlapping, .overlap = 0.4});
  EXPECT_EQ(rows_of(sampler, 0, 0, 0), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(rows_of(sampler, 0, 0, 1), (std::vector<uint64_t>{5, 6, 7, 8, 9, 0, 1}));
}

TEST(Sampler, another_batch_size_leaves_the_shares_as_they_are) {
  const std::vector<float> labels = labels_of(300);
  for (const Partition partition : {Partition::kContiguous, Partition::kDirichlet}) {
    SamplerOptions options{.rows = 300, .batch = 10, .workers = 3, .partition = partition, .labels = labels};
    const Sampler grown = Sampler(options).with_batch(50);
    options.batch = 50;
    const Sampler fresh(options);
    ASSERT_EQ(grown.steps_per_epoch(), fresh.steps_per_epoch());
    EXPECT_EQ(shares_of(grown, 3, 1), shares_of(fresh, 3, 1));
  }
}

}  // namespace
}  // namespace talweg
