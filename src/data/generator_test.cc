#include "data/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
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

// What earlier releases made: examples and benchmarks must not move.
TEST(Generator, clicks_keep_their_bits) {
  const ClickGenerator generator(ClickOptions{});
  std::vector<uint64_t> keys(39);
  uint64_t hash = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    hash = mix64(hash ^ static_cast<uint64_t>(generator.row(i * 1'000'003, keys)));
    for (const uint64_t key : keys) hash = mix64(hash ^ key);
  }
  EXPECT_EQ(hash, 0xd153591617b6c238u);
}

TEST(Generator, with_factors_pairs_of_keys_add_the_interaction_asked_for) {
  ClickOptions plain, paired;
  paired.factors = 3;
  paired.interaction_sd = 1.5;
  const ClickGenerator without(plain), with(paired);
  std::vector<uint64_t> keys(39);
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 5'000; ++i) {
    with.row(i, keys);
    const double added = with.planted_logit(keys) - without.planted_logit(keys);
    sum += added;
    squares += added * added;
  }
  EXPECT_NEAR(std::sqrt(squares / 5'000 - sum * sum / 5'000 / 5'000), 1.5, 0.3);
}

TEST(Generator, regression_is_the_planted_function_and_noise) {
  const RegressionGenerator generator({.features = 5000, .fields = 10, .bias = 3, .weight_sd = 0.4, .noise_sd = 0.25});
  std::vector<uint64_t> keys(10);
  double sum = 0, error = 0, spread = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const double label = generator.row(i, keys), planted = generator.planted(keys);
    sum += label - planted;
    error += (label - planted) * (label - planted);
    spread += (planted - 3) * (planted - 3);
  }
  EXPECT_NEAR(sum / 10'000, 0, 0.01);
  EXPECT_NEAR(std::sqrt(error / 10'000), 0.25, 0.01);
  EXPECT_GT(std::sqrt(spread / 10'000), 0.5);
}

TEST(Generator, a_class_comes_with_its_planted_probability) {
  const ClassGenerator generator({.features = 1000, .fields = 5, .classes = 3, .weight_sd = 0.5});
  std::vector<uint64_t> keys(5);
  std::vector<double> expected(3), counted(3);
  for (uint64_t i = 0; i < 20'000; ++i) {
    const float label = generator.row(i, keys);
    ASSERT_TRUE(label == 0 || label == 1 || label == 2);
    counted[static_cast<size_t>(label)] += 1;
    double weights[3], sum = 0;
    for (uint32_t c = 0; c < 3; ++c) sum += weights[c] = std::exp(generator.planted_logit(keys, c));
    for (uint32_t c = 0; c < 3; ++c) expected[c] += weights[c] / sum;
  }
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(counted[c] / 20'000, expected[c] / 20'000, 0.01);
}

TEST(Generator, ratings_are_of_a_user_and_an_item) {
  const RatingOptions options{.users = 50, .items = 30, .noise_sd = 0.5};
  const RatingGenerator generator(options);
  EXPECT_EQ(generator.features(), 80u);
  std::vector<uint64_t> keys(2);
  std::map<uint64_t, int> users, items;
  double error = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const double rating = generator.row(i, keys);
    ASSERT_LT(keys[0], 50u);
    ASSERT_GE(keys[1], 50u);
    ASSERT_LT(keys[1], 80u);
    ++users[keys[0]];
    ++items[keys[1]];
    error += (rating - generator.planted(keys)) * (rating - generator.planted(keys));
  }
  EXPECT_EQ(users.size(), 50u);
  EXPECT_EQ(items.size(), 30u);
  EXPECT_NEAR(std::sqrt(error / 10'000), 0.5, 0.01);
}

std::set<uint64_t> keys_of(const RowGenerator& generator, uint64_t first_row, uint64_t rows) {
  std::set<uint64_t> all;
  std::vector<uint64_t> keys(generator.row_size());
  for (uint64_t i = first_row; i < first_row + rows; ++i) {
    generator.row(i, keys);
    all.insert(keys.begin(), keys.end());
  }
  return all;
}

ClickOptions drifting(double drift) {
  ClickOptions options;
  options.features = uint64_t{1} << 60;
  options.fields = 5;
  options.drift = drift;
  options.window = 500;
  return options;
}

// Every number of new keys per row, by set of all keys seen: the initial window, and what was born since.
TEST(Generator, drift_brings_the_given_number_of_new_keys_per_row) {
  for (const double drift : {0.25, 1.0, 2.5, 5.0}) {
    const ClickGenerator generator(drifting(drift));
    const auto expected = static_cast<size_t>(4000 * drift);
    const size_t distinct = keys_of(generator, 0, 4000).size();
    EXPECT_GE(distinct, expected) << drift;
    EXPECT_LE(distinct, expected + 500) << drift;
    // Long after the start, all keys but those of one window are new.
    const uint64_t later = 1'000'000'000;
    const size_t distinct_later = keys_of(generator, later, 4000).size();
    EXPECT_GE(distinct_later, expected) << drift;
    EXPECT_LE(distinct_later, expected + 500) << drift;
  }
}

TEST(Generator, drifting_keys_fade_and_do_not_come_back) {
  const ClickGenerator generator(drifting(1));
  const auto before = keys_of(generator, 0, 1000), overlapping = keys_of(generator, 1000, 1000),
             after = keys_of(generator, 1500, 1000);
  const auto common = [&](const std::set<uint64_t>& other) {
    std::vector<uint64_t> both;
    std::set_intersection(before.begin(), before.end(), other.begin(), other.end(), std::back_inserter(both));
    return both.size();
  };
  EXPECT_GT(common(overlapping), 50u);
  EXPECT_EQ(common(after), 0u);
}

TEST(Generator, drifting_keys_stay_in_their_fields_part_and_are_spread_over_it) {
  const ClickGenerator generator(drifting(1));
  std::vector<uint64_t> keys(5);
  const uint64_t part = (uint64_t{1} << 60) / 5;
  std::vector<int> in_half(2);
  for (uint64_t i = 0; i < 2000; ++i) {
    generator.row(i, keys);
    for (uint64_t f = 0; f < 5; ++f) {
      ASSERT_EQ(std::min<uint64_t>(keys[f] / part, 4), f);
      ++in_half[keys[f] % part > part / 2];
    }
  }
  EXPECT_NEAR(in_half[0], 5000, 500);
}

TEST(Generator, every_kind_is_the_same_as_text_and_on_any_number_of_threads) {
  TempDir folder;
  const RegressionGenerator regression({.features = 1000, .fields = 3});
  const ClassGenerator classes({.features = 1000, .fields = 3, .classes = 12});
  const RatingGenerator ratings({.users = 100, .items = 20});
  const ClickGenerator drift(drifting(0.5));
  const std::pair<const char*, const RowGenerator*> kinds[] = {
      {"regression", &regression}, {"classes", &classes}, {"ratings", &ratings}, {"drift", &drift}};
  for (const auto& [name, generator] : kinds) {
    DatasetOptions open;
    open.path = folder.path(std::string(name) + ".svm");
    ASSERT_TRUE(write_rows(open.path, *generator, 50, 5'000, 2).ok());
    const auto read = open_dataset(open);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_TRUE(same_rows(*read, generate(*generator, 50, 5'000, 1))) << name;
    EXPECT_TRUE(same_rows(*read, generate(*generator, 50, 5'000, 3))) << name;
  }
}

TEST(Generator, what_cannot_be_planted_is_refused) {
  ClickOptions many = drifting(5.5), crowded = drifting(1), unbounded;
  crowded.window = 4;
  unbounded.interaction_sd = INFINITY;
  EXPECT_NE(many.validate().message().find("new keys per row"), std::string::npos);
  EXPECT_NE(crowded.validate().message().find("live at a time"), std::string::npos);
  EXPECT_NE(unbounded.validate().message().find("must be finite"), std::string::npos);
  EXPECT_FALSE(ClickOptions{.drift = NAN}.validate().ok());
  EXPECT_FALSE(RegressionOptions{.noise_sd = NAN}.validate().ok());
  EXPECT_FALSE(ClassOptions{.classes = 1}.validate().ok());
  EXPECT_FALSE(RatingOptions{.items = 0}.validate().ok());
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
