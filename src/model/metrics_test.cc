#include "model/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"

namespace talweg {
namespace {

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics.summary()) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

std::vector<std::string> names_of(const Metrics& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.summary()) names.push_back(name);
  return names;
}

float logit(double probability) { return static_cast<float>(std::log(probability / (1 - probability))); }

void add_random(uint64_t seed, int rows, Metrics* metrics) {
  Rng rng(seed);
  for (int i = 0; i < rows; ++i) {
    const bool positive = rng.below(3) == 0;
    metrics->add_score(static_cast<float>(2 * rng.normal() + (positive ? 0.7 : 0)), positive, rng.uniform());
  }
}

Metrics random_binary(uint64_t seed, int rows) {
  Metrics metrics(Objective::kBinary);
  add_random(seed, rows, &metrics);
  return metrics;
}

TEST(Metrics, binary_rows_give_loss_rank_accuracy_and_calibration) {
  Metrics metrics(Objective::kBinary);
  metrics.add_score(logit(0.9), true, 0.1);
  metrics.add_score(logit(0.8), false, 1.5);
  metrics.add_score(logit(0.2), false, 0.2);
  metrics.add_score(logit(0.3), true, 1.0);
  EXPECT_EQ(metrics.rows(), 4u);
  EXPECT_DOUBLE_EQ(value_of(metrics, "loss"), 0.7);
  EXPECT_DOUBLE_EQ(value_of(metrics, "auc"), 0.75);
  EXPECT_DOUBLE_EQ(value_of(metrics, "accuracy"), 0.5);
  EXPECT_NEAR(value_of(metrics, "calibration"), (0.9 + 0.8 + 0.2 + 0.3) / 2, 1e-6);
  EXPECT_NEAR(value_of(metrics, "ece"), (0.1 + 0.8 + 0.2 + 0.7) / 4, 1e-6);
}

TEST(Metrics, the_calibration_error_is_taken_bin_by_bin) {
  Metrics metrics(Objective::kBinary);
  // One bin of 0.62 with half positive, one of 0.12 with none: errors cancel within a bin, not across.
  for (const bool positive : {true, false}) metrics.add_score(logit(0.62), positive, 0);
  for (int i = 0; i < 2; ++i) metrics.add_score(logit(0.12), false, 0);
  EXPECT_NEAR(metrics.expected_calibration_error(), (2 * 0.12 + 2 * 0.12) / 4, 1e-6);
}

// Labels drawn with the very probabilities that are predicted.
TEST(Metrics, probabilities_that_come_true_are_calibrated) {
  Metrics metrics(Objective::kBinary);
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto score = static_cast<float>(rng.normal());
    metrics.add_score(score, rng.uniform() < 1 / (1 + std::exp(-score)), 0);
  }
  EXPECT_NEAR(*metrics.calibration(), 1, 0.02);
  EXPECT_LT(metrics.expected_calibration_error(), 0.02);
}

TEST(Metrics, a_margin_has_no_probability) {
  Metrics metrics(Objective::kMargin);
  metrics.add_score(2, true, 0);
  metrics.add_score(-3, false, 0);
  EXPECT_EQ(names_of(metrics), (std::vector<std::string>{"loss", "auc", "accuracy"}));
  EXPECT_EQ(value_of(metrics, "auc"), 1);
  EXPECT_EQ(value_of(metrics, "accuracy"), 1);
}

TEST(Metrics, regression_gives_the_root_of_the_mean_squared_error) {
  Metrics metrics(Objective::kRegression);
  metrics.add_prediction(1, 4, 4.5);
  metrics.add_prediction(2, -2, 8);
  EXPECT_EQ(names_of(metrics), (std::vector<std::string>{"loss", "rmse"}));
  EXPECT_DOUBLE_EQ(value_of(metrics, "rmse"), std::sqrt(12.5));
  EXPECT_EQ(metrics.auc(), 0.5);
}

TEST(Metrics, classes_give_accuracy_and_how_far_confidence_can_be_trusted) {
  Metrics metrics(Objective::kClasses);
  metrics.add_class(true, 0.9, 0.1);
  metrics.add_class(false, 0.91, 2);
  EXPECT_EQ(names_of(metrics), (std::vector<std::string>{"loss", "accuracy", "ece"}));
  EXPECT_DOUBLE_EQ(value_of(metrics, "accuracy"), 0.5);
  EXPECT_NEAR(value_of(metrics, "ece"), 0.405, 1e-8);
}

TEST(Metrics, without_rows_there_is_nothing_to_tell) {
  for (const Objective objective :
       {Objective::kBinary, Objective::kMargin, Objective::kRegression, Objective::kClasses}) {
    const Metrics metrics(objective);
    EXPECT_TRUE(metrics.summary().empty());
    EXPECT_EQ(metrics.loss(), 0);
    EXPECT_EQ(metrics.expected_calibration_error(), 0);
    EXPECT_FALSE(metrics.calibration().has_value());
  }
}

