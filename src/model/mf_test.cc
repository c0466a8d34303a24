#include "model/mf.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace talweg {
namespace {

ModelConfig config(LossChoice loss = LossChoice::kAuto) {
  ModelConfig config;
  config.type = "mf";
  config.features = 30;
  config.factors = 5;
  config.loss = loss;
  return config;
}

TEST(Mf, the_gradient_is_that_of_finite_differences) {
  const Batch ratings = whole(generate(RatingGenerator({.users = 10, .items = 20}), 0, 40, 1));
  for (const LossChoice loss : {LossChoice::kSquared, LossChoice::kLogistic}) {
    const auto model = model_of(config(loss));
    expect_gradient_of_finite_differences(*model, ratings);
    expect_float_agrees(config(loss), ratings);
  }
}

TEST(Mf, a_rating_is_the_mean_the_biases_and_the_product_of_factors) {
  const auto model = model_of(config());
  const Batch batch = whole(rows_of({0}, {0, 2}, {3, 12}));
  Parameters<double> parameters = zero_parameters(batch, *model);
  parameters.tables[0] = {1, 2, 0, 0, 0, 10, 20, 0, 0, 0};
  parameters.tables[1] = {100, 200};
  parameters.tables[2] = {1000};
  EXPECT_DOUBLE_EQ(metrics_of(*model, batch, parameters).rmse(), 1350);
}

TEST(Mf, ratings_are_measured_by_distance_and_likes_by_rank) {
  EXPECT_EQ(model_of(config())->objective(), Objective::kRegression);
  EXPECT_EQ(model_of(config(LossChoice::kLogistic))->objective(), Objective::kBinary);
}

TEST(Mf, rows_that_are_not_a_user_and_an_item_are_refused) {
  const auto model = model_of(config());
  EXPECT_TRUE(model->check(rows_of({3, 4}, {0, 2, 4}, {0, 10, 1, 10})).ok());
  EXPECT_NE(refusal(*model, rows_of({3, 4}, {0, 2, 5}, {0, 10, 1, 10, 11})).find("row 1 has 3 entries"),
            std::string::npos);
  EXPECT_NE(refusal(*model, rows_of({3}, {0, 2}, {5, 5})).find("row 0 has the key 5 twice"), std::string::npos);
  EXPECT_NE(refusal(*model, rows_of({3}, {0, 2}, {5, 6}, {1, 4})).find("values 1 and 4"), std::string::npos);
  EXPECT_NE(refusal(*model, rows_of({3}, {0, 2}, {5, 30})).find("set it to at least 31"), std::string::npos);
  EXPECT_NE(refusal(*model, rows_of({INFINITY}, {0, 2}, {5, 6})).find("label inf"), std::string::npos);
}

}  // namespace
}  // namespace talweg
