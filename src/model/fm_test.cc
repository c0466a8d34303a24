#include "model/fm.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace talweg {
namespace {

ModelConfig config(uint32_t factors, LossChoice loss = LossChoice::kAuto) {
  ModelConfig config;
  config.type = "fm";
  config.features = 100;
  config.factors = factors;
  config.loss = loss;
  return config;
}

TEST(Fm, the_gradient_is_that_of_finite_differences) {
  const Batch generated = whole(generate_clicks({.seed = 3, .features = 64, .fields = 5}, 0, 20, 1));
  for (const LossChoice loss : {LossChoice::kLogistic, LossChoice::kSquared}) {
    const auto model = model_of(config(3, loss));
    expect_gradient_of_finite_differences(*model, small_batch({1, 0, 1}));
    expect_gradient_of_finite_differences(*model, generated);
    expect_float_agrees(config(7, loss), generated);
  }
}

// Rendle's equation (1), pair by pair.
TEST(Fm, the_score_is_the_sum_over_all_pairs) {
  const auto model = model_of(config(3, LossChoice::kSquared));
  Batch batch = small_batch({0, 0, 0});
  const Parameters<double> parameters = random_parameters(batch, *model);
  double losses = 0;
  for (size_t row = 0; row < batch.rows(); ++row) {
    const RowView view = row_of(batch, row);
    double score = parameters.tables[2][0];
    for (size_t i = 0; i < view.index.size(); ++i) {
      score += parameters.tables[0][view.index[i]] * view.values[i];
      for (size_t j = i + 1; j < view.index.size(); ++j) {
        for (size_t f = 0; f < 3; ++f) {
          score += parameters.tables[1][view.index[i] * 3 + f] * parameters.tables[1][view.index[j] * 3 + f] *
                   view.values[i] * view.values[j];
        }
      }
    }
    losses += score * score / 2;
  }
  EXPECT_NEAR(loss_of(*model, batch, parameters), losses, 1e-12 * losses);
}

TEST(Fm, weights_start_at_zero_and_only_factors_at_random) {
  ModelConfig wide = config(6);
  wide.init_scale = 0.5;
  const auto model = model_of(wide);
  ASSERT_EQ(model->layout().size(), 3u);
  EXPECT_EQ(model->layout()[0].width, 1u);
  EXPECT_EQ(model->layout()[0].init.type, InitType::kZeros);
  EXPECT_EQ(model->layout()[1].width, 6u);
  EXPECT_EQ(model->layout()[1].init.type, InitType::kNormal);
  EXPECT_EQ(model->layout()[1].init.scale, 0.5);
  EXPECT_EQ(model->layout()[2].init.type, InitType::kZeros);
}

TEST(Fm, the_loss_decides_what_is_measured) {
  EXPECT_EQ(model_of(config(2))->objective(), Objective::kBinary);
  EXPECT_EQ(model_of(config(2, LossChoice::kSquared))->objective(), Objective::kRegression);
}

}  // namespace
}  // namespace talweg
