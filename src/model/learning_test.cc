// Every model learns what is planted in generated data, by a plain serial loop: what it reaches on held-out rows is
// held against what the planted model itself reaches on them.
#include <gtest/gtest.h>

#include <cmath>

#include "data/sampler.h"
#include "model/testing.h"

namespace talweg {
namespace {

constexpr uint64_t kBatch = 100;

// All parameters in plain arrays, changed by AdaGrad, which needs no tuning to a table.
class SerialTrainer {
 public:
  SerialTrainer(const ModelConfig& config, double rate) : model_(model_of(config)), rate_(rate) {
    for (const TableShape& shape : model_->layout()) {
      tables_.emplace_back(shape.sparse ? config.features * shape.width : shape.size);
      squares_.emplace_back(tables_.back().size(), 1e-8);
      const uint64_t rows = shape.sparse ? config.features : 0;
      for (uint64_t key = 0; key < rows; ++key) {
        shape.init.fill(key, std::span(tables_.back()).subspan(key * shape.width, shape.width));
      }
    }
  }

  void train(const Dataset& data, uint64_t epochs) {
    ASSERT_TRUE(model_->check(data).ok()) << model_->check(data).message();
    const Sampler sampler(data.rows(), kBatch, 1, 1);
    std::vector<uint64_t> rows;
    for (uint64_t step = 0; step < epochs * sampler.steps_per_epoch(); ++step) {
      sampler.rows_of(step / sampler.steps_per_epoch(), step % sampler.steps_per_epoch(), 0, &rows);
      pull(data, rows);
      model_->step(batch_, parameters_, 1.0 / static_cast<double>(rows.size()), &gradients_);
      for_each_value([&](size_t t, size_t at, size_t i) {
        const double gradient = gradients_.tables[t][i];
        squares_[t][at] += gradient * gradient;
        tables_[t][at] -= rate_ * gradient / std::sqrt(squares_[t][at]);
      });
    }
  }

  Metrics evaluate(const Dataset& data) {
    std::vector<uint64_t> rows(data.rows());
    std::iota(rows.begin(), rows.end(), 0);
    pull(data, rows);
    return metrics_of(*model_, batch_, parameters_);
  }

 private:
  void pull(const Dataset& data, const std::vector<uint64_t>& rows) {
    builder_.build(data, rows, &batch_);
    shape_for(batch_, model_->layout(), &parameters_);
    for_each_value([&](size_t t, size_t at, size_t i) { parameters_.tables[t][i] = tables_[t][at]; });
  }
  // Calls use(table, place in the table, place in the batch's parameters).
  template <class Use>
  void for_each_value(Use use) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      const TableShape& shape = model_->layout()[t];
      for (size_t i = 0; i < parameters_.tables[t].size(); ++i) {
        use(t, shape.sparse ? batch_.keys[i / shape.width] * shape.width + i % shape.width : i, i);
      }
    }
  }

  std::unique_ptr<Model<double>> model_;
  double rate_;
  std::vector<std::vector<double>> tables_, squares_;
  BatchBuilder builder_;
  Batch batch_;
  Parameters<double> parameters_;
  Gradients<double> gradients_;
};

struct Task {
  ModelConfig model;
  double rate = 0.1;
  uint64_t rows = 20'000;
  uint64_t epochs = 3;
};
constexpr uint64_t kTestRows = 10'000;

ModelConfig config(const std::string& type, uint64_t features) {
  ModelConfig config;
  config.type = type;
  config.features = features;
  config.init_scale = 0.1;
  return config;
}

Metrics learned(const Task& task, const RowGenerator& generator) {
  SerialTrainer trainer(task.model, task.rate);
  trainer.train(generate(generator, 0, task.rows), task.epochs);
  return trainer.evaluate(generate(generator, task.rows, kTestRows));
}

// What `add` makes of the held-out rows: add(keys, label, metrics).
template <class Add>
Metrics planted(Objective objective, const RowGenerator& generator, const Task& task, Add add) {
  Metrics metrics(objective);
  std::vector<uint64_t> keys(generator.row_size());
  for (uint64_t i = 0; i < kTestRows; ++i) {
    const float label = generator.row(task.rows + i, keys);
    add(keys, label, &metrics);
  }
  return metrics;
}

