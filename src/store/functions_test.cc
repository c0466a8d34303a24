#include "store/functions.h"

#include <gtest/gtest.h>

#include <cstring>

#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1, kDense = 2;

TableSpec sparse_spec() { return {.id = kSparse, .name = "emb", .type = ValueType::kFloat32, .optimizer = {.lr = 1}}; }
TableSpec dense_spec() {
  return {.id = kDense, .name = "w", .sparse = false, .size = 10, .type = ValueType::kFloat64, .optimizer = {.lr = 1}};
}

template <class T>
T sum_of(const std::vector<std::vector<std::byte>>& results) {
  T sum{};
  for (const std::vector<std::byte>& result : results) {
    T value{};
    EXPECT_EQ(result.size(), sizeof(T));
    if (result.size() == sizeof(T)) std::memcpy(&value, result.data(), sizeof(T));
    sum += value;
  }
  return sum;
}

TEST(Functions, the_built_in_ones_see_every_weight_of_every_shard) {
  TestStore store(1, 3);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    std::vector<uint64_t> keys(100);
    std::vector<float> rows(100);
    for (uint64_t k = 0; k < 100; ++k) {
      keys[k] = k;
      rows[k] = k < 20 ? 0.0f : 2.0f;
    }
    const std::vector<double> values = {1, 0, 3, 0, 0, 0, 0, 0, 0, 10};
    KeyRoute route(3);
    route.build(keys);
    CO_ASSERT_OK(co_await client.push<float>(kSparse, 0, route, rows));
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, 0, 0, values));
    const auto row_squares = co_await client.call_function(kSparse, "sum_of_squares", {});
    const auto row_zeros = co_await client.call_function(kSparse, "zeros", {});
    const auto squares = co_await client.call_function(kDense, "sum_of_squares", {});
    const auto zeros = co_await client.call_function(kDense, "zeros", {});
    CO_ASSERT_OK(row_squares.status());
    CO_ASSERT_OK(row_zeros.status());
    CO_ASSERT_OK(squares.status());
    CO_ASSERT_OK(zeros.status());
    EXPECT_EQ(squares->size(), 3u) << "one result for each shard";
    EXPECT_EQ(sum_of<double>(*row_squares), 320);
    EXPECT_EQ(sum_of<uint64_t>(*row_zeros), 20u);
    EXPECT_EQ(sum_of<double>(*squares), 110);
    EXPECT_EQ(sum_of<uint64_t>(*zeros), 7u);
  });
}

// Takes the argument, one double, off every weight of a dense table, and gives back where the shard's part begins.
Result<std::vector<std::byte>> lower_all(Table& table, Bytes argument) {
  ByteCursor cursor(argument);
  const auto by = cursor.take<double>(1);
  if (!cursor.ok() || cursor.left() != 0) return Status(Code::kInvalid, "one double is expected");
  if (table.dense() == nullptr) return Status(Code::kInvalid, "only for dense tables");
  const uint64_t begin = table.dense()->range().begin;
  const std::vector<double> gradients(table.dense()->range().size(), by[0]);
  Contribution contribution;
  contribution.body = Buffer(gradients.size() * sizeof(double));
  std::memcpy(contribution.body.data(), gradients.data(), contribution.body.size());
  contribution.range = {0, gradients.size()};
  table.apply_one(contribution, 1);
  const Bytes bytes = bytes_of(std::span(&begin, 1));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

TEST(Functions, a_users_own_gets_its_argument_and_may_change_the_table) {
  TestStore store(1, 2);
  store.parts.functions.add("lower_all", lower_all);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    const double by = 2.5;
    const Bytes argument = bytes_of(std::span(&by, 1));
    const auto lowered = co_await client.call_function(kDense, "lower_all", argument);
    CO_ASSERT_OK(lowered.status());
    EXPECT_EQ(sum_of<uint64_t>(*lowered), 0u + 5u) << "in the order of the shards";
    std::vector<double> values(10);
    CO_ASSERT_OK(co_await client.pull_range<double>(kDense, 0, 0, values));
    EXPECT_EQ(values, std::vector<double>(10, -2.5));
  });
}

TEST(Functions, errors_say_which_function_and_which_table) {
  TestStore store(1, 2);
  store.parts.functions.add("lower_all", lower_all);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    const double by = 2.5;
    const Bytes argument = bytes_of(std::span(&by, 1));
    const Status wrong_table = status_of(co_await client.call_function(kSparse, "lower_all", argument));
    EXPECT_EQ(wrong_table.text(), "invalid: function 'lower_all' on table 'emb': only for dense tables");
    const Status wrong_argument = status_of(co_await client.call_function(kSparse, "lower_all", {}));
    EXPECT_EQ(wrong_argument.text(), "invalid: function 'lower_all' on table 'emb': one double is expected");
    const Status misspelt = status_of(co_await client.call_function(kSparse, "sum_of_square", {}));
    EXPECT_EQ(misspelt.text(),
              "not found: there is no server function 'sum_of_square' (did you mean 'sum_of_squares'?); there are: "
              "lower_all, sum_of_squares, zeros");
    const Status unknown = status_of(co_await client.call_function(77, "zeros", {}));
    EXPECT_EQ(unknown.text(), "not found: table 77 was not created by this client");
  });
}

