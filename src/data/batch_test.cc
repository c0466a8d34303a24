#include "data/batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "data/generator.h"

namespace talweg {
namespace {

struct Memory {
  std::vector<float> labels, values;
  std::vector<uint64_t> offsets, keys;
};

Dataset random_data(size_t rows, uint64_t key_range, bool with_values, uint64_t seed) {
  Rng rng(seed);
  auto memory = std::make_shared<Memory>();
  memory->offsets.push_back(0);
  for (size_t i = 0; i < rows; ++i) {
    for (uint64_t n = rng.below(20); n > 0; --n) memory->keys.push_back(rng.below(key_range));
    memory->offsets.push_back(memory->keys.size());
    memory->labels.push_back(static_cast<float>(i));
  }
  if (with_values) {
    for (size_t i = 0; i < memory->keys.size(); ++i) memory->values.push_back(static_cast<float>(rng.uniform()));
  }
  DatasetColumns columns;
  columns.labels = memory->labels;
  columns.offsets = memory->offsets;
  columns.keys64 = memory->keys;
  columns.values = memory->values;
  columns.max_key = key_range;
  return Dataset(columns, memory);
}

void expect_same_rows(const Dataset& data, const std::vector<uint64_t>& rows, const Batch& batch) {
  ASSERT_EQ(batch.rows(), rows.size());
  ASSERT_EQ(batch.offsets.size(), rows.size() + 1);
  ASSERT_EQ(batch.index.size(), batch.offsets.back());
  ASSERT_EQ(batch.values.size(), data.has_values() ? batch.index.size() : 0);
  std::unordered_map<uint64_t, size_t> positions;
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(batch.labels[i], data.label(rows[i]));
    ASSERT_EQ(batch.offsets[i + 1] - batch.offsets[i], data.row_size(rows[i]));
    for (size_t j = 0; j < data.row_size(rows[i]); ++j) {
      const auto [key, value] = data.entry(rows[i], j);
      const size_t at = batch.offsets[i] + j;
      const size_t position = positions.try_emplace(key, positions.size()).first->second;
      ASSERT_EQ(batch.index[at], position) << "positions are given in order of first appearance";
      ASSERT_EQ(batch.keys[position], key);
      ASSERT_EQ(data.has_values() ? batch.values[at] : 1.0f, value);
    }
  }
  EXPECT_EQ(batch.keys.size(), positions.size());
}

TEST(Batch, holds_the_rows_asked_for_with_their_distinct_keys) {
  Rng rng(3);
  BatchBuilder builder;
  Batch batch;
  for (const bool with_values : {true, false}) {
    for (const uint64_t key_range : {uint64_t{1}, uint64_t{50}, uint64_t{100'000}, ~uint64_t{0}}) {
      const Dataset data = random_data(500, key_range, with_values, rng.next());
      for (const size_t size : {0, 1, 2, 17, 400, 3}) {
        std::vector<uint64_t> rows(size);
        for (uint64_t& row : rows) row = rng.below(data.rows());
        builder.build(data, rows, &batch);
        expect_same_rows(data, rows, batch);
      }
    }
  }
}

TEST(Batch, narrow_keys_are_built_like_wide_ones) {
  ClickOptions options;
  options.features = 5000;
  const Dataset data = generate_clicks(options, 0, 300, 1);
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < 300; ++i) rows.push_back(299 - i);
  BatchBuilder builder;
  Batch batch;
  builder.build(data, rows, &batch);
  expect_same_rows(data, rows, batch);
}

TEST(Batch, keys_with_equal_low_or_high_bits_stay_apart) {
  auto memory = std::make_shared<Memory>();
  memory->labels = {1};
  for (uint64_t i = 0; i < 3000; ++i) memory->keys.push_back(i % 2 == 0 ? i << 48 : i);
  memory->offsets = {0, memory->keys.size()};
  DatasetColumns columns;
  columns.labels = memory->labels;
  columns.offsets = memory->offsets;
  columns.keys64 = memory->keys;
  const Dataset data(columns, memory);
  BatchBuilder builder;
  Batch batch;
  builder.build(data, std::vector<uint64_t>{0, 0}, &batch);
  expect_same_rows(data, {0, 0}, batch);
}

TEST(Batch, building_allocates_nothing_once_the_largest_batch_was_seen) {
  const Dataset data = random_data(2000, 10'000, true, 9);
  std::vector<uint64_t> rows(data.rows());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  BatchBuilder builder;
  Batch batch;
  builder.build(data, rows, &batch);
  const auto places = [&] {
    return std::vector<const void*>{batch.keys.data(), batch.offsets.data(), batch.index.data(), batch.values.data(),
                                    batch.labels.data()};
  };
  const auto before = places();
  for (size_t size = 1; size <= rows.size(); size += 333) {
    builder.build(data, std::span(rows).first(size), &batch);
    EXPECT_EQ(places(), before);
  }
}

}  // namespace
}  // namespace talweg
