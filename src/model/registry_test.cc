#include "model/registry.h"

#include <gtest/gtest.h>

#include "model/linear.h"
#include "model/testing.h"

namespace talweg {
namespace {

// A user's model: every row costs what its label is, and nothing is learned.
template <class Real>
class LabelCost final : public Model<Real> {
 public:
  explicit LabelCost(const ModelConfig& config)
      : layout_{{.name = "w", .sparse = true, .width = config.factors, .size = 0}} {}
  const std::vector<TableShape>& layout() const override { return layout_; }
  Objective objective() const override { return Objective::kRegression; }
  Status check(const Dataset&) const override { return {}; }
  StepCost cost(const Batch&) const override { return {}; }
  StepResult step(const Batch& batch, const Parameters<Real>&, Real, Gradients<Real>* gradients) override {
    shape_for(batch, layout_, gradients);
    double sum = 0;
    for (const float label : batch.labels) sum += label;
    return {.loss_sum = sum, .rows = batch.rows()};
  }
  void evaluate(const Batch& batch, const Parameters<Real>&, Metrics* metrics) const override {
    for (const float label : batch.labels) metrics->add_prediction(0, label, label);
  }

 private:
  std::vector<TableShape> layout_;
};

TEST(ModelRegistry, a_user_adds_a_model_by_name) {
  ModelRegistry registry = ModelRegistry::standard();
  registry.add_model<LabelCost>("label_cost");
  ModelConfig config;
  config.type = "label_cost";
  const auto model = registry.make<float>(config);
  ASSERT_TRUE(model.ok());
  Gradients<float> gradients;
  EXPECT_EQ((*model)->step(small_batch({1, 2, 3}), {}, 1, &gradients).loss_sum, 6);
  EXPECT_TRUE(registry.make<double>(config).ok());
  EXPECT_FALSE(ModelRegistry::standard().make<float>(config).ok()) << "a registry is a value";
}

TEST(ModelRegistry, a_model_under_an_old_name_takes_its_place) {
  ModelRegistry registry = ModelRegistry::standard();
  registry.add_model<LabelCost>("logistic");
  EXPECT_EQ((*registry.make<float>(ModelConfig()))->layout()[0].name, "w");
}

TEST(ModelRegistry, a_model_that_nobody_knows_is_refused_with_the_nearest_name) {
  ModelConfig config;
  config.type = "logisitc";
  const auto model = ModelRegistry::standard().make<float>(config);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("did you mean 'logistic'"), std::string::npos) << model.status().message();
}

TEST(ModelRegistry, a_scale_that_is_no_number_is_refused) {
  ModelConfig config;
  config.type = "fm";
  config.init_scale = INFINITY;
  EXPECT_NE(ModelRegistry::standard().make<float>(config).status().message().find("model.init_scale"),
            std::string::npos);
}

// What a job file says is what the model is made of.
TEST(ModelRegistry, settings_are_read_by_their_names) {
  const auto config = config_from_text<ModelConfig>(
      "{type: ffm, features: 50, factors: 2, fields: 7, init_scale: 0.25, loss: squared}", "m");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto model = model_of(*config);
  EXPECT_EQ(model->layout()[1].width, 14u);
  EXPECT_EQ(model->layout()[1].init.scale, 0.25);
  EXPECT_EQ(model->objective(), Objective::kRegression);
}

// What takes longer must be charged more, or the simulator's clock lies.
TEST(ModelRegistry, a_larger_batch_and_longer_factors_cost_more) {
  const Batch small = whole(generate_clicks({.features = 100, .fields = 5}, 0, 20, 1));
  const Batch large = whole(generate_clicks({.features = 100, .fields = 5}, 0, 200, 1));
  for (const std::string& type : ModelRegistry::standard().names()) {
    ModelConfig config;
    config.type = type;
    const StepCost a = model_of(config)->cost(small), b = model_of(config)->cost(large);
    EXPECT_NEAR(b.flops / a.flops, 10, 0.1) << type;
    EXPECT_GT(b.bytes, 5 * a.bytes) << type;
    config.factors *= 2;
    config.classes *= 2;
    const bool has_width = type != "linear" && type != "logistic" && type != "hinge";
    EXPECT_EQ(model_of(config)->cost(small).flops > 1.5 * a.flops, has_width) << type;
  }
}

}  // namespace
}  // namespace talweg
