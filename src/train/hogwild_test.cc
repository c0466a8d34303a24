#include "train/hogwild.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/rng.h"
#include "data/generator.h"
#include "data/permutation.h"
#include "model/ranking.h"

namespace talweg {
namespace {

constexpr ClickOptions kClicks{.features = 1 << 11, .fields = 20, .weight_sd = 0.4};
constexpr uint64_t kRows = 40'000, kTestRows = 10'000;

HogwildOptions options_for(const std::string& optimizer, double lr, uint32_t threads) {
  HogwildOptions options;
  options.features = kClicks.features;
  options.threads = threads;
  options.optimizer.type = optimizer;
  options.optimizer.lr = lr;
  options.optimizer.initial_accumulator = 1;
  return options;
}

HogwildResult trained(const Dataset& data, const HogwildOptions& options) {
  auto result = train_hogwild(data, options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

double area_of(const HogwildResult& result) {
  const Dataset test = generate_clicks(kClicks, kRows, kTestRows);
  Ranking ranking;
  for (size_t row = 0; row < test.rows(); ++row) {
    float score = result.bias;
    for (size_t i = 0; i < test.row_size(row); ++i) score += result.weights[test.entry(row, i).first];
    ranking.add(score, test.label(row) > 0);
  }
  return ranking.area();
}

double planted_area() {
  const ClickGenerator generator(kClicks);
  std::vector<uint64_t> keys(generator.row_size());
  Ranking ranking;
  for (uint64_t i = 0; i < kTestRows; ++i) {
    const float label = generator.row(kRows + i, keys);
    ranking.add(static_cast<float>(generator.planted_logit(keys)), label > 0);
  }
  return ranking.area();
}

std::vector<uint64_t> order_of(uint64_t rows, uint64_t key) {
  const uint64_t blocks = (rows + kHogwildBlock - 1) / kHogwildBlock;
  const Permutation permutation(blocks, key);
  std::vector<uint64_t> order;
  for (uint64_t block = 0; block < blocks; ++block) {
    for (uint64_t i = 0; i < kHogwildBlock; ++i) {
      const uint64_t row = permutation(block) * kHogwildBlock + i;
      if (row < rows) order.push_back(row);
    }
  }
  return order;
}

// What one thread has to give: one row after the other, plain arrays, nothing shared.
HogwildResult serial_loop(const Dataset& data, const HogwildOptions& options) {
  const bool adagrad = options.optimizer.type == "adagrad";
  const float lr = static_cast<float>(options.optimizer.lr), l2 = static_cast<float>(options.optimizer.l2);
  const float initial = static_cast<float>(options.optimizer.initial_accumulator);
  HogwildResult result;
  result.weights.resize(options.features);
  std::vector<float> squares(options.features + 1, initial);
  const auto change = [&](float& weight, float& square, float gradient) {
    gradient += l2 * weight;
    square += gradient * gradient;
    weight -= adagrad ? lr * gradient / (std::sqrt(square) + 1e-10F) : lr * gradient;
  };
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const uint64_t row : order_of(data.rows(), mix64(options.seed) + epoch)) {
      float score = result.bias;
      for (size_t j = 0; j < data.row_size(row); ++j) {
        const auto [key, value] = data.entry(row, j);
        score += result.weights[key] * value;
      }
      const float slope = 1.0F / (1.0F + std::exp(-score)) - (data.label(row) > 0 ? 1.0F : 0.0F);
      for (size_t j = 0; j < data.row_size(row); ++j) {
        const auto [key, value] = data.entry(row, j);
        change(result.weights[key], squares[key], slope * value);
      }
      change(result.bias, squares.back(), slope);
    }
  }
  return result;
}

// A row for each key, with keys of 64 bits and a value each.
Dataset one_row_per_key(uint64_t rows) {
  struct Columns {
    std::vector<float> labels, values;
    std::vector<uint64_t> offsets{0}, keys;
  };
  const auto columns = std::make_shared<Columns>();
  for (uint64_t key = 0; key < rows; ++key) {
    columns->labels.push_back(static_cast<float>(key % 2));
    columns->keys.push_back(key);
    columns->values.push_back(0.5F + static_cast<float>(key % 7));
    columns->offsets.push_back(key + 1);
  }
  DatasetColumns where;
  where.labels = columns->labels;
  where.offsets = columns->offsets;
  where.keys64 = columns->keys;
  where.values = columns->values;
  where.max_key = rows - 1;
  return Dataset(where, columns);
}

void expect_same_bits(const HogwildResult& a, const HogwildResult& b) {
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.bias, b.bias);
}

TEST(Hogwild, with_one_thread_it_is_the_serial_loop_to_the_bit) {
  const Dataset clicks = generate_clicks(kClicks, 0, 3000), values = one_row_per_key(500);
  for (HogwildOptions options : {options_for("sgd", 0.05, 1), options_for("adagrad", 0.1, 1)}) {
    options.epochs = 2;
    options.optimizer.l2 = 0.01;
    expect_same_bits(trained(clicks, options), serial_loop(clicks, options));
    expect_same_bits(trained(values, options), serial_loop(values, options));
  }
}

TEST(Hogwild, threads_learn_the_planted_model_as_well_as_the_serial_loop) {
  const Dataset data = generate_clicks(kClicks, 0, kRows);
  for (const HogwildOptions& options : {options_for("sgd", 0.02, 4), options_for("adagrad", 0.1, 4)}) {
    HogwildOptions alone = options;
    alone.threads = 1;
    const double area = area_of(trained(data, options));
    EXPECT_GT(area, planted_area() - 0.05);
    EXPECT_NEAR(area, area_of(trained(data, alone)), 0.01);
  }
}

TEST(Hogwild, threads_use_every_row_in_every_epoch) {
  const Dataset data = one_row_per_key(5000);
  HogwildOptions options = options_for("sgd", 0.01, 3);
  options.features = data.rows();
  options.epochs = 2;
  const HogwildResult result = trained(data, options);
  EXPECT_EQ(result.rows, 10'000U);
  // No key is in two rows, so none of their changes can be lost; only the bias, which is nearly zero, is not certain.
  for (uint64_t key = 0; key < data.rows(); ++key) {
    const double value = data.entry(key, 0).second, sign = key % 2 == 1 ? 1 : -1;
    const double first = 0.01 * value * 0.5, second = 0.01 * value / (1 + std::exp(value * first));
    ASSERT_NEAR(result.weights[key], sign * (first + second), 0.01 * value * 0.05) << key;
  }
}

TEST(Hogwild, refuses_what_it_cannot_train) {
  const Dataset data = generate_clicks(kClicks, 0, 10);
  HogwildOptions options = options_for("adam", 0.1, 1);
  EXPECT_EQ(train_hogwild(data, options).status().code(), Code::kInvalid);
  options = options_for("sgd", 0.1, 0);
  EXPECT_EQ(train_hogwild(data, options).status().code(), Code::kInvalid);
  options = options_for("sgd", 0.1, 1);
  options.features = data.max_key();
  EXPECT_EQ(train_hogwild(data, options).status().code(), Code::kInvalid);
}

TEST(Hogwild, no_rows_give_no_weights) {
  const HogwildResult result = trained(Dataset(), options_for("adagrad", 0.1, 2));
  EXPECT_EQ(result.weights, std::vector<float>(kClicks.features));
  EXPECT_EQ(result.bias, 0);
}

}  // namespace
}  // namespace talweg
