#include "store/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/rng.h"
#include "store/sparse_index.h"
#include "store/store.pb.h"

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

// Moves each weight by the rate and remembers which updates it was asked for.
struct Asked {
  std::vector<std::pair<uint64_t, double>> updates;
};
class AskingOptimizer final : public Optimizer<double> {
 public:
  explicit AskingOptimizer(Asked& asked) : asked_(asked) {}
  size_t state_per_weight() const override { return 0; }
  double initial_state(size_t) const override { return 0; }
  void apply(const Rows<double>& rows) override { asked_.updates.emplace_back(rows.number, rows.rate); }

 private:
  Asked& asked_;
};

TEST(Table, updates_are_counted_and_have_the_rate_they_were_given) {
  for (const bool sparse : {false, true}) {
    Asked asked;
    OptimizerRegistry registry;
    registry.add(
        "asking", [](const OptimizerConfig&, BlockShape) { return std::unique_ptr<Optimizer<float>>(); },
        [&](const OptimizerConfig&, BlockShape) {
          return std::unique_ptr<Optimizer<double>>(std::make_unique<AskingOptimizer>(asked));
        });
    TableSpec spec = sparse ? sparse_spec(1) : dense_spec(4);
    spec.optimizer.type = "asking";
    auto made = Table::make(spec, 0, 1, registry);
    ASSERT_TRUE(made.ok());
    Table& table = **made;
    const auto contribution = [&] {
      return sparse ? at_keys(*table.sparse(), {1, 2}, {1, 2}) : at_range({0, 2}, {1, 2});
    };
    double norm = 0;
    table.accumulate(contribution());
    table.apply(0.5);
    Contribution one = contribution();
    table.apply_one(one, 0.25);
    table.accumulate(contribution());
    EXPECT_FALSE(table.apply_if(2, -1, &norm));
    EXPECT_TRUE(table.apply_if(3, 1, &norm));
    table.accumulate(contribution());
    EXPECT_TRUE(table.apply_if(4, INFINITY, &norm));
    EXPECT_EQ(asked.updates, (std::vector<std::pair<uint64_t, double>>{{1, 0.5}, {2, 0.25}, {3, 2}, {3, 3}, {4, 4}}));
    EXPECT_EQ(table.updates(), 4u);
  }
}

TEST(Table, an_update_that_moves_the_weights_too_far_leaves_no_trace) {
  for (const bool sparse : {false, true}) {
    TableSpec spec = sparse ? sparse_spec(2) : dense_spec(8);
    spec.optimizer = {.type = "adagrad", .lr = 1, .epsilon = 0, .initial_accumulator = 9};
    const auto tried = make(spec), plain = make(spec);
    const auto give = [&](Table& table, double gradient) {
      if (sparse) {
        table.accumulate(at_keys(*table.sparse(), {1, 3}, {gradient, 1, -gradient, 2}));
      } else {
        table.accumulate(at_range({1, 3}, {gradient, 1}));
        table.accumulate(at_range({5, 7}, {-gradient, 2}));
      }
    };
    const auto values = [](Table& table) {
      const ExportPiece piece = table.export_from(0, 1000);
      const auto* first = reinterpret_cast<const double*>(piece.values.data());
      return std::vector<double>(first, first + piece.values.size() / sizeof(double));
    };
    for (const double gradient : {4.0, 12.0}) {
      give(*tried, gradient);
      give(*plain, gradient);
      const std::vector<double> before = values(*tried);
      double norm = 0;
      EXPECT_FALSE(tried->apply_if(1, 0.5, &norm));
      EXPECT_GT(norm, 0.5);
      EXPECT_EQ(values(*tried), before);
      double again = 0;
      EXPECT_TRUE(tried->apply_if(1, norm, &again));
      EXPECT_EQ(again, norm);
      plain->apply(1);
      EXPECT_EQ(values(*tried), values(*plain));
    }
  }
}

double moved(Table& table) {
  double norm = -1;
  EXPECT_TRUE(table.apply_if(1, INFINITY, &norm));
  return norm;
}

TEST(Table, tells_how_far_an_update_moved_the_weights) {
  const auto sparse = make(sparse_spec(10));
  std::vector<double> gradients(20);
  gradients[3] = 6;   // moves by 3
  gradients[19] = 8;  // moves by 4
  sparse->accumulate(at_keys(*sparse->sparse(), {5, 6}, gradients));
  EXPECT_EQ(moved(*sparse), 5);
  EXPECT_EQ(weights_of(*sparse->sparse(), {5})[3], -3);
  EXPECT_EQ(moved(*sparse), 0);

  const auto dense = make(dense_spec(100));
  dense->accumulate(at_range({1, 2}, {6}));
  dense->accumulate(at_range({90, 91}, {8}));
  EXPECT_EQ(moved(*dense), 5);
  EXPECT_EQ(weights_of(*dense->dense())[90], -4);
}

