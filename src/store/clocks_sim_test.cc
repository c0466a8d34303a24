// The clocks as workers meet them: over a network, with stragglers and lost connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1, kDense = 2;

TableSpec sparse_spec(Sync sync) {
  return {.id = kSparse, .name = "emb", .type = ValueType::kFloat64, .optimizer = {.lr = 1}, .sync = sync};
}
TableSpec dense_spec(uint64_t size, Sync sync) {
  return {.id = kDense,
          .name = "w",
          .sparse = false,
          .size = size,
          .type = ValueType::kFloat64,
          .optimizer = {.lr = 1},
          .sync = sync};
}

// --- How far workers get from each other

// A worker is in a step from when its pull returned until it begins to push.
class Positions {
 public:
  explicit Positions(uint32_t workers) : left_(workers) {}
  void enters(int64_t step) { widest_ = std::max(widest_, step - *std::min_element(left_.begin(), left_.end())); }
  void leaves(uint32_t rank) { ++left_[rank]; }
  int64_t widest() const { return widest_; }

 private:
  std::vector<int64_t> left_;  // by rank: how many steps
  int64_t widest_ = 0;
};

Task<> walk(Io& io, StoreClient& client, uint32_t rank, Sync sync, int64_t steps, Positions* positions) {
  CO_ASSERT_OK(co_await client.create(dense_spec(4, sync)));
  std::vector<double> values(4);
  for (int64_t step = 0; step < steps; ++step) {
    CO_ASSERT_OK(co_await client.pull_range<double>(kDense, step, 0, values));
    positions->enters(step);
    co_await io.compute({.flops = 5e8, .bytes = 0}, [] {});
    positions->leaves(rank);
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, 0, values));
  }
}

int64_t widest_gap(Sync sync, uint64_t seed) {
  constexpr uint32_t kWorkers = 3;
  TestStore store(kWorkers, 2);
  store.sim.seed = seed;
  store.sim.compute.straggler_sigma = 1;
  Positions positions(kWorkers);
  store.run([&](Io& io, StoreClient& client, uint32_t rank) { return walk(io, client, rank, sync, 8, &positions); });
  return positions.widest();
}

TEST(Clocks, under_ssp_no_worker_is_ever_further_ahead_than_the_bound_and_some_are_as_far) {
  uint64_t seed = 0;
  for (const int64_t bound : {0, 1, 3}) {
    int64_t widest = 0;
    for (int run = 0; run < 167; ++run) {
      const int64_t gap = widest_gap(Sync::ssp(bound), ++seed);
      ASSERT_LE(gap, bound) << "seed " << seed;
      widest = std::max(widest, gap);
    }
    EXPECT_EQ(widest, bound) << "the bound was never reached: the test shows nothing";
  }
}

TEST(Clocks, under_asp_workers_get_further_from_each_other_than_that) {
  int64_t widest = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) widest = std::max(widest, widest_gap(Sync::asp(), seed));
  EXPECT_GT(widest, 3);
}

// --- Every push counts once

constexpr int64_t kSteps = 10;

// What the workers were told that the store took, by key. All numbers are small and whole, so sums are exact in any
// order.
using Taken = std::map<uint64_t, double>;

Task<> push_and_note(Io& io, StoreClient& client, uint32_t rank, Sync sync, Taken* taken, TableDump<double>* dump) {
  CO_ASSERT_OK(co_await client.create(sparse_spec(sync)));
  KeyRoute route(client.shards());
  for (int64_t step = 0; step < kSteps; ++step) {
    Rng rng(static_cast<uint64_t>(step), rank);
    std::vector<uint64_t> keys;
    for (uint64_t key = 0; key < 60; ++key) {
      if (rng.below(2) == 0) keys.push_back(key);
    }
    std::vector<double> rows(keys.size());
    route.build(keys);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
    co_await io.compute({.flops = 1e7, .bytes = 0}, [] {});
    for (double& value : rows) value = static_cast<double>(rng.below(1000)) - 500;
    const Result<Pushed> pushed = co_await client.push<double>(kSparse, step, route, rows);
    CO_ASSERT_OK(pushed.status());
    if (pushed->late) continue;
    for (size_t i = 0; i < keys.size(); ++i) (*taken)[keys[i]] += rows[i];
  }
  if (rank != 0) co_return;
  Result<TableDump<double>> whole = co_await client.dump<double>(kSparse, kSteps);
  CO_ASSERT_OK(whole.status());
  *dump = std::move(*whole);
}