TEST(Metrics, a_model_that_diverged_is_told_and_breaks_nothing) {
  Metrics metrics(Objective::kBinary);
  metrics.add_score(std::nanf(""), true, NAN);
  metrics.add_score(INFINITY, false, INFINITY);
  metrics.add_score(-INFINITY, true, INFINITY);
  EXPECT_TRUE(std::isnan(metrics.loss()));
  EXPECT_EQ(metrics.accuracy(), 0);
  EXPECT_DOUBLE_EQ(metrics.expected_calibration_error(), 1);
}

// Against one that saw all rows itself.
TEST(Metrics, parts_merge_to_the_whole_in_any_order_and_but_for_the_sums_to_the_same_bits) {
  const std::array parts = {random_binary(1, 300), random_binary(2, 100), random_binary(3, 1)};
  Metrics whole = random_binary(1, 300);
  add_random(2, 100, &whole);
  add_random(3, 1, &whole);
  for (const auto& order : {std::array<size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    Metrics merged(Objective::kBinary);
    for (const size_t i : order) EXPECT_TRUE(merged.merge(parts[i]).ok());
    EXPECT_EQ(merged.rows(), 401u);
    EXPECT_NEAR(merged.loss(), whole.loss(), 1e-12);
    for (const char* name : {"auc", "accuracy", "calibration", "ece"}) {
      EXPECT_EQ(value_of(merged, name), value_of(whole, name)) << name;
    }
  }
}

TEST(Metrics, errors_of_a_regression_merge) {
  Metrics a(Objective::kRegression), b(Objective::kRegression);
  a.add_prediction(1, 4, 4.5);
  b.add_prediction(2, -2, 8);
  ASSERT_TRUE(a.merge(b).ok());
  EXPECT_DOUBLE_EQ(a.rmse(), std::sqrt(12.5));
}

TEST(Metrics, other_objectives_are_not_merged) {
  Metrics metrics(Objective::kBinary);
  EXPECT_EQ(metrics.merge(Metrics(Objective::kRegression)).code(), Code::kInvalid);
  EXPECT_EQ(metrics.merge(Metrics(Objective::kMargin)).code(), Code::kInvalid);
}

TEST(Metrics, bytes_come_back_as_what_they_were) {
  Metrics regression(Objective::kRegression), classes(Objective::kClasses), margin(Objective::kMargin);
  for (int i = 0; i < 300; ++i) {
    regression.add_prediction(i, 3, i);
    classes.add_class(i % 3 == 0, i / 300.0, i);
    margin.add_score(static_cast<float>(i - 150), i % 7 > 2, i);
  }
  for (const Metrics& metrics : {random_binary(4, 5000), regression, classes, margin, Metrics(Objective::kBinary)}) {
    const auto back = Metrics::parse(metrics.serialize());
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->rows(), metrics.rows());
    EXPECT_EQ(back->objective(), metrics.objective());
    EXPECT_EQ(back->summary(), metrics.summary());
    EXPECT_EQ(back->serialize(), metrics.serialize());
  }
}

// A worker's report has to fit one message head, 1 MiB.
TEST(Metrics, every_bucket_filled_still_fits_a_message) {
  Metrics metrics(Objective::kBinary);
  for (int i = 0; i < Ranking::kBuckets; ++i) {
    const float score = Ranking::kRange * (2 * (static_cast<float>(i) + 0.5f) / Ranking::kBuckets - 1);
    for (int n = 0; n < 3; ++n) metrics.add_score(score, n > 0, 1);
  }
  EXPECT_GT(metrics.serialize().size(), 190'000u);
  EXPECT_LT(metrics.serialize().size(), 200'000u) << "three bytes to a bucket";
}

TEST(Metrics, bytes_that_are_no_metrics_are_refused_and_do_no_harm) {
  const std::string good = random_binary(5, 60).serialize();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(Metrics::parse(std::string_view(good).substr(0, size)).status().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(Metrics::parse(good + '\0').status().code(), Code::kCorrupt);
  EXPECT_EQ(Metrics::parse("\x04" + good.substr(1)).status().code(), Code::kCorrupt) << "no such objective";
  EXPECT_EQ(Metrics::parse(std::string(40, '\xff')).status().code(), Code::kCorrupt);
  // Whatever is changed, parsing ends, and what it takes for metrics can be asked.
  Rng rng(6);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (int n = 0; n < 3; ++n) bad[rng.below(bad.size())] = static_cast<char>(rng.next());
    const auto parsed = Metrics::parse(bad);
    if (parsed.ok()) parsed->summary();
  }
}

TEST(Metrics, a_bucket_beyond_the_last_is_refused) {
  std::string bytes = Metrics(Objective::kBinary).serialize();
  bytes.back() = 1;  // one bucket
  const std::string counts = {1, 0};
  EXPECT_TRUE(Metrics::parse(bytes + "\xff\xff\x03" + counts).ok()) << "65535";
  EXPECT_FALSE(Metrics::parse(bytes + "\x80\x80\x04" + counts).ok()) << "65536";
  EXPECT_FALSE(Metrics::parse(bytes + std::string(9, '\xff') + "\x01" + counts).ok()) << "2^64 - 1";
}

}  // namespace
}  // namespace talweg
