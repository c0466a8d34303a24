// The store as its users see it: several workers, several shards, faults.
#include "store/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1, kDense = 2;

// Overloads, not default arguments: GCC 12 loses track of an argument made inside a co_await expression.
TableSpec sparse_spec(uint32_t width, const OptimizerConfig& optimizer) {
  return {.id = kSparse, .name = "emb", .width = width, .type = ValueType::kFloat64, .optimizer = optimizer};
}
TableSpec sparse_spec(uint32_t width) { return sparse_spec(width, {.lr = 0.5}); }
TableSpec dense_spec(uint64_t size, const OptimizerConfig& optimizer) {
  return {
      .id = kDense, .name = "w", .sparse = false, .size = size, .type = ValueType::kFloat64, .optimizer = optimizer};
}
TableSpec dense_spec(uint64_t size) { return dense_spec(size, {.lr = 0.5}); }

// What a worker does in a step depends on nothing but (step, rank), so a serial reference can do the same.
std::vector<uint64_t> keys_of(int64_t step, uint32_t rank) {
  Rng rng(static_cast<uint64_t>(step), rank);
  std::vector<uint64_t> keys;
  for (uint64_t i = rng.below(30); i > 0; --i)
    keys.push_back(rng.below(100) == 0 ? ~uint64_t{0} : mix64(rng.below(200)));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}
// Pulls the weight towards a target that depends on the key: least squares, one row at a time.
double gradient_of(uint64_t key, uint32_t column, double weight) {
  return weight - static_cast<double>((key + column) % 1000) / 100;
}

struct Finals {
  TableDump<double> sparse, dense;
  bool operator==(const Finals& other) const {
    return sparse.keys == other.sparse.keys && sparse.values == other.sparse.values &&
           dense.values == other.dense.values;
  }
};
constexpr int64_t kSteps = 12;
constexpr uint32_t kWidth = 3;
constexpr uint64_t kSize = 101;

Task<> train(StoreClient& store, uint32_t rank, OptimizerConfig optimizer, Finals* finals) {
  CO_ASSERT_OK(co_await store.create(sparse_spec(kWidth, optimizer)));
  CO_ASSERT_OK(co_await store.create(dense_spec(kSize, optimizer)));
  KeyRoute route(store.shards());
  for (int64_t step = 0; step < kSteps; ++step) {
    const std::vector<uint64_t> keys = keys_of(step, rank);
    std::vector<double> rows(keys.size() * kWidth), dense(kSize);
    route.build(keys);
    CO_ASSERT_OK(co_await store.pull<double>(kSparse, step, route, rows));
    CO_ASSERT_OK(co_await store.pull_range<double>(kDense, step, 0, dense));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = gradient_of(keys[i / kWidth], i % kWidth, rows[i]);
    for (size_t i = 0; i < dense.size(); ++i) dense[i] = gradient_of(i + rank, 0, dense[i]);
    CO_ASSERT_OK(co_await store.push<double>(kSparse, step, route, rows));
    CO_ASSERT_OK(co_await store.push_range<double>(kDense, step, 0, dense));
  }
  if (rank != 0) co_return;
  Result<TableDump<double>> sparse = co_await store.dump<double>(kSparse, kSteps);
  Result<TableDump<double>> dense = co_await store.dump<double>(kDense, kSteps);
  CO_ASSERT_OK(sparse.status());
  CO_ASSERT_OK(dense.status());
  *finals = {std::move(*sparse), std::move(*dense)};
}

Finals trained(TestStore& store, OptimizerConfig optimizer = {.lr = 0.05, .l2 = 0.01}) {
  Finals finals;
  store.run([&](Io&, StoreClient& client, uint32_t rank) { return train(client, rank, optimizer, &finals); });
  return finals;
}

// SGD on the sum of the workers' gradients, in one loop.
void train_serially(uint32_t workers, std::map<uint64_t, std::vector<double>>& sparse, std::vector<double>& dense) {
  dense.assign(kSize, 0);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::map<uint64_t, std::vector<double>> sums;
    std::vector<double> dense_sum(kSize);
    for (uint32_t rank = 0; rank < workers; ++rank) {
      for (const uint64_t key : keys_of(step, rank)) {
        std::vector<double>& row = sparse.try_emplace(key, kWidth).first->second;
        std::vector<double>& sum = sums.try_emplace(key, kWidth).first->second;
        for (uint32_t j = 0; j < kWidth; ++j) sum[j] += gradient_of(key, j, row[j]);
      }
      for (uint64_t i = 0; i < kSize; ++i) dense_sum[i] += gradient_of(i + rank, 0, dense[i]);
    }
    for (const auto& [key, sum] : sums) {
      std::vector<double>& row = sparse[key];
      for (uint32_t j = 0; j < kWidth; ++j) row[j] -= 0.05 * (sum[j] + 0.01 * row[j]);
    }
    for (uint64_t i = 0; i < kSize; ++i) dense[i] -= 0.05 * (dense_sum[i] + 0.01 * dense[i]);
  }
}

