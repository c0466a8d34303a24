// Every optimizer against the numbers of tests/golden/optimizers.json, which PyTorch made and, where it has no such
// optimizer, the papers' algorithms written out in numpy (tests/golden/optimizers.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/config.h"
#include "optim/testing.h"

namespace talweg {
namespace {

struct GoldenCase {
  OptimizerConfig config;
  BlockShape shape;
  std::vector<double> weights;
  std::vector<std::vector<double>> gradients, after;
};

std::vector<double> numbers_of(const YAML::Node& list) {
  std::vector<double> numbers;
  for (const YAML::Node& item : list) numbers.push_back(item.as<double>());
  return numbers;
}

std::vector<std::vector<double>> lists_of(const YAML::Node& list) {
  std::vector<std::vector<double>> lists;
  for (const YAML::Node& item : list) lists.push_back(numbers_of(item));
  return lists;
}

// JSON is YAML too, so an optimizer is read as in a job file.
Result<std::vector<GoldenCase>> golden_cases() {
  const std::string path = std::string(TALWEG_GOLDEN) + "/optimizers.json";
  ASSIGN(const std::string text, read_text_file(path));
  ASSIGN(const YAML::Node groups, parse_yaml(text, path));
  std::vector<GoldenCase> cases;
  for (const YAML::Node& group : groups) {
    GoldenCase golden{.config = {},
                      .shape = {group["rows"].as<uint64_t>(), group["columns"].as<uint64_t>()},
                      .weights = numbers_of(group["weights"]),
                      .gradients = lists_of(group["gradients"]),
                      .after = {}};
    for (const YAML::Node& one : group["cases"]) {
      ASSIGN(golden.config, config_from_yaml<OptimizerConfig>(one["optimizer"], path));
      golden.after = lists_of(one["after"]);
      cases.push_back(golden);
    }
  }
  return cases;
}

template <class Real>
std::vector<Real> rounded(const std::vector<double>& numbers) {
  return std::vector<Real>(numbers.begin(), numbers.end());
}

// Relative to the largest weight: where gradients cancel, a single weight may come close to zero.
template <class Real>
void expect_golden(const GoldenCase& golden, double tolerance) {
  OneRow<Real> row(golden.config, rounded<Real>(golden.weights), golden.shape);
  for (size_t step = 0; step < golden.gradients.size(); ++step) {
    const std::vector<Real> weights = row.after(rounded<Real>(golden.gradients[step]));
    const std::vector<double>& expected = golden.after.at(step);
    double largest = 0;
    for (const double weight : expected) largest = std::max(largest, std::abs(weight));
    for (size_t j = 0; j < weights.size(); ++j) {
      ASSERT_NEAR(weights[j], expected.at(j), tolerance * largest)
          << config_to_text(golden.config) << "step " << step << ", weight " << j;
    }
  }
}

TEST(Golden, every_standard_optimizer_is_there_for_twenty_steps) {
  const auto cases = golden_cases();
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  std::set<std::string> types;
  for (const GoldenCase& golden : *cases) {
    types.insert(golden.config.type);
    EXPECT_EQ(golden.gradients.size(), 20u);
    EXPECT_EQ(golden.after.size(), 20u);
  }
  const std::vector<std::string> names = OptimizerRegistry::standard().names();
  EXPECT_EQ(types, std::set<std::string>(names.begin(), names.end()));
}

TEST(Golden, weights_in_double_agree_to_twelve_digits) {
  const auto cases = golden_cases();
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  for (const GoldenCase& golden : *cases) expect_golden<double>(golden, 1e-12);
}

TEST(Golden, weights_in_float_agree_to_five_digits) {
  const auto cases = golden_cases();
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  for (const GoldenCase& golden : *cases) expect_golden<float>(golden, 1e-5);
}

}  // namespace
}  // namespace talweg
