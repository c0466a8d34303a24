#include "model/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "math/kernels.h"
#include "model/testing.h"

namespace talweg {
namespace {

ModelConfig config(const std::string& type, uint64_t features = 1000) {
  ModelConfig config;
  config.type = type;
  config.features = features;
  return config;
}

Batch clicks(uint64_t rows) { return whole(generate_clicks({.seed = 3, .features = 64, .fields = 5}, 0, rows, 1)); }

TEST(Linear, the_gradient_is_that_of_finite_differences) {
  for (const char* type : {"linear", "logistic", "hinge"}) {
    SCOPED_TRACE(type);
    const auto model = model_of(config(type));
    expect_gradient_of_finite_differences(*model, small_batch({1, 0, 1}));
    expect_gradient_of_finite_differences(*model, small_batch({-3.5f, 2, 0.25f}));
    expect_gradient_of_finite_differences(*model, clicks(20));
    expect_float_agrees(config(type), clicks(50));
  }
}

TEST(Linear, squared_loss_is_half_the_squared_distance) {
  const auto model = model_of(config("linear"));
  const Batch batch = small_batch({3, -1, 0});
  EXPECT_DOUBLE_EQ(loss_of(*model, batch, zero_parameters(batch, *model)), 5);
}

TEST(Linear, labels_that_are_no_number_are_refused_for_regression_only) {
  const Dataset data = rows_of({1, std::nanf("")}, {0, 1, 2}, {0, 1});
  EXPECT_NE(refusal(*model_of(config("linear")), data).find("row 1 has the label nan"), std::string::npos);
  EXPECT_TRUE(model_of(config("logistic"))->check(data).ok());
}

TEST(Linear, data_with_a_key_beyond_its_features_is_refused) {
  const Dataset data = generate_clicks({.seed = 1, .features = 64, .fields = 5}, 0, 100, 1);
  for (const char* type : {"linear", "logistic", "hinge", "softmax", "fm", "ffm"}) {
    ModelConfig enough = config(type, data.max_key() + 1), short_of_one = config(type, data.max_key());
    enough.field_count = short_of_one.field_count = 5;
    EXPECT_TRUE(model_of(enough)->check(data).ok()) << type;
    EXPECT_NE(refusal(*model_of(short_of_one), data).find("set it to at least"), std::string::npos) << type;
  }
}

// The order of every addition, written out: results of earlier releases must not move by a bit.
template <class Real>
void expect_the_bits_of_the_plain_loop(const Batch& batch) {
  Logistic<Real> model(config("logistic"));
  Parameters<Real> parameters = zero_parameters<Real>(batch, model);
  Rng rng(7);
  for (auto& table : parameters.tables) {
    for (Real& value : table) value = static_cast<Real>(rng.normal());
  }
  const Real scale = Real{1} / 7;
  double loss = 0;
  Real bias_gradient = 0;
  std::vector<Real> weight_gradients(batch.keys.size());
  for (size_t i = 0; i < batch.rows(); ++i) {
    const RowView row = row_of(batch, i);
    const Real margin = parameters.tables[1][0] + gather_dot(parameters.tables[0].data(), row.index, row.values);
    const double z = batch.labels[i] > 0 ? margin : -margin;
    loss += std::log1p(std::exp(-std::abs(z))) + std::max(-z, 0.0);
    const Real probability = Real{1} / (Real{1} + std::exp(-margin));
    const Real slope = scale * (probability - (batch.labels[i] > 0 ? Real{1} : Real{0}));
    scatter_axpy(weight_gradients.data(), row.index, row.values, slope);
    bias_gradient += slope;
  }
  Gradients<Real> gradients;
  EXPECT_EQ(model.step(batch, parameters, scale, &gradients).loss_sum, loss);
  EXPECT_EQ(gradients.tables[0], weight_gradients);
  EXPECT_EQ(gradients.tables[1][0], bias_gradient);
}

TEST(Logistic, a_step_has_the_bits_of_the_plain_loop) {
  expect_the_bits_of_the_plain_loop<float>(clicks(200));
  expect_the_bits_of_the_plain_loop<double>(small_batch({1, 0, 1}));
}

// A margin of +-1e4 overflows exp in both directions.
TEST(Logistic, an_extreme_margin_gives_a_finite_loss_and_gradient) {
  const auto model = model_of(config("logistic"));
  Batch batch = small_batch({1, 0, 1});
  batch.labels.pop_back();
  batch.offsets.pop_back();
  Parameters<double> parameters = zero_parameters(batch, *model);
  Gradients<double> gradients;
  for (double bias : {1e4, -1e4}) {
    parameters.tables[1][0] = bias;
    const StepResult result = model->step(batch, parameters, 1, &gradients);
    EXPECT_DOUBLE_EQ(result.loss_sum, 1e4) << "one row is certain and right, the other certain and wrong";
    EXPECT_DOUBLE_EQ(gradients.tables[1][0], bias > 0 ? 1 : -1);
    for (double gradient : gradients.tables[0]) EXPECT_TRUE(std::isfinite(gradient));
  }
}

TEST(Logistic, without_parameters_every_row_costs_the_logarithm_of_two) {
  const auto model = model_of(config("logistic"));
  const Batch batch = small_batch({1, 0, 1});
  EXPECT_DOUBLE_EQ(loss_of(*model, batch, zero_parameters(batch, *model)), 3 * std::log(2.0));
}

TEST(Linear, every_label_above_zero_is_positive_for_logistic_and_hinge) {
  for (const char* type : {"logistic", "hinge"}) {
    const auto model = model_of(config(type));
    Batch batch = small_batch({1, 0, 1});
    Parameters<double> parameters = zero_parameters(batch, *model);
    parameters.tables[1][0] = 0.5;
    const double loss = loss_of(*model, batch, parameters);
    batch.labels = {7, -1, 0.5f};
    EXPECT_EQ(loss_of(*model, batch, parameters), loss) << type;
  }
}

TEST(Hinge, a_row_beyond_the_margin_costs_nothing_and_moves_nothing) {
  const auto model = model_of(config("hinge"));
  const Batch batch = small_batch({1, 1, 1});
  Parameters<double> parameters = zero_parameters(batch, *model);
  Gradients<double> gradients;
  parameters.tables[1][0] = 1.5;
  EXPECT_EQ(model->step(batch, parameters, 1, &gradients).loss_sum, 0);
  EXPECT_EQ(gradients.tables[1][0], 0);
  parameters.tables[1][0] = 0.5;
  EXPECT_EQ(model->step(batch, parameters, 1, &gradients).loss_sum, 1.5);
  EXPECT_EQ(gradients.tables[1][0], -3);
}

TEST(Hinge, a_score_that_is_no_number_costs_no_number) {
  EXPECT_TRUE(std::isnan(HingeLoss::loss(std::numeric_limits<double>::quiet_NaN(), 1)));
}

TEST(Linear, a_batch_without_rows_has_no_gradient) {
  for (const std::string& type : ModelRegistry::standard().names()) {
    const auto model = model_of(config(type));
    Batch batch;
    batch.offsets = {0};
    const Parameters<double> parameters = zero_parameters(batch, *model);
    Gradients<double> gradients;
    EXPECT_EQ(model->step(batch, parameters, 1, &gradients).rows, 0u) << type;
    for (const auto& table : gradients.tables) {
      for (const double gradient : table) EXPECT_EQ(gradient, 0) << type;
    }
  }
}

}  // namespace
}  // namespace talweg
