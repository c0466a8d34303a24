#include "store/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/rng.h"
#include "store/sparse_index.h"

namespace talweg {
namespace {

TableSpec sparse_spec(uint32_t width) {
  return {.id = 1, .name = "w", .width = width, .type = ValueType::kFloat64, .optimizer = {.lr = 0.5}};
}
TableSpec dense_spec(uint64_t size) {
  return {.id = 2, .name = "d", .sparse = false, .size = size, .type = ValueType::kFloat64, .optimizer = {.lr = 0.5}};
}
std::unique_ptr<Table> make(const TableSpec& spec, uint32_t shard = 0, uint32_t shards = 1) {
  auto table = Table::make(spec, shard, shards, OptimizerRegistry::standard());
  EXPECT_TRUE(table.ok()) << table.status().text();
  return std::move(*table);
}

Contribution gradients_of(const std::vector<double>& values) {
  Contribution contribution;
  contribution.body = Buffer(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(contribution.body.data(), values.data(), contribution.body.size());
  return contribution;
}
Contribution at_keys(SparseTable& table, const std::vector<uint64_t>& keys, const std::vector<double>& values) {
  Contribution contribution = gradients_of(values);
  auto rows = std::make_shared<std::vector<uint32_t>>();
  EXPECT_TRUE(table.touch(keys, Time(), *rows).ok());
  contribution.rows = *rows;
  contribution.rows_own = std::move(rows);
  return contribution;
}
Contribution at_range(Range range, const std::vector<double>& values) {
  Contribution contribution = gradients_of(values);
  contribution.range = range;
  return contribution;
}
std::vector<double> weights_of(const SparseTable& table, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> rows;
  table.find(keys, rows);
  std::vector<double> values(keys.size() * table.spec().width);
  table.gather(rows, std::as_writable_bytes(std::span(values)));
  return values;
}
std::vector<double> weights_of(const DenseTable& table) {
  const Bytes bytes = table.view({0, table.range().size()});
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(SparseTable, untouched_keys_read_as_zero_and_stay_untouched) {
  const auto table = make(sparse_spec(2));
  EXPECT_EQ(weights_of(*table->sparse(), {5, ~uint64_t{0}}), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(table->sparse()->rows(), 0u);
}

TEST(SparseTable, a_billion_key_space_costs_a_few_megabytes_until_touched) {
  const auto table = make(sparse_spec(8));
  Rng rng(3);
  std::vector<uint64_t> keys(10'000);
  for (uint64_t& key : keys) key = rng.below(1'000'000'000);
  table->accumulate(at_keys(*table->sparse(), keys, std::vector<double>(80'000, 1.0)));
  table->apply(1);
  EXPECT_LE(table->bytes(), 4u << 20);
}

TEST(SparseTable, a_key_that_a_list_holds_twice_gets_the_sum) {
  const auto table = make(sparse_spec(1));
  table->accumulate(at_keys(*table->sparse(), {7, 8, 7}, {1, 10, 3}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table->sparse(), {7, 8}), (std::vector<double>{-2, -5}));
}

TEST(SparseTable, l2_is_applied_once_however_many_touch_a_row) {
  TableSpec spec = sparse_spec(1);
  spec.optimizer.l2 = 0.5;
  const auto table = make(spec);
  table->accumulate(at_keys(*table->sparse(), {1, 2}, {-8, -8}));
  table->apply(1);  // both at 4
  for (int worker = 0; worker < 3; ++worker) table->accumulate(at_keys(*table->sparse(), {1}, {0}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table->sparse(), {1, 2}), (std::vector<double>{3, 4}));
}

TEST(SparseTable, follows_a_map_through_random_steps) {
  for (const uint32_t width : {1u, 3u}) {
    const auto table = make(sparse_spec(width));
    std::map<uint64_t, std::vector<double>> reference;
    Rng rng(width);
    for (int step = 0; step < 100; ++step) {
      std::map<uint64_t, std::vector<double>> sums;
      for (int worker = 0; worker < 3; ++worker) {
        std::vector<uint64_t> keys(rng.below(40));
        for (uint64_t& key : keys) key = rng.below(300) * 0x10001;
        std::vector<double> gradients(keys.size() * width);
        for (double& gradient : gradients) gradient = rng.normal();
        for (size_t i = 0; i < keys.size(); ++i) {
          std::vector<double>& sum = sums[keys[i]];
          sum.resize(width);
          for (uint32_t j = 0; j < width; ++j) sum[j] += gradients[i * width + j];
        }
        table->accumulate(at_keys(*table->sparse(), keys, gradients));
      }
      table->apply(1);
      for (const auto& [key, sum] : sums) {
        std::vector<double>& row = reference[key];
        row.resize(width);
        for (uint32_t j = 0; j < width; ++j) row[j] -= 0.5 * sum[j];
      }
    }
    ASSERT_EQ(table->sparse()->rows(), reference.size());
    for (const auto& [key, row] : reference) ASSERT_EQ(weights_of(*table->sparse(), {key}), row);
  }
}

TEST(SparseTable, is_exported_in_bounded_pieces_sorted_by_key) {
  const auto table = make(sparse_spec(2));
  std::vector<uint64_t> keys = {~uint64_t{0}, 0, 17, 3, 99};
  table->accumulate(at_keys(*table->sparse(), keys, {-2, -2, -4, -4, -6, -6, -8, -8, -10, -10}));
  table->apply(1);
  std::vector<uint64_t> exported;
  std::vector<double> values;
  ExportPiece piece;
  do {
    piece = table->export_from(piece.next, 2 * (8 + 16));
    EXPECT_LE(piece.rows, 2u);
    ASSERT_EQ(piece.keys.size(), piece.rows);
    exported.insert(exported.end(), piece.keys.begin(), piece.keys.end());
    const auto* first = reinterpret_cast<const double*>(piece.values.data());
    values.insert(values.end(), first, first + 2 * piece.rows);
  } while (!piece.done);
  EXPECT_EQ(exported, (std::vector<uint64_t>{0, 3, 17, 99, ~uint64_t{0}}));
  EXPECT_EQ(values, (std::vector<double>{2, 2, 4, 4, 3, 3, 5, 5, 1, 1}));
}

TEST(SparseTable, an_empty_one_is_exported_as_nothing) {
  const ExportPiece piece = make(sparse_spec(1))->export_from(0, 100);
  EXPECT_TRUE(piece.done);
  EXPECT_EQ(piece.rows, 0u);
}

TEST(DenseTable, a_step_changes_what_its_ranges_cover_once) {
  TableSpec spec = dense_spec(10);
  spec.optimizer.l2 = 1;
  const auto table = make(spec);
  table->accumulate(at_range({0, 10}, std::vector<double>(10, -2)));
  table->apply(1);  // all at 1
  table->accumulate(at_range({7, 9}, {1, 1}));
  table->accumulate(at_range({1, 3}, {1, 1}));
  table->accumulate(at_range({2, 4}, {2, 2}));
  table->accumulate(at_range({5, 5}, {}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table->dense()), (std::vector<double>{1, 0, -1, -0.5, 1, 1, 1, 0, 0, 1}));
}

TEST(DenseTable, follows_an_array_through_random_ranges) {
  const auto table = make(dense_spec(1000), 1, 3);
  ASSERT_EQ(table->dense()->range(), (Range{333, 666}));
  const uint64_t size = 333;
  std::vector<double> reference(size);
  Rng rng(5);
  for (int step = 0; step < 200; ++step) {
    std::vector<double> sums(size);
    for (int worker = 0; worker < 4; ++worker) {
      const uint64_t a = rng.below(size + 1), b = rng.below(size + 1);
      const Range range{std::min(a, b), std::max(a, b)};
      std::vector<double> gradients(range.size());
      for (double& gradient : gradients) gradient = rng.normal();
      for (uint64_t i = range.begin; i < range.end; ++i) sums[i] += gradients[i - range.begin];
      table->accumulate(at_range(range, gradients));
    }
    table->apply(1);
    for (uint64_t i = 0; i < size; ++i) reference[i] -= 0.5 * sums[i];
    ASSERT_EQ(weights_of(*table->dense()), reference) << step;
  }
}

TEST(DenseTable, state_lies_behind_all_weights) {
  TableSpec spec = dense_spec(4);
  spec.optimizer = {.type = "adagrad", .lr = 1, .epsilon = 0, .initial_accumulator = 9};
  const auto table = make(spec);
  table->accumulate(at_range({1, 3}, {4, 4}));
  table->apply(1);
  table->accumulate(at_range({0, 2}, {4, 12}));
  table->apply(1);
  EXPECT_EQ(weights_of(*table->dense()), (std::vector<double>{-0.8, -0.8 - 12 / 13.0, -0.8, 0}));
}

TEST(DenseTable, is_exported_in_bounded_pieces) {
  const auto table = make(dense_spec(1000), 1, 3);
  table->accumulate(at_range({0, 333}, std::vector<double>(333, -2)));
  table->apply(1);
  uint64_t exported = 0;
  ExportPiece piece;
  do {
    piece = table->export_from(piece.next, 100 * sizeof(double));
    EXPECT_LE(piece.rows, 100u);
    exported += piece.rows;
  } while (!piece.done);
  EXPECT_EQ(exported, 333u);
}

TEST(Table, values_that_are_not_finite_are_found) {
  std::vector<float> floats(100, 1e38f);
  std::vector<double> doubles(100, -1e308);
  EXPECT_FALSE(find_non_finite(std::as_bytes(std::span(floats)), ValueType::kFloat32));
  EXPECT_FALSE(find_non_finite(std::as_bytes(std::span(doubles)), ValueType::kFloat64));
  floats[63] = -INFINITY;
  doubles[99] = NAN;
  EXPECT_EQ(find_non_finite(std::as_bytes(std::span(floats)), ValueType::kFloat32), 63u);
  EXPECT_EQ(find_non_finite(std::as_bytes(std::span(doubles)), ValueType::kFloat64), 99u);
}

TEST(Table, specs_that_cannot_be_held_are_refused) {
  const auto refused = [](const TableSpec& spec, uint32_t shards = 1) {
    return Table::make(spec, 0, shards, OptimizerRegistry::standard()).status().message();
  };
  EXPECT_EQ(refused({.id = 3}), "table 3 needs a name of 1 to 256 bytes");
  EXPECT_EQ(refused({.name = "w", .width = 0}), "table 'w' has rows of 0 values; 1 to 65536 are allowed");
  EXPECT_EQ(refused({.name = "w", .size = 3}), "table 'w' is sparse and so has no size");
  EXPECT_EQ(refused({.name = "w", .sparse = false, .width = 2, .size = 3}),
            "table 'w' is dense and so has width 1, not 2");
  EXPECT_EQ(refused({.name = "w", .sparse = false}), "table 'w' is dense and needs a size");
  EXPECT_EQ(refused({.name = "w", .sparse = false, .size = uint64_t{1} << 40}, 2),
            "table 'w' has 549755813888 values on each of 2 shards; at most 268435456 fit one shard");
  EXPECT_EQ(
      refused({.name = "w", .optimizer = {.type = "sdg"}}),
      "table 'w': there is no optimizer 'sdg'; there are: adagrad, adam, adamw, ftrl, momentum, nesterov, rmsprop, "
      "sgd, shampoo");
}

}  // namespace
}  // namespace talweg
