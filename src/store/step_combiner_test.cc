#include "store/step_combiner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/rng.h"

namespace talweg {
namespace {

std::unique_ptr<Table> make_table(bool sparse) {
  const TableSpec spec{.name = "w",
                       .sparse = sparse,
                       .size = sparse ? 0u : 8u,
                       .type = ValueType::kFloat32,
                       .optimizer = {.type = "adagrad", .lr = 0.1}};
  auto table = Table::make(spec, 0, 1, OptimizerRegistry::standard());
  EXPECT_TRUE(table.ok());
  return std::move(*table);
}

// Gradients of very different sizes, so that another order of addition gives other bits.
Contribution contribution_of(Table& table, int64_t step, uint32_t rank) {
  Rng rng(static_cast<uint64_t>(step), rank);
  Contribution contribution;
  contribution.body = Buffer(8 * sizeof(float));
  std::vector<float> gradients(8);
  for (float& gradient : gradients) gradient = static_cast<float>(rng.normal() * std::pow(10, rng.uniform() * 6));
  std::memcpy(contribution.body.data(), gradients.data(), contribution.body.size());
  if (SparseTable* sparse = table.sparse()) {
    std::vector<uint64_t> keys(8);
    for (uint64_t& key : keys) key = rng.below(10);
    EXPECT_TRUE(sparse->touch(keys, Time(), contribution.rows).ok());
  } else {
    contribution.range = {0, 8};
  }
  return contribution;
}

std::vector<float> values_of(Table& table) {
  const ExportPiece piece = table.export_from(0, 1 << 20);
  const auto* first = reinterpret_cast<const float*>(piece.values.data());
  return {first, first + piece.values.size() / sizeof(float)};
}

TEST(StepCombiner, every_arrival_order_gives_the_same_bits) {
  constexpr uint32_t kWorkers = 4;
  for (const bool sparse : {false, true}) {
    std::vector<float> expected;
    std::vector<uint32_t> ranks(kWorkers);
    std::iota(ranks.begin(), ranks.end(), 0);
    do {
      const auto table = make_table(sparse);
      StepCombiner combiner(*table, kWorkers);
      for (int64_t step = 0; step < 3; ++step) {
        for (const uint32_t rank : ranks) {
          const bool moved = combiner.add(step, rank, contribution_of(*table, step, rank));
          ASSERT_EQ(moved, rank == ranks.back());
        }
        ASSERT_EQ(combiner.clock().step(), step + 1);
      }
      if (expected.empty()) expected = values_of(*table);
      ASSERT_EQ(values_of(*table), expected);
    } while (std::next_permutation(ranks.begin(), ranks.end()));
  }
}

TEST(StepCombiner, contributions_to_later_steps_are_held_until_their_turn) {
  const auto ordered = make_table(true), early = make_table(true);
  StepCombiner in_order(*ordered, 2), ahead(*early, 2);
  for (int64_t step = 0; step < 3; ++step) {
    for (uint32_t rank = 0; rank < 2; ++rank) in_order.add(step, rank, contribution_of(*ordered, step, rank));
  }
  for (int64_t step = 2; step >= 0; --step) EXPECT_FALSE(ahead.add(step, 1, contribution_of(*early, step, 1)));
  EXPECT_EQ(ahead.held(), 3u);
  EXPECT_TRUE(values_of(*early) == std::vector<float>(early->sparse()->rows())) << "applied before its turn";
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_TRUE(ahead.add(step, 0, contribution_of(*early, step, 0)));
    EXPECT_EQ(ahead.clock().step(), step + 1);
  }
  EXPECT_EQ(ahead.held(), 0u);
  EXPECT_EQ(values_of(*early), values_of(*ordered));
}

TEST(BspClock, says_what_is_wanted_repeated_and_too_early) {
  BspClock clock(2);
  EXPECT_EQ(clock.judge(0, 1), Arrival::kWanted);
  EXPECT_EQ(clock.judge(limits::kStepsAhead, 1), Arrival::kWanted);
  EXPECT_EQ(clock.judge(limits::kStepsAhead + 1, 1), Arrival::kTooEarly);
  EXPECT_TRUE(clock.rests_until_push(0, 1));
  clock.arrive(0, 1);
  EXPECT_EQ(clock.judge(0, 1), Arrival::kRepeated);
  EXPECT_FALSE(clock.rests_until_push(0, 1));
  EXPECT_EQ(clock.missing(), std::vector<uint32_t>{0});
  EXPECT_TRUE(clock.may_pull(0));
  EXPECT_FALSE(clock.may_pull(1));
  clock.arrive(0, 0);
  clock.advance();
  EXPECT_TRUE(clock.may_pull(1));
  EXPECT_EQ(clock.judge(0, 0), Arrival::kRepeated);
  EXPECT_EQ(clock.judge(limits::kStepsAhead + 1, 1), Arrival::kWanted);
}

}  // namespace
}  // namespace talweg