// How many pushes were repeated and how many were late, over many seeds.
struct Happened {
  uint64_t repeated = 0, late = 0, held = 0;
};
Happened expect_each_push_counts_once(Sync sync, uint32_t shards) {
  Happened happened;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    TestStore store(3, shards);
    store.sim.seed = seed;
    store.sim.compute.straggler_sigma = 1;
    store.sim.network.bandwidth_gbps = 0.02;
    store.faults.random_drops.per_second = 400;
    Taken taken;
    TableDump<double> dump;
    store.run([&](Io& io, StoreClient& client, uint32_t rank) {
      return push_and_note(io, client, rank, sync, &taken, &dump);
    });
    EXPECT_EQ(dump.keys.size(), 60u);
    for (size_t i = 0; i < dump.keys.size(); ++i) EXPECT_EQ(dump.values[i], -taken[dump.keys[i]]) << dump.keys[i];
    for (const auto& counters : store.server_counters) {
      happened.repeated += counters.pushes_repeated;
      happened.held += counters.pushes_held;
    }
    for (const auto& counters : store.client_counters) happened.late += counters.late;
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << sync.text() << ", seed " << seed;
      break;
    }
  }
  EXPECT_GT(happened.repeated, 0u) << "no push was ever repeated: the test shows nothing";
  return happened;
}

TEST(Clocks, under_asp_each_push_counts_once_though_connections_are_lost) {
  EXPECT_EQ(expect_each_push_counts_once(Sync::asp(), 2).late, 0u);
}

TEST(Clocks, under_ssp_each_push_counts_once_though_connections_are_lost) {
  EXPECT_EQ(expect_each_push_counts_once(Sync::ssp(1), 2).late, 0u);
}

TEST(Clocks, by_value_each_push_counts_once_though_connections_are_lost) {
  const Happened happened = expect_each_push_counts_once(Sync::value(2000), 2);
  EXPECT_EQ(happened.late, 0u);
  EXPECT_GT(happened.held, 0u) << "no push was ever held: the test shows nothing";
}

// One shard: a push may be late on one and not on another.
TEST(Clocks, with_backups_each_push_counts_once_or_its_worker_knows_that_it_came_late) {
  EXPECT_GT(expect_each_push_counts_once(Sync::backup(1), 1).late, 0u);
}

// The answer to a push waits behind a large reply on its way out; meanwhile the step ends without the pushes that have
// not come.
TEST(Clocks, a_push_whose_answer_says_that_it_was_taken_is_taken_before_the_answer_is_out) {
  constexpr uint64_t kSize = 100'000;
  TestStore store(3, 1);
  store.sim.network.bandwidth_gbps = 0.1;  // 64 ms for all values
  double taken = 0;
  std::vector<double> finals(1);
  store.run([&](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec(kSize, Sync::backup(1))));
    std::vector<double> all(kSize);
    TaskSet reading(io);
    const auto read_all = [](StoreClient& from, std::vector<double>* into) -> Task<> {
      CO_ASSERT_OK(co_await from.read_range<double>(kDense, 0, 0, *into));
    };
    if (rank == 0) reading.spawn(read_all(client, &all));
    CO_ASSERT_OK(co_await io.sleep(milliseconds(rank == 0 ? 20 : 30 + 10 * rank)));
    const std::vector<double> gradient = {double(1 << rank)};
    const Result<Pushed> pushed = co_await client.push_range<double>(kDense, 0, 0, gradient);
    CO_ASSERT_OK(pushed.status());
    if (!pushed->late) taken += gradient[0];
    co_await reading.join();
    if (rank == 0) CO_ASSERT_OK(co_await client.read_range<double>(kDense, 1, 0, finals));
  });
  EXPECT_EQ(taken, 1 + 2);
  EXPECT_EQ(finals[0], -taken);
}

// --- Tables of different clocks