Metrics planted_clicks(const ClickGenerator& generator, const Task& task) {
  return planted(Objective::kBinary, generator, task, [&](const auto& keys, float label, Metrics* metrics) {
    metrics->add_score(static_cast<float>(generator.planted_logit(keys)), label > 0, 0);
  });
}

const ClickOptions kClicks{.features = 300, .fields = 8, .bias = -0.5, .weight_sd = 0.5};

TEST(Learning, logistic_ranks_as_well_as_the_planted_model_and_is_calibrated) {
  const ClickGenerator generator(kClicks);
  const Task task{.model = config("logistic", 300)};
  const Metrics metrics = learned(task, generator), best = planted_clicks(generator, task);
  EXPECT_GT(best.auc(), 0.75);
  EXPECT_NEAR(metrics.auc(), best.auc(), 0.01);
  EXPECT_NEAR(metrics.accuracy(), best.accuracy(), 0.01);
  EXPECT_NEAR(*metrics.calibration(), 1, 0.05);
  EXPECT_LT(metrics.expected_calibration_error(), 0.03);
}

TEST(Learning, hinge_ranks_and_decides_nearly_as_well_as_the_planted_model) {
  const ClickGenerator generator(kClicks);
  const Task task{.model = config("hinge", 300), .rate = 0.05, .epochs = 10};
  const Metrics metrics = learned(task, generator), best = planted_clicks(generator, task);
  EXPECT_NEAR(metrics.auc(), best.auc(), 0.01);
  EXPECT_NEAR(metrics.accuracy(), best.accuracy(), 0.01);
}

TEST(Learning, linear_regression_errs_by_the_noise_only) {
  const RegressionGenerator generator({.features = 300, .fields = 8, .bias = 2, .weight_sd = 0.7, .noise_sd = 0.5});
  EXPECT_NEAR(learned({.model = config("linear", 300)}, generator).rmse(), 0.5, 0.02);
}

TEST(Learning, softmax_decides_as_well_as_the_planted_model) {
  const ClassGenerator generator({.features = 200, .fields = 8, .classes = 4, .weight_sd = 0.6});
  Task task{.model = config("softmax", 200)};
  task.model.classes = 4;
  const Metrics best =
      planted(Objective::kClasses, generator, task, [&](const auto& keys, float label, Metrics* metrics) {
        metrics->add_class(static_cast<float>(generator.planted_class(keys)) == label, 0, 0);
      });
  const Metrics metrics = learned(task, generator);
  EXPECT_GT(best.accuracy(), 0.6);
  EXPECT_NEAR(metrics.accuracy(), best.accuracy(), 0.01);
  EXPECT_LT(metrics.expected_calibration_error(), 0.03);
}

TEST(Learning, factorisation_machines_learn_pairs_of_keys_and_logistic_cannot) {
  ClickOptions options{.features = 60, .fields = 6, .bias = 0, .weight_sd = 0.3};
  options.factors = 2;
  options.interaction_sd = 2;
  const ClickGenerator generator(options);
  Task task{.model = config("fm", 60)};
  task.model.factors = 2;
  const double best = planted_clicks(generator, task).auc(), fm = learned(task, generator).auc();
  task.model.type = "ffm";
  task.model.field_count = 6;
  const double ffm = learned(task, generator).auc();
  task.model.type = "logistic";
  const double logistic = learned(task, generator).auc();
  EXPECT_GT(best, 0.85);
  EXPECT_NEAR(fm, best, 0.01);
  EXPECT_NEAR(ffm, best, 0.02);
  EXPECT_LT(logistic, best - 0.05);
}

TEST(Learning, matrix_factorisation_errs_by_the_noise_only) {
  const RatingGenerator generator(
      {.users = 80, .items = 40, .factors = 2, .bias_sd = 0.4, .interaction_sd = 1, .noise_sd = 0.5});
  Task task{.model = config("mf", 120), .rate = 0.2, .epochs = 30};
  task.model.factors = 2;
  const double rmse = learned(task, generator).rmse();
  EXPECT_NEAR(rmse, 0.5, 0.025);
  EXPECT_GT(rmse, 0.45) << "less than the noise would be luck, or the answer in the question";
}

}  // namespace
}  // namespace talweg
