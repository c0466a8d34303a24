#include "store/table_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/rng.h"

namespace talweg {
namespace {

constexpr uint64_t kSize = 2;

TableSpec spec_of(Sync sync, const OptimizerConfig& optimizer) {
  return {.id = 1,
          .name = "w",
          .sparse = false,
          .size = kSize,
          .type = ValueType::kFloat64,
          .optimizer = optimizer,
          .sync = sync};
}

// A table and its clock. Gradients are of all its values at once.
struct Clocked {
  explicit Clocked(const TableSpec& spec, uint32_t workers, uint32_t shards = 1)
      : table(std::move(*Table::make(spec, 0, 1, OptimizerRegistry::standard()))),
        clock(TableClock::make(*table, workers, shards)) {}
  Clocked(Sync sync, uint32_t workers, const OptimizerConfig& optimizer = {.lr = 1})
      : Clocked(spec_of(sync, optimizer), workers) {}

  bool push(int64_t step, uint32_t rank, const std::vector<double>& gradients) {
    EXPECT_EQ(clock->judge(step, rank), Arrival::kWanted) << "step " << step << ", rank " << rank;
    Contribution contribution;
    contribution.body = Buffer(gradients.size() * sizeof(double));
    std::memcpy(contribution.body.data(), gradients.data(), contribution.body.size());
    contribution.range = {0, gradients.size()};
    return clock->add(step, rank, std::move(contribution));
  }
  bool push(int64_t step, uint32_t rank, double gradient) {
    return push(step, rank, std::vector<double>(kSize, gradient));
  }
  // Only the first value moves, so the gradient is the distance.
  bool push_first(int64_t step, uint32_t rank, double gradient) {
    return push(step, rank, std::vector<double>{gradient, 0});
  }
  std::vector<double> weights() const {
    const Bytes bytes = table->dense()->view({0, table->dense()->range().size()});
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  double weight() const { return weights()[0]; }

  std::unique_ptr<Table> table;
  std::unique_ptr<TableClock> clock;
};

using Ranks = std::vector<uint32_t>;

// --- StepClock

TEST(StepClock, a_step_has_the_same_bits_for_every_order_of_arrival) {
  const double gradients[] = {1e16, 1, -1e16, 0.1};
  const double in_rank_order = ((gradients[0] + gradients[1]) + gradients[2]) + gradients[3];
  ASSERT_NE(in_rank_order, ((gradients[0] + gradients[2]) + gradients[1]) + gradients[3]);
  Ranks order = {0, 1, 2, 3};
  do {
    Clocked it(Sync::bsp(), 4);
    for (const uint32_t rank : order) it.push(0, rank, gradients[rank]);
    EXPECT_EQ(it.weight(), -in_rank_order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(StepClock, a_step_is_over_when_all_have_pushed_it_and_not_before) {
  Clocked it(Sync::bsp(), 3);
  EXPECT_TRUE(it.clock->may_pull(0, 2));
  EXPECT_FALSE(it.clock->may_pull(1, 2));
  EXPECT_FALSE(it.push(0, 2, 1));
  EXPECT_EQ(it.clock->held(), 1u) << "out of turn";
  EXPECT_FALSE(it.push(0, 0, 1));
  EXPECT_EQ(it.clock->missing(1), Ranks{1});
  EXPECT_EQ(it.clock->settled(), 0);
  EXPECT_EQ(it.weight(), 0);
  EXPECT_TRUE(it.push(0, 1, 1));
  EXPECT_EQ(it.weight(), -3);
  EXPECT_EQ(it.clock->settled(), 1);
  EXPECT_EQ(it.clock->held(), 0u);
  EXPECT_TRUE(it.clock->may_pull(1, 0));
  EXPECT_FALSE(it.clock->may_pull(2, 0));
  EXPECT_EQ(it.clock->missing(2), (Ranks{0, 1, 2}));
}

TEST(StepClock, what_comes_twice_or_too_early_is_told_from_what_is_wanted) {
  Clocked it(Sync::bsp(), 2);
  EXPECT_EQ(it.clock->judge(limits::kStepsAhead + 1, 0), Arrival::kTooEarly);
  EXPECT_EQ(it.clock->judge(limits::kStepsAhead, 0), Arrival::kWanted);
  it.push(0, 0, 1);
  EXPECT_EQ(it.clock->judge(0, 0), Arrival::kRepeated);
  EXPECT_EQ(it.clock->judge(0, 1), Arrival::kWanted);
  it.push(0, 1, 1);
  EXPECT_EQ(it.clock->judge(0, 0), Arrival::kRepeated);
  EXPECT_EQ(it.clock->judge(0, 1), Arrival::kRepeated);
  for (int64_t step = 1; step < 200; ++step) {
    it.push(step, 0, 1);
    it.push(step, 1, 1);
  }
  for (int64_t step = 0; step < 200; ++step) EXPECT_EQ(it.clock->judge(step, 1), Arrival::kRepeated) << step;
}

TEST(StepClock, pushes_of_one_worker_may_overtake_each_other) {
  Clocked it(Sync::bsp(), 2);
  for (const int64_t step : {4, 2, 0, 1, 3}) it.push(step, 0, 1);
  EXPECT_EQ(it.clock->held(), 4u) << "that of step 0 is in the sum";
  for (const int64_t step : {3, 1, 4, 2}) EXPECT_FALSE(it.push(step, 1, 10));
  EXPECT_TRUE(it.push(0, 1, 10));
  EXPECT_EQ(it.clock->settled(), 5);
  EXPECT_EQ(it.weight(), -55);
  EXPECT_EQ(it.clock->meter().updates, 5u);
  EXPECT_EQ(it.clock->held(), 0u);
}

TEST(StepClock, weights_rest_for_a_worker_until_it_has_pushed_the_step) {
  Clocked it(Sync::bsp(), 2);
  it.push(0, 0, 1);
  EXPECT_FALSE(it.clock->rests_until_push(0, 0));
  EXPECT_TRUE(it.clock->rests_until_push(0, 1));
  EXPECT_FALSE(it.clock->rests_until_push(1, 1));
  Clocked backed(Sync::backup(1), 2);
  EXPECT_FALSE(backed.clock->rests_until_push(0, 1)) << "the step may end without it";
}

TEST(StepClock, with_backups_a_step_ends_without_the_slowest) {
  const double gradients[] = {1e16, 1, -1e16, 0.1};
  for (uint32_t slowest = 0; slowest < 4; ++slowest) {
    double sum = 0;
    Ranks order;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      if (rank == slowest) continue;
      sum += gradients[rank];
      order.push_back(rank);
    }
    do {
      Clocked it(Sync::backup(1), 4);
      EXPECT_FALSE(it.push(0, order[0], gradients[order[0]]));
      EXPECT_FALSE(it.push(0, order[1], gradients[order[1]]));
      EXPECT_EQ(it.weight(), 0);
      EXPECT_TRUE(it.push(0, order[2], gradients[order[2]]));
      EXPECT_EQ(it.weight(), -sum) << "not the sum in the order of ranks";
      EXPECT_EQ(it.clock->judge(0, slowest), Arrival::kLate);
      EXPECT_EQ(it.clock->judge(0, order[0]), Arrival::kRepeated);
      EXPECT_EQ(it.clock->judge(1, slowest), Arrival::kWanted);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(StepClock, pushes_for_the_next_step_count_when_it_begins) {
  Clocked it(Sync::backup(1), 3);
  it.push(1, 0, 10);
  it.push(1, 1, 10);
  it.push(0, 0, 1);
  EXPECT_TRUE(it.push(0, 1, 1));
  EXPECT_EQ(it.clock->settled(), 2) << "both steps had what they needed";
  EXPECT_EQ(it.weight(), -22);
  EXPECT_EQ(it.clock->meter().updates, 2u);
  EXPECT_EQ(it.clock->judge(0, 2), Arrival::kLate);
  EXPECT_EQ(it.clock->judge(1, 2), Arrival::kLate);
}

TEST(StepClock, a_late_push_is_late_though_a_younger_one_of_its_worker_was_taken) {
  Clocked it(Sync::backup(1), 3);
  it.push(1, 0, 1);
  it.push(0, 1, 1);
  it.push(0, 2, 1);
  EXPECT_EQ(it.clock->settled(), 1);
  EXPECT_EQ(it.clock->judge(0, 0), Arrival::kLate);
  EXPECT_EQ(it.clock->judge(1, 0), Arrival::kRepeated);
  it.push(1, 1, 1);
  EXPECT_EQ(it.clock->settled(), 2);
  EXPECT_EQ(it.clock->judge(0, 0), Arrival::kLate);
  EXPECT_EQ(it.clock->judge(1, 0), Arrival::kRepeated);
  EXPECT_EQ(it.clock->judge(1, 2), Arrival::kLate);
}

TEST(StepClock, a_worker_that_is_far_behind_is_late_at_every_step_it_missed) {
  Clocked it(Sync::backup(1), 2);
  for (int64_t step = 0; step < 100; ++step) it.push(step, 0, 1);
  for (int64_t step = 0; step < 100; ++step) EXPECT_EQ(it.clock->judge(step, 1), Arrival::kLate) << step;
  EXPECT_EQ(it.weight(), -100);
}

TEST(StepClock, a_step_has_the_rate_of_its_number) {
  const OptimizerConfig halving{.lr = 1,
                                .schedule = {.type = ScheduleType::kStep, .decay_steps = 1, .decay_rate = 0.5}};
  for (const uint32_t workers : {1u, 2u}) {
    Clocked it(Sync::bsp(), workers, halving);
    for (int64_t step = 0; step < 3; ++step) {
      for (uint32_t rank = 0; rank < workers; ++rank) it.push(step, rank, 4.0 / workers);
    }
    EXPECT_EQ(it.weight(), -4 - 2 - 1);
  }
}

// --- FreeClock: who may pull

TEST(FreeClock, under_ssp_a_worker_may_be_as_far_ahead_as_the_bound_and_no_further) {
  for (const int64_t bound : {0, 1, 3}) {
    Clocked it(Sync::ssp(bound), 2);
    for (int64_t step = 0; step <= bound; ++step) {
      ASSERT_TRUE(it.clock->may_pull(step, 0)) << step;
      it.clock->pulled(step, 0);
      EXPECT_EQ(it.clock->meter().widest_gap, step);
      it.push(step, 0, 1);
    }
    EXPECT_FALSE(it.clock->may_pull(bound + 1, 0));
    EXPECT_EQ(it.clock->missing(bound + 1), Ranks{1});
    EXPECT_EQ(it.clock->settled(), 0);
    EXPECT_TRUE(it.clock->may_pull(0, 1));
    it.push(0, 1, 1);
    EXPECT_TRUE(it.clock->may_pull(bound + 1, 0));
    EXPECT_EQ(it.clock->settled(), 1);
  }
}

TEST(FreeClock, under_asp_nobody_waits_for_another) {
  Clocked it(Sync::asp(), 2);
  for (int64_t step = 0; step < 1000; ++step) {
    ASSERT_TRUE(it.clock->may_pull(step, 0));
    it.clock->pulled(step, 0);
    it.push(step, 0, 1);
  }
  EXPECT_EQ(it.clock->meter().widest_gap, 999);
  EXPECT_EQ(it.clock->settled(), 0);
  EXPECT_EQ(it.weight(), -1000) << "a push is applied when it comes";
}

TEST(FreeClock, a_worker_always_sees_its_own_pushes) {
  Clocked it(Sync::asp(), 2);
  EXPECT_FALSE(it.clock->may_pull(1, 0));
  it.push(1, 0, 1);
  EXPECT_FALSE(it.clock->may_pull(2, 0)) << "the push of step 0 was overtaken and is still on its way";
  EXPECT_FALSE(it.clock->may_pull(1, 0));
  it.push(0, 0, 1);
  EXPECT_TRUE(it.clock->may_pull(2, 0));
  EXPECT_FALSE(it.clock->may_pull(3, 0));
}

TEST(FreeClock, pushes_of_one_worker_may_overtake_each_other_and_count_once) {
  Clocked it(Sync::ssp(2), 2);
  EXPECT_EQ(it.clock->judge(limits::kStepsAhead, 0), Arrival::kWanted);
  EXPECT_EQ(it.clock->judge(limits::kStepsAhead + 1, 0), Arrival::kTooEarly);
  for (const int64_t step : {3, 1, 4, 0, 2}) {
    it.push(step, 0, 1);
    EXPECT_EQ(it.clock->judge(step, 0), Arrival::kRepeated);
  }
  for (int64_t step = 0; step < 5; ++step) EXPECT_EQ(it.clock->judge(step, 0), Arrival::kRepeated);
  EXPECT_EQ(it.clock->judge(5, 0), Arrival::kWanted);
  EXPECT_EQ(it.clock->judge(5 + limits::kStepsAhead, 0), Arrival::kWanted);
  EXPECT_EQ(it.clock->judge(6 + limits::kStepsAhead, 0), Arrival::kTooEarly);
  EXPECT_EQ(it.clock->judge(0, 1), Arrival::kWanted) << "each worker has its own";
  EXPECT_EQ(it.weight(), -5);
}

TEST(FreeClock, only_a_worker_alone_finds_its_weights_at_rest) {
  EXPECT_TRUE(Clocked(Sync::asp(), 1).clock->rests_until_push(0, 0));
  EXPECT_FALSE(Clocked(Sync::asp(), 2).clock->rests_until_push(0, 0));
}

// --- FreeClock: staleness

std::vector<uint64_t> staleness_of(const TableClock& clock) {
  const auto& counts = clock.meter().staleness;
  size_t end = counts.size();
  while (end > 0 && counts[end - 1] == 0) --end;
  return {counts.begin(), counts.begin() + static_cast<ptrdiff_t>(end)};
}

TEST(FreeClock, staleness_counts_the_updates_between_a_pull_and_its_push) {
  Clocked it(Sync::asp(), 3);
  for (uint32_t rank = 0; rank < 3; ++rank) it.clock->pulled(0, rank);
  it.push(0, 0, 1);  // 0
  it.push(0, 1, 1);  // 1
  it.clock->pulled(1, 0);
  it.push(1, 0, 1);  // 0
  it.push(0, 2, 1);  // 3
  it.clock->pulled(1, 1);
  it.clock->pulled(1, 2);
  it.push(1, 2, 1);  // 0
  it.push(1, 1, 1);  // 1
  EXPECT_EQ(staleness_of(*it.clock), (std::vector<uint64_t>{3, 2, 0, 1}));
  EXPECT_EQ(it.clock->meter().updates, 6u);
}

TEST(FreeClock, a_push_without_a_pull_is_not_stale) {
  Clocked it(Sync::asp(), 2);
  for (int64_t step = 0; step < 10; ++step) it.push(step, 0, 1);
  it.push(0, 1, 1);
  EXPECT_EQ(staleness_of(*it.clock), (std::vector<uint64_t>{}));
  EXPECT_EQ(it.clock->meter().updates, 11u);
}

TEST(FreeClock, staleness_beyond_the_last_count_goes_into_it) {
  Clocked it(Sync::asp(), 2);
  it.clock->pulled(0, 1);
  for (int64_t step = 0; step < 500; ++step) {
    it.clock->pulled(step, 0);
    it.push(step, 0, 1);
  }
  it.push(0, 1, 1);
  EXPECT_EQ(it.clock->meter().staleness[0], 500u);
  EXPECT_EQ(it.clock->meter().staleness[SyncMeter::kStaleness - 1], 1u);
}

TEST(FreeClock, a_stale_push_counts_less_where_the_table_asks_for_it) {
  for (const bool by_staleness : {false, true}) {
    for (const int missed : {0, 1, 2, 4, 8}) {
      const OptimizerConfig halving{.lr = 1,
                                    .schedule = {.type = ScheduleType::kStep, .decay_steps = 1, .decay_rate = 0.5}};
      TableSpec spec = spec_of(Sync::asp(), halving);
      spec.rate_by_staleness = by_staleness;
      Clocked it(spec, 2);
      it.clock->pulled(0, 1);
      it.push(0, 1, 0.0);
      it.clock->pulled(1, 1);
      for (int64_t step = 0; step < missed; ++step) {
        it.clock->pulled(step, 0);
        it.push(step, 0, 0.0);
      }
      it.push(1, 1, 16);
      // Two workers: it missed missed / 2 updates for each. At step 1 the schedule is at a half.
      const double divided_by = by_staleness ? std::max(1.0, missed / 2.0) : 1;
      EXPECT_EQ(it.weight(), -16 * 0.5 / divided_by) << missed;
    }
  }
}

// --- FreeClock: bounded by value

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Workers that pull and push in a random order, and how far the weights truly get from what each computes with.
struct RandomWalk {
  RandomWalk(uint64_t seed, uint32_t workers, const OptimizerConfig& optimizer, double bound)
      : it(Sync::value(bound), workers, optimizer), rng(seed), computing(workers), steps(workers), pulled(workers) {}

  void pull(uint32_t rank) {
    it.clock->pulled(steps[rank], rank);
    pulled[rank] = it.weights();
    computing[rank] = true;
  }
  void push(uint32_t rank) {
    computing[rank] = false;  // from here on its weights may be far
    it.push(steps[rank]++, rank, std::vector<double>{rng.normal(), rng.normal()});
    held += it.clock->held() > 0 ? 1 : 0;
  }
  void turn() {
    const auto rank = static_cast<uint32_t>(rng.below(computing.size()));
    if (computing[rank]) {
      push(rank);
    } else if (it.clock->may_pull(steps[rank], rank)) {
      pull(rank);
    }
    for (uint32_t other = 0; other < computing.size(); ++other) {
      if (computing[other]) farthest = std::max(farthest, distance(it.weights(), pulled[other]));
    }
  }

  Clocked it;
  Rng rng;
  std::vector<bool> computing;
  std::vector<int64_t> steps;
  std::vector<std::vector<double>> pulled;
  double farthest = 0;
  int held = 0;
};

TEST(FreeClock, by_value_weights_never_get_further_than_the_distance_from_what_a_worker_computes_with) {
  constexpr double kBound = 0.75;
  for (const char* optimizer : {"sgd", "adagrad", "adam"}) {
    int held = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      RandomWalk walk(seed, 4, {.type = optimizer, .lr = 0.3}, kBound);
      for (int turn = 0; turn < 500; ++turn) walk.turn();
      EXPECT_LE(walk.farthest, kBound * (1 + 1e-12)) << optimizer << ", seed " << seed;
      EXPECT_GE(walk.farthest, kBound / 2) << "the bound was never near: the test shows nothing";
      EXPECT_GE(walk.it.clock->meter().farthest, walk.farthest * (1 - 1e-12)) << "the meter is a bound of the truth";
      EXPECT_LE(walk.it.clock->meter().farthest, kBound);
      held += walk.held;
    }
    EXPECT_GT(held, 0) << optimizer;
  }
}

TEST(FreeClock, by_value_every_push_is_applied_in_the_end) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomWalk walk(seed, 4, {.lr = 0.3}, 0.75);
    for (int turn = 0; turn < 300; ++turn) walk.turn();
    for (uint32_t rank = 0; rank < 4; ++rank) {
      if (walk.computing[rank]) walk.push(rank);
    }
    EXPECT_EQ(walk.it.clock->held(), 0u);
    const auto pushes = static_cast<uint64_t>(std::accumulate(walk.steps.begin(), walk.steps.end(), int64_t{0}));
    EXPECT_EQ(walk.it.clock->meter().updates, pushes);
    EXPECT_EQ(walk.it.clock->settled(), *std::min_element(walk.steps.begin(), walk.steps.end()));
    for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(walk.it.clock->may_pull(walk.steps[rank], rank));
  }
}

TEST(FreeClock, by_value_a_held_push_holds_those_behind_it_and_all_are_applied_in_order) {
  const OptimizerConfig adagrad{.type = "adagrad", .lr = 0.1};  // other bits in another order
  Clocked it(Sync::value(0.15), 3, adagrad);
  for (uint32_t rank = 0; rank < 3; ++rank) it.clock->pulled(0, rank);
  it.push_first(0, 0, 1);  // moves by 0.1
  EXPECT_EQ(it.clock->held(), 0u);
  it.clock->pulled(1, 0);
  const std::vector<double> before = it.weights();
  it.push_first(0, 1, 3);
  EXPECT_EQ(it.clock->held(), 1u) << "worker 2 would be too far";
  EXPECT_EQ(it.weights(), before);
  EXPECT_FALSE(it.clock->may_pull(1, 1)) << "it would not see its own push";
  EXPECT_EQ(it.clock->settled(), 0);
  EXPECT_EQ(it.clock->missing(1), (Ranks{0, 2})) << "those who compute";
  it.push_first(1, 0, 1e-9);
  EXPECT_EQ(it.clock->held(), 2u) << "it has room, but not before its turn";
  EXPECT_EQ(it.weights(), before);
  EXPECT_EQ(it.clock->settled(), 0);
  it.push_first(0, 2, 2);
  EXPECT_EQ(it.clock->held(), 0u);
  EXPECT_EQ(it.clock->settled(), 1);
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(it.clock->may_pull(1, rank));

  Clocked in_order(Sync::asp(), 1, adagrad);
  int64_t step = 0;
  for (const double gradient : {1.0, 3.0, 1e-9, 2.0}) in_order.push_first(step++, 0, gradient);
  EXPECT_EQ(it.weights(), in_order.weights());
}

TEST(FreeClock, by_value_a_workers_own_pushes_are_not_bounded) {
  Clocked it(Sync::value(0.1), 2);
  for (int64_t step = 0; step < 3; ++step) {
    it.clock->pulled(step, 0);
    it.push_first(step, 0, 100);
    EXPECT_EQ(it.clock->held(), 0u);
  }
  EXPECT_EQ(it.weight(), -300);
}

TEST(FreeClock, by_value_each_shard_bounds_its_part_of_the_distance) {
  Clocked it(spec_of(Sync::value(1), {.lr = 1}), 2, 4);
  it.clock->pulled(0, 1);
  it.push_first(0, 0, 0.5);
  EXPECT_EQ(it.clock->held(), 0u);
  Clocked over(spec_of(Sync::value(1), {.lr = 1}), 2, 4);
  over.clock->pulled(0, 1);
  over.push_first(0, 0, 0.51);
  EXPECT_EQ(over.clock->held(), 1u);
}

TEST(FreeClock, a_repeated_pull_that_is_answered_after_the_push_does_not_make_a_worker_compute_again) {
  Clocked it(Sync::value(0.1), 2);
  it.clock->pulled(0, 1);
  it.push_first(0, 1, 0);
  it.clock->pulled(0, 1);
  it.push_first(0, 0, 100);
  EXPECT_EQ(it.clock->held(), 0u) << "it waits for a push that will never come";
}

}  // namespace
}  // namespace talweg
