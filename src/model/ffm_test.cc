#include "model/ffm.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace talweg {
namespace {

ModelConfig config(uint64_t features, uint32_t fields, LossChoice loss = LossChoice::kAuto) {
  ModelConfig config;
  config.type = "ffm";
  config.features = features;
  config.field_count = fields;
  config.factors = 3;
  config.loss = loss;
  return config;
}

TEST(Ffm, the_gradient_is_that_of_finite_differences) {
  const Batch generated = whole(generate_clicks({.seed = 3, .features = 64, .fields = 5}, 0, 20, 1));
  for (const LossChoice loss : {LossChoice::kLogistic, LossChoice::kSquared}) {
    const auto model = model_of(config(64, 5, loss));
    expect_gradient_of_finite_differences(*model, small_batch({1, 0, 1}));
    expect_gradient_of_finite_differences(*model, generated);
    expect_float_agrees(config(64, 5, loss), generated);
  }
}

TEST(Ffm, a_pair_multiplies_the_vectors_that_each_has_for_the_others_field) {
  const auto model = model_of(config(10, 2, LossChoice::kSquared));
  const Batch batch = whole(rows_of({0}, {0, 2}, {1, 7}));  // fields 0 and 1
  Parameters<double> parameters = zero_parameters(batch, *model);
  parameters.tables[1] = {0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0};
  EXPECT_DOUBLE_EQ(loss_of(*model, batch, parameters), 32.0 * 32 / 2);
  parameters.tables[1] = {1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0};
  EXPECT_EQ(loss_of(*model, batch, parameters), 0);
}

TEST(Ffm, with_one_field_it_is_a_factorisation_machine) {
  ModelConfig fm_config = config(64, 1);
  fm_config.type = "fm";
  const auto ffm = model_of(config(64, 1)), fm = model_of(fm_config);
  const Batch batch = small_batch({1, 0, 1});
  const Parameters<double> parameters = random_parameters(batch, *ffm);
  EXPECT_NEAR(loss_of(*ffm, batch, parameters), loss_of(*fm, batch, parameters), 1e-12);
}

TEST(Ffm, fields_are_the_generators) {
  for (const uint64_t features : {uint64_t{7}, uint64_t{1000}, (uint64_t{1} << 62) - 3}) {
    const ClickGenerator generator({.features = features, .fields = 7});
    const FfmScore<float> score(config(features, 7));
    std::vector<uint64_t> keys(7);
    for (uint64_t i = 0; i < 500; ++i) {
      generator.row(i, keys);
      for (uint32_t f = 0; f < 7; ++f) ASSERT_EQ(score.field_of(keys[f]), f) << keys[f] << " of " << features;
    }
    for (uint64_t f = 0; f < 7; ++f) {
      const auto first = static_cast<uint64_t>(static_cast<unsigned __int128>(features) * f / 7);
      EXPECT_EQ(score.field_of(first), f);
      if (f == 0) continue;
      EXPECT_EQ(score.field_of(first - 1), f - 1);
    }
    EXPECT_EQ(score.field_of(features - 1), 6u);
  }
}

TEST(Ffm, rows_that_no_table_can_hold_are_refused) {
  ModelConfig wide = config(1 << 20, 1000);
  wide.factors = 66;
  const auto model = ModelRegistry::standard().make<float>(wide);
  EXPECT_NE(model.status().message().find("model.factors: 1000 fields of 66 factors are 66000"), std::string::npos);
  const auto crowded = ModelRegistry::standard().make<float>(config(10, 11));
  EXPECT_NE(crowded.status().message().find("model.fields: 11 fields do not fit"), std::string::npos);
}

}  // namespace
}  // namespace talweg