TEST(Store, training_equals_serial_sgd_for_every_number_of_workers_and_shards) {
  for (const uint32_t workers : {1, 2, 3, 5, 8}) {
    std::map<uint64_t, std::vector<double>> sparse;
    std::vector<double> dense;
    train_serially(workers, sparse, dense);
    for (uint32_t shards = 1; shards <= 4; ++shards) {
      TestStore store(workers, shards);
      const Finals finals = trained(store);
      ASSERT_EQ(finals.sparse.keys.size(), sparse.size());
      size_t i = 0;
      for (const auto& [key, row] : sparse) {
        ASSERT_EQ(finals.sparse.keys[i], key) << "not sorted, or not complete";
        for (uint32_t j = 0; j < kWidth; ++j) ASSERT_NEAR(finals.sparse.values[i * kWidth + j], row[j], 1e-12);
        ++i;
      }
      ASSERT_EQ(finals.dense.values.size(), kSize);
      for (i = 0; i < kSize; ++i) ASSERT_NEAR(finals.dense.values[i], dense[i], 1e-12);
    }
  }
}

TEST(Store, the_result_has_the_same_bits_whatever_the_timing) {
  TestStore calm(4, 3);
  const OptimizerConfig adagrad{.type = "adagrad", .lr = 0.3};
  const Finals expected = trained(calm, adagrad);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TestStore store(4, 3);
    store.sim.seed = seed;
    store.sim.network.latency = microseconds(10 * seed);
    store.sim.network.bandwidth_gbps = 0.001 * static_cast<double>(seed);
    ASSERT_TRUE(trained(store, adagrad) == expected) << "seed " << seed;
  }
}

TEST(Store, lost_connections_change_no_bit_of_the_result) {
  TestStore calm(3, 2);
  const Finals expected = trained(calm);
  uint64_t repeated = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    TestStore store(3, 2);
    store.sim.seed = seed;
    store.sim.network.bandwidth_gbps = 0.02;  // slow enough that connections are lost in the middle of a message
    store.faults.random_drops.per_second = 400;
    ASSERT_TRUE(trained(store) == expected) << "seed " << seed;
    for (const auto& counters : store.server_counters) repeated += counters.pushes_repeated;
  }
  EXPECT_GT(repeated, 0u) << "no push was ever repeated: the test shows nothing";
}

TEST(Store, keys_travel_once_a_step) {
  TestStore store(2, 2);
  static_cast<void>(trained(store));
  uint64_t received = 0, pulled = 0, pushed = 0, dense = kSteps * kSize * 2;
  for (const auto& counters : store.server_counters) {
    received += counters.keys_received;
    pulled += counters.keys_pulled;
    pushed += counters.keys_pushed;
  }
  EXPECT_EQ(received, pulled - dense);
  EXPECT_EQ(pushed, pulled);
  EXPECT_EQ(store.client_counters[0].lists_resent, 0u);
  EXPECT_EQ(store.client_counters[0].keys_pulled + store.client_counters[1].keys_pulled, pulled);
  EXPECT_EQ(store.client_counters[0].keys_pushed + store.client_counters[1].keys_pushed, pushed);
}

TEST(Store, a_pull_waits_for_the_pushes_of_the_step_before) {
  TestStore store(2, 2);
  store.run([](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec(1)));
    const std::vector<uint64_t> keys = {1, 2, 3, 4};
    KeyRoute route(2);
    route.build(keys);
    std::vector<double> rows(4);
    const std::vector<double> gradients(4, -2.0 - rank);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    if (rank == 1) CO_ASSERT_OK(co_await io.sleep(seconds(3)));
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
    EXPECT_EQ(rows, std::vector<double>(4, 2.5));
    EXPECT_GE(client.counters().pull_wait, rank == 0 ? seconds(2) : seconds(0));
  });
  for (const auto& counters : store.server_counters) EXPECT_GE(counters.clock_wait, seconds(2));
}

