#include "model/logistic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "data/generator.h"

namespace talweg {
namespace {

// Two rows that share key 9, with values.
Batch two_rows() {
  Batch batch;
  batch.keys = {4, 9, 2};
  batch.offsets = {0, 2, 4};
  batch.index = {0, 1, 1, 2};
  batch.values = {1.5f, -2, 0.5f, 3};
  batch.labels = {1, 0};
  return batch;
}

Batch clicks(uint64_t rows) {
  const Dataset data = generate_clicks({.seed = 3, .features = 64, .fields = 5}, 0, rows, 1);
  std::vector<uint64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  BatchBuilder().build(data, all, &batch);
  return batch;
}

Parameters<double> random_parameters(const Batch& batch, const Logistic<double>& model) {
  Parameters<double> parameters;
  shape_for(batch, model.layout(), &parameters);
  Rng rng(5);
  for (auto& table : parameters.tables) {
    for (double& value : table) value = rng.normal();
  }
  return parameters;
}

double loss_of(const Logistic<double>& model, const Batch& batch, const Parameters<double>& parameters) {
  std::vector<float> scores;
  return model.evaluate(batch, parameters, &scores).loss_sum;
}

void expect_gradient_of_finite_differences(const Batch& batch) {
  Logistic<double> model(1000);
  Parameters<double> parameters = random_parameters(batch, model);
  Gradients<double> gradients;
  const double scale = 0.25, h = 1e-6;
  const StepResult result = model.step(batch, parameters, scale, &gradients);
  EXPECT_EQ(result.rows, batch.rows());
  EXPECT_DOUBLE_EQ(result.loss_sum, loss_of(model, batch, parameters));
  for (size_t t = 0; t < parameters.tables.size(); ++t) {
    ASSERT_EQ(gradients.tables[t].size(), parameters.tables[t].size());
    for (size_t i = 0; i < parameters.tables[t].size(); ++i) {
      double& parameter = parameters.tables[t][i];
      const double value = parameter;
      parameter = value + h;
      const double above = loss_of(model, batch, parameters);
      parameter = value - h;
      const double below = loss_of(model, batch, parameters);
      parameter = value;
      EXPECT_NEAR(gradients.tables[t][i], scale * (above - below) / (2 * h), 1e-8) << "table " << t << ", " << i;
    }
  }
}

TEST(Logistic, the_gradient_is_that_of_finite_differences) {
  expect_gradient_of_finite_differences(two_rows());
  expect_gradient_of_finite_differences(clicks(20));
}

TEST(Logistic, float_and_double_agree) {
  const Batch batch = clicks(50);
  Logistic<double> exact(1000);
  Logistic<float> rough(1000);
  const Parameters<double> parameters = random_parameters(batch, exact);
  Parameters<float> rounded;
  for (const auto& table : parameters.tables) rounded.tables.emplace_back(table.begin(), table.end());
  Gradients<double> gradients;
  Gradients<float> rounded_gradients;
  const double loss = exact.step(batch, parameters, 1, &gradients).loss_sum;
  EXPECT_NEAR(rough.step(batch, rounded, 1, &rounded_gradients).loss_sum, loss, 1e-4 * loss);
  for (size_t i = 0; i < gradients.tables[0].size(); ++i) {
    EXPECT_NEAR(rounded_gradients.tables[0][i], gradients.tables[0][i], 1e-4);
  }
}

// A margin of +-1e4 overflows exp in both directions.
TEST(Logistic, an_extreme_margin_gives_a_finite_loss_and_gradient) {
  Logistic<double> model(10);
  Batch batch = two_rows();
  Parameters<double> parameters;
  Gradients<double> gradients;
  shape_for(batch, model.layout(), &parameters);
  for (double bias : {1e4, -1e4}) {
    parameters.tables[1][0] = bias;
    const StepResult result = model.step(batch, parameters, 1, &gradients);
    EXPECT_DOUBLE_EQ(result.loss_sum, 1e4) << "one row is certain and right, the other certain and wrong";
    EXPECT_DOUBLE_EQ(gradients.tables[1][0], bias > 0 ? 1 : -1);
    for (double gradient : gradients.tables[0]) EXPECT_TRUE(std::isfinite(gradient));
  }
}

TEST(Logistic, without_parameters_every_row_costs_the_logarithm_of_two) {
  Logistic<double> model(10);
  const Batch batch = two_rows();
  Parameters<double> parameters;
  shape_for(batch, model.layout(), &parameters);
  EXPECT_DOUBLE_EQ(loss_of(model, batch, parameters), 2 * std::log(2.0));
}

TEST(Logistic, every_label_above_zero_is_positive) {
  Logistic<double> model(10);
  Batch batch = two_rows();
  Parameters<double> parameters;
  shape_for(batch, model.layout(), &parameters);
  parameters.tables[1][0] = 2;
  const double loss = loss_of(model, batch, parameters);
  batch.labels = {7, -1};
  EXPECT_EQ(loss_of(model, batch, parameters), loss);
}

TEST(Logistic, a_batch_without_rows_has_no_gradient) {
  Logistic<double> model(10);
  Batch batch;
  batch.offsets = {0};
  Parameters<double> parameters;
  shape_for(batch, model.layout(), &parameters);
  Gradients<double> gradients;
  EXPECT_EQ(model.step(batch, parameters, 1, &gradients).rows, 0u);
  EXPECT_EQ(gradients.tables[1][0], 0);
}

TEST(Logistic, data_with_a_key_beyond_its_features_is_refused) {
  const Dataset data = generate_clicks({.seed = 1, .features = 64, .fields = 5}, 0, 100, 1);
  EXPECT_TRUE(Logistic<float>(data.max_key() + 1).check(data).ok());
  const Status refused = Logistic<float>(data.max_key()).check(data);
  EXPECT_NE(refused.message().find("set it to at least"), std::string::npos) << refused.message();
}

TEST(Logistic, a_model_that_nobody_knows_is_refused_with_the_nearest_name) {
  ModelConfig config;
  config.type = "logisitc";
  const auto model = make_model<float>(config);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("did you mean 'logistic'"), std::string::npos) << model.status().message();
}

}  // namespace
}  // namespace talweg