TEST(Clocks, one_job_may_have_a_table_in_step_and_another_that_is_free) {
  constexpr uint32_t kWorkers = 3;
  constexpr double kGradients[] = {1e16, 1, -1e16};
  TestStore store(kWorkers, 2);
  store.sim.compute.straggler_sigma = 1;
  TableDump<double> dense, sparse;
  std::vector<proto::StatsReply> stats;
  store.run([&](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec(4, Sync::bsp())));
    CO_ASSERT_OK(co_await client.create(sparse_spec(Sync::asp())));
    KeyRoute route(2);
    const std::vector<uint64_t> keys = {rank, 7, 8};
    route.build(keys);
    std::vector<double> values(4), rows(3);
    for (int64_t step = 0; step < kSteps; ++step) {
      CO_ASSERT_OK(co_await client.pull_range<double>(kDense, step, 0, values));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
      co_await io.compute({.flops = 1e7, .bytes = 0}, [] {});
      const std::vector<double> gradients(4, kGradients[rank]), row_gradients = {1, 2, 3};
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, row_gradients));
      CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, 0, gradients));
    }
    if (rank != 0) co_return;
    Result<TableDump<double>> whole_dense = co_await client.dump<double>(kDense, kSteps);
    Result<TableDump<double>> whole_sparse = co_await client.dump<double>(kSparse, kSteps);
    CO_ASSERT_OK(whole_dense.status());
    CO_ASSERT_OK(whole_sparse.status());
    dense = std::move(*whole_dense);
    sparse = std::move(*whole_sparse);
    Result<std::vector<proto::StatsReply>> told = co_await client.stats();
    CO_ASSERT_OK(told.status());
    stats = std::move(*told);
  });
  const double step_sum = (kGradients[0] + kGradients[1]) + kGradients[2];
  double weight = 0;
  for (int64_t step = 0; step < kSteps; ++step) weight -= step_sum;
  EXPECT_EQ(dense.values, std::vector<double>(4, weight));
  EXPECT_EQ(sparse.keys, (std::vector<uint64_t>{0, 1, 2, 7, 8}));
  EXPECT_EQ(sparse.values, (std::vector<double>{-10, -10, -10, -60, -90}));
  uint64_t stale = 0;
  for (const proto::StatsReply& shard : stats) {
    ASSERT_EQ(shard.tables_size(), 2);
    for (const proto::TableStats& table : shard.tables()) {
      if (table.name() == "w") {
        EXPECT_EQ(table.updates(), uint64_t{kSteps});
      }
      if (table.name() == "emb") {
        EXPECT_EQ(table.updates(), uint64_t{kSteps * kWorkers});
      }
      if (table.name() == "w") {
        EXPECT_EQ(table.staleness_size(), 1);
      }
      if (table.name() == "emb") stale += static_cast<uint64_t>(table.staleness_size() > 1);
    }
  }
  EXPECT_GT(stale, 0u);
}

// --- A slow worker's gradients

Task<> descend(Io& io, StoreClient& client, TableSpec spec, int64_t steps, uint64_t* updates, uint64_t* last_large) {
  CO_ASSERT_OK(co_await client.create(spec));
  std::vector<double> weight(1);
  for (int64_t step = 0; step < steps; ++step) {
    CO_ASSERT_OK(co_await client.pull_range<double>(kDense, step, 0, weight));
    if (std::abs(weight[0]) > 1e-3) *last_large = *updates;
    co_await io.compute({.flops = 5e8, .bytes = 0}, [] {});
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, 0, weight));
    ++*updates;
  }
}

// Workers minimise |w|^2 / 2 from w = 1, one of them ten times slower than the others. Returns how many updates it took
// until the weight was small and stayed so.
uint64_t updates_to_converge(Sync sync, bool rate_by_staleness) {
  constexpr uint32_t kWorkers = 4;
  constexpr int64_t kSteps = 120;
  TestStore store(kWorkers, 1);
  store.sim.compute.slow_nodes = {store.shards};  // the first worker
  store.sim.compute.slow_factor = 10;
  uint64_t updates = 0, last_large = 0;
  store.run([&](Io& io, StoreClient& client, uint32_t) -> Task<> {
    TableSpec spec = dense_spec(1, sync);
    spec.init = {.type = InitType::kConstant, .scale = 1};
    spec.optimizer.lr = 0.3;
    spec.rate_by_staleness = rate_by_staleness;
    return descend(io, client, spec, kSteps, &updates, &last_large);
  });
  EXPECT_LT(last_large, updates) << "it never converged";
  return last_large;
}

TEST(Clocks, with_rates_by_staleness_a_slow_worker_costs_fewer_updates) {
  for (const Sync sync : {Sync::asp(), Sync::ssp(40)}) {
    const uint64_t without = updates_to_converge(sync, false), with = updates_to_converge(sync, true);
    EXPECT_LT(2 * with, without) << sync.text();
  }
}

}  // namespace
}  // namespace talweg