TEST(Store, a_pull_that_waits_too_long_names_the_workers_it_waits_for) {
  TestStore store(4, 1);
  store.config.clock_timeout = seconds(2);
  store.run([](Io&, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec(3)));
    if (rank == 1 || rank == 3) co_return;
    std::vector<double> values(3);
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, 0, 0, values));
    const Status late = co_await client.pull_range<double>(kDense, 1, 0, values);
    EXPECT_EQ(late.code(), Code::kDeadline);
    EXPECT_EQ(late.message(),
              "pull of table 'w', step 1, at shard 0: waited 2.000 s for the pushes of step 0 by workers 1, 3");
  });
}

TEST(Store, a_push_without_a_pull_brings_its_keys) {
  TestStore store(1, 3);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec(2)));
    const std::vector<uint64_t> pulled = {10, 20, 30, 40, 50}, pushed = {20, 60, 70, 80, 90}, none;
    std::vector<double> rows(10);
    const std::vector<double> gradients(10, -4);
    KeyRoute route(3);
    route.build(pulled);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    route.build(pushed);  // other keys than were pulled
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    EXPECT_EQ(client.counters().lists_resent, 0u);

    route.build(pulled);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
    EXPECT_EQ(rows, (std::vector<double>{0, 0, 2, 2, 0, 0, 0, 0, 0, 0}));
    route.build(none);
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 1, route, {}));
    route.build(pushed);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 2, route, rows));
    EXPECT_EQ(rows, std::vector<double>(10, 2));
  });
}

TEST(Store, reading_makes_no_rows) {
  TestStore store(1, 2);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec(1)));
    std::vector<uint64_t> keys(1000);
    for (uint64_t k = 0; k < keys.size(); ++k) keys[k] = k;
    std::vector<double> rows(1000, 7);
    KeyRoute route(2);
    route.build(keys);
    CO_ASSERT_OK(co_await client.read<double>(kSparse, 0, route, rows));
    EXPECT_EQ(rows, std::vector<double>(1000, 0));
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 0);
    CO_ASSERT_OK(dump.status());
    EXPECT_TRUE(dump->keys.empty());
  });
}

TEST(Store, a_billion_key_space_costs_a_few_megabytes_until_touched) {
  TestStore store(1, 1);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec(8)));
    std::vector<uint64_t> keys;
    for (uint64_t k = 0; k < 1'000'000'000; k += 100'003) keys.push_back(k);
    std::vector<double> rows(keys.size() * 8);
    KeyRoute route(1);
    route.build(keys);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, rows));
  });
  EXPECT_LE(store.server_bytes[0], 4u << 20);
}

TEST(Store, parts_of_a_dense_table_are_pulled_and_pushed_across_shards) {
  TestStore store(1, 4);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec(100)));
    std::vector<double> reference(100);
    Rng rng(9);
    for (int64_t step = 0; step < 50; ++step) {
      const uint64_t a = rng.below(101), b = rng.below(101), begin = std::min(a, b);
      std::vector<double> values(std::max(a, b) - begin);
      CO_ASSERT_OK(co_await client.pull_range<double>(kDense, step, begin, values));
      EXPECT_TRUE(std::equal(values.begin(), values.end(), reference.begin() + static_cast<ptrdiff_t>(begin)));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = rng.normal();
        reference[begin + i] -= 0.5 * values[i];
      }
      CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, begin, values));
    }
    std::vector<double> all(100);
    CO_ASSERT_OK(co_await client.read_range<double>(kDense, 50, 0, all));
    EXPECT_EQ(all, reference);
  });
}