TEST(DenseTable, one_contribution_applied_in_place_gives_the_bits_of_a_sum) {
  TableSpec spec = dense_spec(50);
  spec.optimizer = {.type = "adagrad", .lr = 0.1, .l2 = 0.01};
  const auto summed = make(spec), direct = make(spec);
  Rng rng(9);
  for (uint64_t step = 0; step < 50; ++step) {
    const Range range{step % 20, 20 + step % 30};
    std::vector<double> gradients(range.size());
    for (double& gradient : gradients) gradient = rng.normal();
    summed->accumulate(at_range(range, gradients));
    summed->apply(1);
    Contribution contribution = at_range(range, gradients);
    direct->apply_one(contribution, 1);
    ASSERT_EQ(weights_of(*direct->dense()), weights_of(*summed->dense()));
  }
}

// Each shard preconditions the rows it has: the blocks of the matrix are those of a table of their own.
TEST(DenseTable, a_matrix_is_cut_between_its_rows_and_shampoo_sees_whole_blocks) {
  TableSpec whole = dense_spec(6 * 3);
  whole.columns = 3;
  whole.optimizer = {.type = "shampoo", .lr = 0.1};
  Rng rng(3);
  for (uint32_t shard = 0; shard < 2; ++shard) {
    TableSpec block = whole;
    block.size = 3 * 3;
    const auto cut = make(whole, shard, 2), alone = make(block);
    ASSERT_EQ(cut->dense()->range(), (Range{shard * 9, shard * 9 + 9}));
    for (int step = 0; step < 4; ++step) {
      std::vector<double> gradients(9);
      for (double& gradient : gradients) gradient = rng.normal();
      cut->accumulate(at_range({0, 9}, gradients));
      cut->apply(1);
      Contribution contribution = at_range({0, 9}, gradients);
      alone->apply_one(contribution, 1);
      ASSERT_EQ(weights_of(*cut->dense()), weights_of(*alone->dense()));
    }
  }
  // What a step does not cover has the gradient zero.
  const auto covered = make(whole), partly = make(whole);
  std::vector<double> gradients(18);
  gradients[4] = 2;
  Contribution all = at_range({0, 18}, gradients), one = at_range({4, 5}, {2});
  covered->apply_one(all, 1);
  partly->apply_one(one, 1);
  EXPECT_NE(weights_of(*covered->dense())[4], 0);
  EXPECT_EQ(weights_of(*covered->dense()), weights_of(*partly->dense()));
}

TEST(DenseTable, counts_against_a_budget) {
  MemoryBudget budget{.limit = 5'000};
  {
    const auto table = make(dense_spec(400));
    ASSERT_TRUE(table->share(budget).ok());
    EXPECT_EQ(budget.used, table->bytes());
    EXPECT_EQ(make(dense_spec(400))->share(budget).code(), Code::kFull);
  }
  EXPECT_EQ(budget.used, 0u);
}

TEST(Table, a_spec_comes_back_from_its_message_as_it_was) {
  TableSpec sparse = sparse_spec(3);
  sparse.init = {.type = InitType::kNormal, .scale = 0.25, .seed = 9};
  sparse.sync = Sync::ssp(3);
  sparse.rate_by_staleness = true;
  sparse.non_finite = NonFinite::kZero;
  sparse.rows = {.admit_count = 4,
                 .admit_probability = 0.5,
                 .admit_memory = 1 << 20,
                 .expire_after = seconds(90),
                 .max_bytes = uint64_t{3} << 40};
  TableSpec dense = dense_spec(12);
  dense.columns = 4;
  for (const TableSpec& spec : {sparse, dense}) {
    const auto again = from_proto(to_proto(spec));
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(*again, spec);
  }
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
  EXPECT_EQ(refused({.name = "w", .columns = 3}), "table 'w' is sparse and so has no columns");
  EXPECT_EQ(refused({.name = "w", .sparse = false, .size = 10, .columns = 3}),
            "table 'w' has 10 values, which are not whole rows of 3 columns");
  EXPECT_EQ(refused({.name = "w", .sparse = false, .size = 10, .rows = {.admit_count = 2}}),
            "table 'w' is dense: all its values are there from the start, so it has no settings of rows");
  EXPECT_EQ(refused({.name = "w", .rows = {.admit_probability = 0}}),
            "table 'w' admits no key: rows.admit_probability is 0");
  EXPECT_EQ(refused({.name = "w", .sparse = false, .size = uint64_t{1} << 40}, 2),
            "table 'w' has 549755813888 values on each of 2 shards; at most 268435456 fit one shard");
  EXPECT_EQ(
      refused({.name = "w", .optimizer = {.type = "sdg"}}),
      "table 'w': there is no optimizer 'sdg'; there are: adagrad, adam, adamw, ftrl, momentum, nesterov, rmsprop, "
      "sgd, shampoo");
}

}  // namespace
}  // namespace talweg
