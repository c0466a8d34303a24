#include "data/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/temp_dir.h"
#include "data/cache.h"

namespace talweg {
namespace {

bool same_rows(const Dataset& a, const Dataset& b) {
  if (a.rows() != b.rows() || a.nonzeros() != b.nonzeros() || a.max_key() != b.max_key()) return false;
  for (size_t i = 0; i < a.rows(); ++i) {
    if (a.label(i) != b.label(i) || a.row_size(i) != b.row_size(i)) return false;
    for (size_t j = 0; j < a.row_size(i); ++j) {
      if (a.entry(i, j) != b.entry(i, j)) return false;
    }
  }
  return true;
}

// The chance that a random positive has the higher score than a random negative.
double auc(std::vector<std::pair<double, float>> scored) {
  std::sort(scored.begin(), scored.end());
  double negatives = 0, pairs = 0, positives = 0;
  for (const auto& [score, label] : scored) {
    (label > 0 ? positives : negatives) += 1;
    if (label > 0) pairs += negatives;
  }
  return pairs / (positives * negatives);
}

TEST(Generator, rows_do_not_depend_on_threads_or_on_where_one_starts) {
  const ClickOptions options;
  const Dataset all = generate_clicks(options, 0, 10'000, 1);
  EXPECT_TRUE(same_rows(all, generate_clicks(options, 0, 10'000, 3)));
  const Dataset tail = generate_clicks(options, 9'990, 10, 2);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(tail.entry(i, 5), all.entry(9'990 + i, 5));
  ClickOptions other;
  other.seed = 2;
  EXPECT_FALSE(same_rows(all, generate_clicks(other, 0, 10'000, 1)));
}

TEST(Generator, a_row_has_one_key_in_each_fields_part) {
  ClickOptions options;
  options.features = 1000;
  options.fields = 7;
  const ClickGenerator generator(options);
  std::vector<uint64_t> keys(7);
  for (uint64_t i = 0; i < 2000; ++i) {
    const float label = generator.row(i, keys);
    EXPECT_TRUE(label == 0 || label == 1);
    for (uint64_t f = 0; f < 7; ++f) {
      ASSERT_GE(keys[f], 1000 * f / 7);
      ASSERT_LT(keys[f], 1000 * (f + 1) / 7);
    }
  }
}

TEST(Generator, the_commonest_key_comes_twice_as_often_as_the_second) {
  ClickOptions options;
  options.features = 1 << 16;
  options.fields = 1;
  const Dataset data = generate_clicks(options, 0, 50'000, 0);
  std::map<uint64_t, double> counts;
  for (size_t i = 0; i < data.rows(); ++i) ++counts[data.entry(i, 0).first];
  std::vector<double> by_count;
  for (const auto& [key, count] : counts) by_count.push_back(count);
  std::sort(by_count.rbegin(), by_count.rend());
  // Rank r has probability log(1 + 1/r) / log(65536).
  EXPECT_NEAR(by_count[0] / 50'000, 1.0 / 16, 0.005);
  EXPECT_NEAR(by_count[1] / 50'000, 0.585 / 16, 0.005);
  EXPECT_GT(by_count.size(), 5'000u);
}

TEST(Generator, the_planted_model_ranks_well_and_a_quarter_are_clicks) {
  const ClickGenerator generator(ClickOptions{});
  std::vector<uint64_t> keys(generator.options().fields);
  std::vector<std::pair<double, float>> scored;
  double clicks = 0;
  for (uint64_t i = 0; i < 40'000; ++i) {
    const float label = generator.row(i, keys);
    scored.emplace_back(generator.planted_logit(keys), label);
    clicks += label;
  }
  EXPECT_NEAR(clicks / 40'000, 0.25, 0.03);
  EXPECT_NEAR(auc(scored), 0.79, 0.015);
}

TEST(Generator, text_holds_the_same_rows_as_memory) {
  TempDir folder;
  for (const uint64_t features : {uint64_t{50'000}, uint64_t{1} << 40}) {
    ClickOptions options;
    options.features = features;
    DatasetOptions open;
    open.path = folder.path("clicks.svm");
    ASSERT_TRUE(write_clicks(open.path, options, 100, 9'000, 3).ok());
    const auto read = open_dataset(open);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_TRUE(same_rows(*read, generate_clicks(options, 100, 9'000)));
  }
}

TEST(Generator, options_that_make_no_sense_are_refused_and_write_nothing) {
  TempDir folder;
  ClickOptions options;
  options.features = 10;
  EXPECT_EQ(write_clicks(folder.path("a.svm"), options, 0, 10).code(), Code::kInvalid);
  EXPECT_EQ(write_clicks(folder.path("none/a.svm"), ClickOptions{}, 0, 10).code(), Code::kNotFound);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace talweg
