#include "store/sparse_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/rng.h"

namespace talweg {
namespace {

constexpr uint32_t kNoRow = SparseIndex::kNoRow;

TableSpec spec_of(RowPolicy rows, uint32_t width = 1) {
  return {.id = 1, .name = "w", .width = width, .type = ValueType::kFloat64, .optimizer = {.lr = 0.5}, .rows = rows};
}
std::unique_ptr<Table> make(const TableSpec& spec) {
  auto table = Table::make(spec, 0, 1, OptimizerRegistry::standard());
  EXPECT_TRUE(table.ok()) << table.status().text();
  return std::move(*table);
}
Time at(double seconds) { return Time(from_seconds(seconds)); }

std::vector<uint32_t> touch(Table& table, const std::vector<uint64_t>& keys, double now = 0) {
  std::vector<uint32_t> rows;
  const Status outcome = table.sparse()->touch(keys, at(now), rows);
  EXPECT_TRUE(outcome.ok()) << outcome.text();
  return rows;
}
std::vector<double> gathered(Table& table, const std::vector<uint32_t>& rows) {
  std::vector<double> values(rows.size() * table.spec().width);
  table.sparse()->gather(rows, std::as_writable_bytes(std::span(values)));
  return values;
}
std::vector<double> weights_of(Table& table, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> rows;
  table.sparse()->find(keys, rows);
  return gathered(table, rows);
}
Contribution contribution_of(std::vector<uint32_t> rows, const std::vector<double>& gradients) {
  Contribution contribution;
  auto kept = std::make_shared<std::vector<uint32_t>>(std::move(rows));
  contribution.rows = *kept;
  contribution.rows_own = std::move(kept);
  contribution.body = Buffer(gradients.size() * sizeof(double));
  if (!gradients.empty()) std::memcpy(contribution.body.data(), gradients.data(), contribution.body.size());
  return contribution;
}
std::vector<uint64_t> run_of_keys(uint64_t first, uint64_t count) {
  std::vector<uint64_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

// --- fresh rows

TEST(SparseTable, a_fresh_row_depends_on_the_seed_and_the_key_alone) {
  for (const InitType type : {InitType::kConstant, InitType::kUniform, InitType::kNormal}) {
    TableSpec spec = spec_of({}, 4);
    spec.init = {.type = type, .scale = 0.5, .seed = 3};
    const auto one = make(spec);
    touch(*one, run_of_keys(0, 1000));
    std::vector<std::unique_ptr<Table>> shards;
    for (int s = 0; s < 4; ++s) shards.push_back(make(spec));
    for (uint64_t key = 1000; key-- > 0;) touch(*shards[shard_of(key, 4)], {key});
    for (uint64_t key = 0; key < 1000; ++key) {
      const std::vector<double> row = weights_of(*one, {key});
      ASSERT_NE(row, std::vector<double>(4, 0.0));
      ASSERT_EQ(row, weights_of(*shards[shard_of(key, 4)], {key}));
    }
  }
}

TEST(SparseTable, the_optimizers_state_lies_behind_initial_weights) {
  TableSpec spec = spec_of({}, 2);
  spec.init = {.type = InitType::kConstant, .scale = 2};
  spec.optimizer = {.type = "adagrad", .lr = 1, .epsilon = 0, .initial_accumulator = 9};
  const auto table = make(spec);
  table->accumulate(contribution_of(touch(*table, {5}), {4, 0}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table, {5}), (std::vector<double>{2 - 0.8, 2}));
}

// --- admission

TEST(SparseTable, a_key_has_no_row_until_it_is_admitted_and_its_gradients_are_skipped) {
  TableSpec spec = spec_of({.admit_count = 3});
  spec.init = {.type = InitType::kConstant, .scale = 1};
  const auto table = make(spec);
  for (int early = 0; early < 2; ++early) {
    const std::vector<uint32_t> rows = touch(*table, {7});
    EXPECT_EQ(rows, std::vector<uint32_t>{kNoRow});
    EXPECT_EQ(gathered(*table, rows), std::vector<double>{0});
    table->accumulate(contribution_of(rows, {100}));
    table->apply(1);
  }
  EXPECT_EQ(table->sparse()->rows(), 0u);
  table->accumulate(contribution_of(touch(*table, {7}), {1}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table, {7}), std::vector<double>{0.5});
  const RowCounters& counters = table->sparse()->row_counters();
  EXPECT_EQ(counters.made, 1u);
  EXPECT_EQ(counters.not_admitted, 2u);
  EXPECT_EQ(counters.gradients_skipped, 2u);
}

TEST(SparseTable, a_key_admitted_late_in_a_list_has_its_row_in_all_of_it) {
  const auto table = make(spec_of({.admit_count = 3}));
  EXPECT_EQ(touch(*table, {7, 8, 7, 7, 8}), (std::vector<uint32_t>{0, kNoRow, 0, 0, kNoRow}));
}

TEST(SparseTable, about_the_wanted_share_of_keys_is_admitted_by_chance) {
  const auto table = make(spec_of({.admit_probability = 0.25}));
  touch(*table, run_of_keys(0, 10'000));
  EXPECT_NEAR(table->sparse()->rows(), 2500, 150);
  touch(*table, run_of_keys(0, 10'000));
  EXPECT_NEAR(table->sparse()->rows(), 4375, 200);
}

// --- expiry

TEST(SparseTable, a_drifting_stream_of_keys_takes_bounded_memory) {
  const auto table = make(spec_of({.expire_after = seconds(10)}, 8));
  // A key lives for two lists, so 12 of them are held; the rest is what the sweep has not come to.
  size_t most_rows = 0, bytes_early = 0;
  for (uint64_t list = 0; list < 2000; ++list) {
    touch(*table, run_of_keys(list * 500, 1000), static_cast<double>(list));
    most_rows = std::max<size_t>(most_rows, table->sparse()->rows());
    if (list == 100) bytes_early = table->bytes();
  }
  EXPECT_LE(most_rows, 12'000u);
  EXPECT_LE(table->bytes(), bytes_early);
  const RowCounters& counters = table->sparse()->row_counters();
  EXPECT_EQ(counters.made, 1'000'500u);
  EXPECT_EQ(counters.made - counters.expired, table->sparse()->rows());
}

TEST(SparseTable, rows_that_are_touched_in_time_stay) {
  const auto table = make(spec_of({.expire_after = seconds(10)}));
  table->accumulate(contribution_of(touch(*table, {1}), {-2}));
  table->apply(1);
  for (int now = 1; now < 1000; now += 9) {
    touch(*table, run_of_keys(1000 + now * 100, 100), now);
    touch(*table, {1}, now);
  }
  EXPECT_EQ(weights_of(*table, {1}), std::vector<double>{1});
}

std::vector<uint64_t> keys_that_let_expire() { return run_of_keys(uint64_t{1} << 40, 400); }

// Touches other keys at `now` until all rows that expired must be gone.
void let_expire(Table& table, double now) {
  for (int round = 0; round < 3; ++round) {
    for (const uint64_t key : keys_that_let_expire()) touch(table, {key}, now);
  }
}

TEST(SparseTable, no_row_goes_before_its_time_and_none_stays_long_after) {
  const auto table = make(spec_of({.expire_after = seconds(10)}));
  const std::vector<uint32_t> rows = touch(*table, {1, 2}, 100.5);
  let_expire(*table, 110.4999);
  EXPECT_EQ(touch(*table, {2}, 110.4999)[0], rows[1]);
  let_expire(*table, 110.53);
  std::vector<uint32_t> found;
  table->sparse()->find(std::vector<uint64_t>{1, 2}, found);
  EXPECT_EQ(found, (std::vector<uint32_t>{kNoRow, rows[1]}));
}

TEST(SparseTable, a_row_that_is_used_again_starts_fresh) {
  TableSpec spec = spec_of({.expire_after = seconds(1)}, 2);
  spec.optimizer = {.type = "adagrad", .lr = 1, .epsilon = 0, .initial_accumulator = 9};
  const auto table = make(spec);
  table->accumulate(contribution_of(touch(*table, run_of_keys(0, 100)), std::vector<double>(200, 4.0)));
  table->apply(1);
  let_expire(*table, 100);
  EXPECT_EQ(table->sparse()->row_counters().expired, 100u);
  const std::vector<uint32_t> rows = touch(*table, keys_that_let_expire(), 100);
  EXPECT_EQ(*std::min_element(rows.begin(), rows.end()), 0u);
  EXPECT_EQ(gathered(*table, rows), std::vector<double>(800, 0.0));
  table->accumulate(contribution_of(rows, std::vector<double>(800, 4.0)));
  table->apply(1);
  EXPECT_EQ(gathered(*table, rows), std::vector<double>(800, -0.8));
}

TEST(SparseTable, a_row_of_the_sum_is_not_freed) {
  const auto table = make(spec_of({.expire_after = seconds(1)}));
  const std::vector<uint32_t> rows = touch(*table, {1, 2});
  table->accumulate(contribution_of({rows[0]}, {-2}));
  let_expire(*table, 100);
  table->apply(1);
  EXPECT_EQ(weights_of(*table, {1}), std::vector<double>{1});
  EXPECT_EQ(table->sparse()->row_counters().expired, 1u);
}

TEST(SparseTable, lists_that_may_have_lost_rows_are_told_from_those_that_have_not) {
  const auto table = make(spec_of({.expire_after = seconds(10)}));
  const SparseTable& sparse = *table->sparse();
  touch(*table, {1}, 50);
  touch(*table, {2}, 55);
  EXPECT_LT(sparse.freed_up_to(), at(0));
  let_expire(*table, 62);
  EXPECT_GE(sparse.freed_up_to(), at(50));
  EXPECT_LT(sparse.freed_up_to(), at(50.1));
}

TEST(SparseTable, an_export_leaves_out_what_expires_meanwhile) {
  const auto table = make(spec_of({.expire_after = seconds(10)}));
  touch(*table, run_of_keys(0, 100), 0);
  touch(*table, run_of_keys(45, 20), 5);
  const ExportPiece first = table->export_from(0, 10 * 16);
  EXPECT_EQ(first.keys, run_of_keys(0, 10));
  let_expire(*table, 12);
  const ExportPiece second = table->export_from(first.next, 10 * 16);
  EXPECT_EQ(second.keys, run_of_keys(45, 5));
  EXPECT_EQ(second.values.size(), 5 * sizeof(double));
}

// --- limits

TEST(SparseTable, says_that_it_is_full_and_changes_nothing) {
  constexpr uint64_t kLimit = 8 << 20;
  const auto table = make(spec_of({.max_bytes = kLimit}, 16));
  Status outcome;
  std::vector<uint32_t> rows;
  uint64_t next = 0;
  for (; outcome.ok(); next += 1000) {
    ASSERT_LE(table->bytes(), kLimit);
    ASSERT_LT(next, 1'000'000u);
    outcome = table->sparse()->touch(run_of_keys(next, 1000), Time(), rows);
  }
  next -= 1000;
  EXPECT_EQ(outcome.code(), Code::kFull);
  EXPECT_NE(outcome.message().find("table 'w' has"), std::string::npos) << outcome.message();
  EXPECT_NE(outcome.message().find("its limit is 8388608 (rows.max_bytes): raise it"), std::string::npos);
  EXPECT_GE(table->sparse()->rows(), 20'000u);
  EXPECT_EQ(table->sparse()->rows(), next);
  table->sparse()->find(run_of_keys(next, 1000), rows);
  EXPECT_EQ(rows, std::vector<uint32_t>(1000, kNoRow));
  // What is there goes on working.
  table->accumulate(contribution_of(touch(*table, {next - 1}), std::vector<double>(16, -2.0)));
  table->apply(1);
  EXPECT_EQ(weights_of(*table, {next - 1}), std::vector<double>(16, 1.0));
}

TEST(SparseTable, near_the_limit_a_key_that_a_list_holds_often_counts_once) {
  const auto table = make(spec_of({.max_bytes = 8 << 20}, 16));
  touch(*table, std::vector<uint64_t>(100'000, 7));
  EXPECT_EQ(table->sparse()->rows(), 1u);
}

TEST(SparseTable, rows_that_expire_make_room_below_the_limit) {
  const auto table = make(spec_of({.expire_after = seconds(10), .max_bytes = 8 << 20}, 16));
  for (uint64_t list = 0; list < 500; ++list) touch(*table, run_of_keys(list * 1000, 1000), static_cast<double>(list));
  EXPECT_LE(table->bytes(), 8u << 20);
}

TEST(SparseTable, tables_share_a_budget_and_give_it_back) {
  MemoryBudget budget{.limit = 12 << 20, .setting = "a.limit"};
  auto one = make(spec_of({}, 16)), other = make(spec_of({}, 16));
  ASSERT_TRUE(one->share(budget).ok());
  ASSERT_TRUE(other->share(budget).ok());
  Status outcome;
  std::vector<uint32_t> rows;
  for (uint64_t next = 0; outcome.ok() && next < 1'000'000; next += 1000) {
    outcome = one->sparse()->touch(run_of_keys(next, 1000), Time(), rows);
    ASSERT_EQ(budget.used, one->bytes() + other->bytes());
    ASSERT_LE(budget.used, budget.limit);
  }
  EXPECT_EQ(outcome.code(), Code::kFull);
  EXPECT_NE(outcome.message().find("(a.limit)"), std::string::npos) << outcome.message();
  EXPECT_EQ(other->sparse()->touch(run_of_keys(0, 100'000), Time(), rows).code(), Code::kFull);
  one.reset();
  EXPECT_EQ(budget.used, other->bytes());
  EXPECT_TRUE(other->sparse()->touch(run_of_keys(0, 10'000), Time(), rows).ok());
}

TEST(SparseTable, a_table_that_does_not_fit_the_budget_is_refused) {
  MemoryBudget budget{.limit = 100};
  const auto table = make(spec_of({}));
  EXPECT_EQ(table->share(budget).code(), Code::kFull);
  EXPECT_EQ(budget.used, 0u);
}

// --- what is touched most

TEST(SparseTable, knows_its_hottest_keys) {
  const auto table = make(spec_of({}));
  Rng rng(4);
  for (int list = 0; list < 100; ++list) {
    std::vector<uint64_t> keys(1000);
    for (uint64_t& key : keys) key = rng.below(4) == 0 ? 42 : rng.below(100'000);
    touch(*table, keys);
  }
  const auto hottest = table->sparse()->hottest(1);
  ASSERT_EQ(hottest.size(), 1u);
  EXPECT_EQ(hottest[0].first, 42u);
  EXPECT_NEAR(static_cast<double>(hottest[0].second), 25'000, 5'000);
}

// --- one contribution at a time

TEST(SparseTable, one_contribution_applied_in_place_gives_the_bits_of_a_sum) {
  Rng rng(6);
  for (const uint32_t width : {1u, 3u}) {
    TableSpec spec = spec_of({.admit_count = 2}, width);
    spec.optimizer = {.type = "adagrad", .lr = 0.1, .l2 = 0.01};
    const auto summed = make(spec), direct = make(spec);
    for (int step = 0; step < 300; ++step) {
      std::vector<uint64_t> keys(rng.below(30));
      for (uint64_t& key : keys) key = rng.below(step % 2 == 0 ? 10 : 100);
      std::vector<double> gradients(keys.size() * width);
      for (double& gradient : gradients) gradient = rng.normal() * std::pow(10, rng.uniform() * 6);
      summed->accumulate(contribution_of(touch(*summed, keys), gradients));
      summed->apply(1);
      Contribution contribution = contribution_of(touch(*direct, keys), gradients);
      direct->apply_one(contribution, 1);
      ASSERT_EQ(weights_of(*direct, run_of_keys(0, 100)), weights_of(*summed, run_of_keys(0, 100))) << step;
    }
    EXPECT_EQ(direct->updates(), 300u);
    EXPECT_EQ(direct->sparse()->row_counters().gradients_skipped, summed->sparse()->row_counters().gradients_skipped);
    EXPECT_GT(direct->sparse()->row_counters().gradients_skipped, 0u);
  }
}

}  // namespace
}  // namespace talweg