TEST(Functions, a_name_given_again_takes_the_place_of_the_old_one) {
  FunctionRegistry registry = FunctionRegistry::standard();
  registry.add("zeros",
               [](Table&, Bytes) -> Result<std::vector<std::byte>> { return Status(Code::kIo, "the new one"); });
  const auto found = registry.find("zeros");
  ASSERT_TRUE(found.ok());
  const auto table = Table::make(dense_spec(), 0, 1, OptimizerRegistry::standard());
  EXPECT_EQ((**found)(**table, {}).status().message(), "the new one");
}

// --- Statistics

TEST(Statistics, tell_what_happened) {
  TestStore store(2, 1);
  std::vector<proto::StatsReply> stats;
  store.run([&](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    TableSpec asp = sparse_spec(), backup = dense_spec();
    asp.sync = Sync::asp();
    asp.non_finite = NonFinite::kZero;
    backup.sync = Sync::backup(1);
    CO_ASSERT_OK(co_await client.create(asp));
    CO_ASSERT_OK(co_await client.create(backup));
    // Half of all touches are of key 42.
    std::vector<uint64_t> keys(8192, 42);
    for (uint64_t i = 0; i < keys.size(); i += 2) keys[i] = 1000 + i;
    KeyRoute route(1);
    route.build(keys);
    std::vector<float> rows(keys.size());
    CO_ASSERT_OK(co_await client.pull<float>(kSparse, 0, route, rows));
    if (rank == 1) CO_ASSERT_OK(co_await io.sleep(seconds(1)));
    rows[0] = rank == 0 ? NAN : 1;
    const std::vector<double> values(10, 1);
    CO_ASSERT_OK(co_await client.push<float>(kSparse, 0, route, rows));
    const Result<Pushed> pushed = co_await client.push_range<double>(kDense, 0, 0, values);
    CO_ASSERT_OK(pushed.status());
    EXPECT_EQ(pushed->late, rank == 1);
    EXPECT_EQ(client.counters().late, rank);
    if (rank == 0) co_return;
    Result<std::vector<proto::StatsReply>> told = co_await client.stats();
    CO_ASSERT_OK(told.status());
    stats = std::move(*told);
  });
  ASSERT_EQ(stats.size(), 1u);
  ASSERT_EQ(stats[0].tables_size(), 2);
  const proto::TableStats& emb = stats[0].tables(0);
  EXPECT_EQ(emb.name(), "emb");
  EXPECT_EQ(emb.rows(), 4097u);
  EXPECT_GT(emb.bytes(), 4097u * (sizeof(float) + sizeof(uint64_t)));
  EXPECT_LE(emb.bytes(), store.server_bytes[0]);
  EXPECT_EQ(emb.pulls(), 2u);
  EXPECT_EQ(emb.pushes(), 2u);
  EXPECT_EQ(emb.keys_pulled(), 2 * 8192u);
  EXPECT_EQ(emb.keys_pushed(), 2 * 8192u);
  EXPECT_EQ(emb.keys_received(), 2 * 8192u) << "each worker sent them once, for its pull";
  EXPECT_EQ(emb.lists_known(), 2u);
  EXPECT_EQ(emb.lists_needed(), 0u);
  EXPECT_EQ(emb.zeroed(), 1u);
  EXPECT_EQ(emb.updates(), 2u);
  EXPECT_EQ(emb.late(), 0u);
  EXPECT_EQ((std::vector<uint64_t>{emb.staleness().begin(), emb.staleness().end()}), (std::vector<uint64_t>{1, 1}));
  ASSERT_GE(emb.hot_keys_size(), 1);
  EXPECT_EQ(emb.hot_keys(0), 42u);
  EXPECT_NEAR(static_cast<double>(emb.hot_counts(0)), 8192, 2500);

  const proto::TableStats& w = stats[0].tables(1);
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(w.rows(), 10u);
  EXPECT_EQ(w.pushes(), 1u);
  EXPECT_EQ(w.keys_pushed(), 10u);
  EXPECT_EQ(w.updates(), 1u);
  EXPECT_EQ(w.late(), 1u);
  EXPECT_EQ((std::vector<uint64_t>{w.staleness().begin(), w.staleness().end()}), (std::vector<uint64_t>{1}));
  EXPECT_EQ(w.hot_keys_size(), 0);
}

}  // namespace
}  // namespace talweg