TEST(Store, a_range_takes_far_fewer_bytes_than_its_keys) {
  uint64_t bytes[2] = {};
  for (const bool sparse : {false, true}) {
    TestStore store(1, 1);
    store.run([&bytes, sparse](Io& io, StoreClient& client, uint32_t) -> Task<> {
      const TableSpec spec = sparse ? sparse_spec(1) : dense_spec(10'000);
      CO_ASSERT_OK(co_await client.create(spec));
      std::vector<uint64_t> keys(10'000);
      for (uint64_t k = 0; k < keys.size(); ++k) keys[k] = k;
      std::vector<double> values(keys.size());
      KeyRoute route(1);
      route.build(keys);
      const uint64_t before = io.counters().bytes_sent;
      if (sparse) {
        CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, values));
      } else {
        CO_ASSERT_OK(co_await client.pull_range<double>(kDense, 0, 0, values));
      }
      bytes[sparse] = io.counters().bytes_sent - before;
    });
  }
  EXPECT_LT(bytes[0], 200u);
  EXPECT_GT(bytes[1], 80'000u);
}

TEST(Store, float_tables_hold_floats) {
  TestStore store(1, 2);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    TableSpec spec = sparse_spec(1, {.lr = 1});
    spec.type = ValueType::kFloat32;
    CO_ASSERT_OK(co_await client.create(spec));
    const std::vector<uint64_t> keys = {5, 6, 7};
    std::vector<float> rows(3);
    const std::vector<float> gradients = {0.1f, 0.2f, 0.3f};
    KeyRoute route(2);
    route.build(keys);
    CO_ASSERT_OK(co_await client.push<float>(kSparse, 0, route, gradients));
    CO_ASSERT_OK(co_await client.read<float>(kSparse, 1, route, rows));
    EXPECT_EQ(rows, (std::vector<float>{-0.1f, -0.2f, -0.3f}));
    std::vector<double> wrong(3);
    const Status refused = co_await client.read<double>(kSparse, 1, route, wrong);
    EXPECT_EQ(refused.message(), "table 'emb' holds float32, not float64");
    const Status dense = co_await client.read_range<float>(kSparse, 1, 0, rows);
    EXPECT_EQ(dense.message(), "table 'emb' is sparse: use keys");
    const Status unknown = co_await client.read<float>(77, 1, route, rows);
    EXPECT_EQ(unknown.message(), "table 77 was not created by this client");
  });
}

TEST(Store, an_export_of_many_pieces_is_complete_and_sorted) {
  TestStore store(1, 3);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    constexpr uint64_t kKeys = 30'000;
    CO_ASSERT_OK(co_await client.create(sparse_spec(64)));
    std::vector<uint64_t> keys(kKeys);
    for (uint64_t k = 0; k < kKeys; ++k) keys[k] = mix64(k);
    std::vector<double> gradients(kKeys * 64);
    for (uint64_t k = 0; k < kKeys; ++k) gradients[64 * k + 63] = -2.0 * static_cast<double>(k);
    KeyRoute route(3);
    route.build(keys);
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 1);
    CO_ASSERT_OK(dump.status());
    std::map<uint64_t, double> expected;
    for (uint64_t k = 0; k < kKeys; ++k) expected[keys[k]] = static_cast<double>(k);
    EXPECT_EQ(dump->keys.size(), kKeys);
    size_t i = 0, wrong = 0;
    for (const auto& [key, value] : expected) {
      wrong += i >= dump->keys.size() || dump->keys[i] != key || dump->values[64 * i + 63] != value;
      ++i;
    }
    EXPECT_EQ(wrong, 0u);
  });
}

// Adam's first moment only, with a state of two values: an optimizer of a user's own.
template <class Real>
struct CountingUpdate {
  static constexpr size_t kState = 2;
  Real lr;
  explicit CountingUpdate(const OptimizerConfig& config) : lr(static_cast<Real>(config.lr)) {}
  Real initial_state(size_t k) const { return k == 0 ? 0 : 100; }
  void operator()(Real& weight, Real gradient, std::array<Real, 2>& state) const {
    state[0] += gradient;
    state[1] += 1;
    weight = -lr * state[0] * state[1];
  }
};

TEST(Store, a_users_optimizer_runs_on_the_servers) {
  TestStore store(2, 2);
  store.parts.optimizers.add_update<CountingUpdate>("counting");
  store.run([](Io&, StoreClient& client, uint32_t rank) -> Task<> {
    const OptimizerConfig counting{.type = "counting", .lr = 1};
    CO_ASSERT_OK(co_await client.create(sparse_spec(1, counting)));
    CO_ASSERT_OK(co_await client.create(dense_spec(4, counting)));
    const std::vector<uint64_t> keys = {rank, 5};
    const std::vector<double> gradients = {1, 10}, dense = {1, 2, 3, 4};
    KeyRoute route(2);
    route.build(keys);
    for (int64_t step = 0; step < 2; ++step) {
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
      CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, 0, dense));
    }
    std::vector<double> rows(2), values(4);
    CO_ASSERT_OK(co_await client.read<double>(kSparse, 2, route, rows));
    CO_ASSERT_OK(co_await client.read_range<double>(kDense, 2, 0, values));
    EXPECT_EQ(rows, (std::vector<double>{-2 * 102, -40 * 102}));
    EXPECT_EQ(values, (std::vector<double>{-4 * 102, -8 * 102, -12 * 102, -16 * 102}));
  });
}

}  // namespace
}  // namespace talweg
