#include "model/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace talweg {
namespace {

ModelConfig config(uint32_t classes) {
  ModelConfig config;
  config.type = "softmax";
  config.features = 100;
  config.classes = classes;
  return config;
}

TEST(Softmax, the_gradient_is_that_of_finite_differences) {
  const auto model = model_of(config(4));
  expect_gradient_of_finite_differences(*model, small_batch({3, 0, 1}));
  const ClassGenerator generator({.seed = 2, .features = 60, .fields = 5, .classes = 4});
  expect_gradient_of_finite_differences(*model, whole(generate(generator, 0, 20, 1)));
  expect_float_agrees(config(4), whole(generate(generator, 0, 50, 1)));
}

TEST(Softmax, without_parameters_every_row_costs_the_logarithm_of_the_classes) {
  const auto model = model_of(config(5));
  const Batch batch = small_batch({4, 0, 1});
  EXPECT_DOUBLE_EQ(loss_of(*model, batch, zero_parameters(batch, *model)), 3 * std::log(5.0));
}

TEST(Softmax, with_two_classes_it_is_logistic_in_the_difference) {
  const auto model = model_of(config(2));
  ModelConfig logistic_config;
  const auto logistic = model_of(logistic_config);
  const Batch batch = small_batch({1, 0, 1});
  const Parameters<double> parameters = random_parameters(batch, *model);
  Parameters<double> difference = zero_parameters(batch, *logistic);
  for (size_t t = 0; t < 2; ++t) {
    for (size_t i = 0; i < difference.tables[t].size(); ++i) {
      difference.tables[t][i] = parameters.tables[t][2 * i + 1] - parameters.tables[t][2 * i];
    }
  }
  EXPECT_NEAR(loss_of(*model, batch, parameters), loss_of(*logistic, batch, difference), 1e-12);
}

TEST(Softmax, extreme_scores_give_a_finite_loss_and_gradient) {
  const auto model = model_of(config(3));
  const Batch batch = small_batch({0, 1, 2});
  Parameters<double> parameters = zero_parameters(batch, *model);
  parameters.tables[1] = {1e4, 0, -1e4};
  Gradients<double> gradients;
  EXPECT_DOUBLE_EQ(model->step(batch, parameters, 1, &gradients).loss_sum, 3e4);
  EXPECT_EQ(gradients.tables[1], (std::vector<double>{2, -1, -1}));
}

TEST(Softmax, the_likeliest_class_counts) {
  const auto model = model_of(config(3));
  const Batch batch = small_batch({0, 2, 2});
  Parameters<double> parameters = zero_parameters(batch, *model);
  parameters.tables[1] = {0, 0, std::log(2.0)};
  const Metrics metrics = metrics_of(*model, batch, parameters);
  EXPECT_DOUBLE_EQ(metrics.accuracy(), 2.0 / 3);
  EXPECT_NEAR(metrics.expected_calibration_error(), 2.0 / 3 - 0.5, 1e-8);
}

TEST(Softmax, a_label_that_is_no_class_is_refused) {
  const auto model = model_of(config(3));
  EXPECT_TRUE(model->check(rows_of({0, 2}, {0, 1, 2}, {0, 1})).ok());
  for (const float label : {3.0f, -1.0f, 0.5f, std::nanf("")}) {
    const std::string message = refusal(*model, rows_of({0, label}, {0, 1, 2}, {0, 1}));
    EXPECT_NE(message.find("a label is one of 0 to 2"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace talweg
