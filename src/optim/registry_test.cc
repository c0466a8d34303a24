#include "optim/registry.h"

#include <gtest/gtest.h>

#include <cmath>

#include "optim/testing.h"

namespace talweg {
namespace {

std::string refusal(const OptimizerConfig& config, BlockShape shape = {}) {
  const auto registry = OptimizerRegistry::standard();
  const std::string in_float = registry.make<float>(config, shape).status().message();
  EXPECT_EQ(registry.make<double>(config, shape).status().message(), in_float);
  return in_float;
}

TEST(OptimizerRegistry, an_unknown_name_is_answered_with_the_nearest_and_all) {
  auto made = OptimizerRegistry::standard().make<float>({.type = "adgrad"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kInvalid);
  const std::string all = "there are: adagrad, adam, adamw, ftrl, momentum, nesterov, rmsprop, sgd, shampoo";
  EXPECT_EQ(made.status().message(), "there is no optimizer 'adgrad' (did you mean 'adagrad'?); " + all);
  EXPECT_EQ(refusal({.type = "lbfgs"}), "there is no optimizer 'lbfgs'; " + all);
}

TEST(OptimizerRegistry, settings_that_are_no_numbers_are_refused) {
  EXPECT_EQ(refusal({.lr = NAN}), "optimizer sgd: lr must be a finite number of at least 0, not nan");
  EXPECT_EQ(refusal({.l2 = -1}), "optimizer sgd: l2 must be a finite number of at least 0, not -1");
  EXPECT_EQ(refusal({.beta1 = 1}),
            "optimizer sgd: beta1 must be a finite number of at least 0 and at most 0.9999999999999999, not 1");
  EXPECT_EQ(refusal({.schedule = {.decay_rate = 2}}),
            "optimizer sgd: schedule.decay_rate must be a finite number of at least 0 and at most 1, not 2");
  EXPECT_EQ(refusal({.schedule = {.warmup = -1}}),
            "optimizer sgd: schedule.warmup must be a finite number of at least 0, not -1");
  const OptimizerConfig others[] = {{.lr = INFINITY},
                                    {.l1 = NAN},
                                    {.weight_decay = -1},
                                    {.momentum = 1},
                                    {.smoothing = 1},
                                    {.beta2 = -0.5},
                                    {.beta = NAN},
                                    {.epsilon = -1e-9},
                                    {.epsilon = NAN},
                                    {.clip_value = -1},
                                    {.initial_accumulator = -1},
                                    {.precondition_every = 0},
                                    {.clip_row_norm = NAN},
                                    {.schedule = {.floor = NAN}}};
  for (const OptimizerConfig& config : others) EXPECT_NE(refusal(config), "") << config_to_text(config);
}

TEST(OptimizerRegistry, a_schedule_without_its_steps_is_refused) {
  EXPECT_EQ(refusal({.type = "adam", .schedule = {.type = ScheduleType::kCosine}}),
            "optimizer adam: schedule cosine needs decay_steps of at least 1");
}

TEST(OptimizerRegistry, l1_is_refused_by_those_that_have_none) {
  for (const std::string& type : OptimizerRegistry::standard().names()) {
    const bool heeds = type == "sgd" || type == "adagrad" || type == "ftrl";
    EXPECT_EQ(refusal({.type = type, .l1 = 0.1}, {2, 2}),
              heeds ? "" : "optimizer " + type + ": l1 must be 0 here; these have it: adagrad, ftrl, sgd");
  }
}

TEST(OptimizerRegistry, settings_that_a_type_does_not_use_do_not_matter_to_it) {
  EXPECT_EQ(OneRow<double>({.lr = 0.5, .weight_decay = 9, .momentum = 0.1, .epsilon = 7}, {1}).after(2), 0);
}

// All fields apart from their defaults, and no two alike.
OptimizerConfig unusual() {
  return {.type = "adagrad",
          .lr = 0.1 + 0.2,
          .l1 = 0.01,
          .l2 = 1e-300,
          .weight_decay = 0.02,
          .momentum = 0.03,
          .smoothing = 0.04,
          .beta1 = 0.05,
          .beta2 = 0.06,
          .beta = 0.07,
          .epsilon = 0,
          .initial_accumulator = 1.0 / 3,
          .precondition_every = 12,
          .clip_value = 0.08,
          .clip_row_norm = 0.09,
          .schedule = {ScheduleType::kInverseSqrt, 3, 4, 0.5, 0.6}};
}

TEST(OptimizerConfig, survives_its_text_form) {
  for (const OptimizerConfig& config : {OptimizerConfig{}, unusual()}) {
    for (const bool explain : {false, true}) {
      auto read = config_from_text<OptimizerConfig>(config_to_text(config, explain), "text");
      ASSERT_TRUE(read.ok()) << read.status().text();
      EXPECT_EQ(*read, config);
    }
  }
}

TEST(OptimizerConfig, what_is_out_of_bounds_in_a_file_is_refused_with_its_line) {
  const auto refused = [](const std::string& text) {
    return config_from_text<OptimizerConfig>(text, "job").status().message();
  };
  EXPECT_EQ(refused("lr: 1\nbeta2: 1"), "job:2: beta2: must be at most 0.9999999999999999, not 1");
  EXPECT_EQ(refused("precondition_every: 0"), "job:1: precondition_every: must be at least 1, not 0");
  EXPECT_EQ(refused("schedule: {type: cosin}"),
            "job:1: schedule.type: 'cosin' is not one of its choices; did you mean 'cosine'?");
  EXPECT_EQ(refused("clip_norm: 1").substr(0, 30), "job:1: clip_norm: unknown key;");
}

struct Nothing final : Optimizer<float> {
  size_t state_per_weight() const override { return 0; }
  float initial_state(size_t) const override { return 0; }
  void apply(const Rows<float>&) override {}
};

TEST(OptimizerRegistry, a_users_factory_takes_the_place_of_a_name_and_is_told_the_shape) {
  auto registry = OptimizerRegistry::standard();
  registry.add(
      "sgd",
      [](const OptimizerConfig&, BlockShape shape) -> OptimizerRegistry::Made<float> {
        if (shape.columns == 3) return std::unique_ptr<Optimizer<float>>(std::make_unique<Nothing>());
        return error(Code::kInvalid, "{} columns", shape.columns);
      },
      [](const OptimizerConfig&, BlockShape) -> OptimizerRegistry::Made<double> {
        return error(Code::kInvalid, "only float");
      });
  EXPECT_EQ(registry.names(), OptimizerRegistry::standard().names());
  auto made = registry.make<float>({}, {2, 3});
  ASSERT_TRUE(made.ok());
  EXPECT_NE(dynamic_cast<Nothing*>(made->get()), nullptr);
  EXPECT_EQ(registry.make<float>({}).status().message(), "0 columns");
  EXPECT_EQ(registry.make<double>({}).status().message(), "only float");
  EXPECT_EQ(registry.make<float>({.l1 = 1}, {2, 3}).status().message(),
            "optimizer sgd: l1 must be 0 here; these have it: adagrad, ftrl");
}

}  // namespace
}  // namespace talweg
