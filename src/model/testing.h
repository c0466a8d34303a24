// For tests of models: batches, random parameters, and the gradient by finite differences.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/generator.h"
#include "model/registry.h"

namespace talweg {

inline std::unique_ptr<Model<double>> model_of(const ModelConfig& config) {
  auto model = ModelRegistry::standard().make<double>(config);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

// Three rows with values: two share key 9, one has a key twice, one is empty.
inline Batch small_batch(std::vector<float> labels) {
  Batch batch;
  batch.keys = {4, 9, 2};
  batch.offsets = {0, 2, 5, 5};
  batch.index = {0, 1, 1, 2, 1};
  batch.values = {1.5f, -2, 0.5f, 3, 0.25f};
  batch.labels = std::move(labels);
  return batch;
}

inline Batch whole(const Dataset& data) {
  std::vector<uint64_t> rows(data.rows());
  std::iota(rows.begin(), rows.end(), 0);
  Batch batch;
  BatchBuilder().build(data, rows, &batch);
  return batch;
}

template <class Real>
Parameters<Real> zero_parameters(const Batch& batch, const Model<Real>& model) {
  Parameters<Real> parameters;
  shape_for(batch, model.layout(), &parameters);
  return parameters;
}

inline Parameters<double> random_parameters(const Batch& batch, const Model<double>& model, double scale = 1) {
  Parameters<double> parameters = zero_parameters(batch, model);
  Rng rng(5);
  for (auto& table : parameters.tables) {
    for (double& value : table) value = scale * rng.normal();
  }
  return parameters;
}

inline Metrics metrics_of(const Model<double>& model, const Batch& batch, const Parameters<double>& parameters) {
  Metrics metrics(model.objective());
  model.evaluate(batch, parameters, &metrics);
  return metrics;
}

inline double loss_of(const Model<double>& model, const Batch& batch, const Parameters<double>& parameters) {
  return metrics_of(model, batch, parameters).loss() * static_cast<double>(batch.rows());
}

// Central differences. Their rounding grows with the loss, hence the tolerance relative to it.
inline void expect_gradient_of_finite_differences(Model<double>& model, const Batch& batch) {
  Parameters<double> parameters = random_parameters(batch, model);
  Gradients<double> gradients;
  const double scale = 0.25, h = 1e-6;
  const StepResult result = model.step(batch, parameters, scale, &gradients);
  const double tolerance = 1e-8 * std::max(1.0, result.loss_sum / 10);
  EXPECT_EQ(result.rows, batch.rows());
  EXPECT_NEAR(result.loss_sum, loss_of(model, batch, parameters), 1e-12 * result.loss_sum);
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
      EXPECT_NEAR(gradients.tables[t][i], scale * (above - below) / (2 * h), tolerance)
          << model.layout()[t].name << ", " << i;
    }
  }
}

// The model in float, on the same rounded parameters, computes nearly the same.
inline void expect_float_agrees(const ModelConfig& config, const Batch& batch) {
  const auto exact = model_of(config);
  auto rough = ModelRegistry::standard().make<float>(config);
  ASSERT_TRUE(rough.ok());
  Parameters<double> parameters = random_parameters(batch, *exact, 0.3);
  Parameters<float> rounded;
  for (const auto& table : parameters.tables) rounded.tables.emplace_back(table.begin(), table.end());
  Gradients<double> gradients;
  Gradients<float> rounded_gradients;
  const double loss = exact->step(batch, parameters, 1, &gradients).loss_sum;
  EXPECT_NEAR((*rough)->step(batch, rounded, 1, &rounded_gradients).loss_sum, loss, 1e-4 * loss);
  for (size_t t = 0; t < gradients.tables.size(); ++t) {
    for (size_t i = 0; i < gradients.tables[t].size(); ++i) {
      EXPECT_NEAR(rounded_gradients.tables[t][i], gradients.tables[t][i],
                  1e-4 * (1 + std::abs(gradients.tables[t][i])));
    }
  }
  Metrics metrics((*rough)->objective());
  (*rough)->evaluate(batch, rounded, &metrics);
  EXPECT_NEAR(metrics.loss() * static_cast<double>(batch.rows()), loss, 1e-4 * loss);
}

inline std::string refusal(const Model<double>& model, const Dataset& data) { return model.check(data).message(); }

// Rows without values, for what must be refused.
inline Dataset rows_of(std::vector<float> labels, std::vector<uint64_t> offsets, std::vector<uint32_t> keys,
                       std::vector<float> values = {}) {
  struct Memory {
    std::vector<float> labels;
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> keys;
    std::vector<float> values;
  };
  auto memory =
      std::make_shared<Memory>(Memory{std::move(labels), std::move(offsets), std::move(keys), std::move(values)});
  DatasetColumns columns;
  columns.labels = memory->labels;
  columns.offsets = memory->offsets;
  columns.keys32 = memory->keys;
  columns.values = memory->values;
  for (const uint32_t key : memory->keys) columns.max_key = std::max<uint64_t>(columns.max_key, key);
  return Dataset(columns, memory);
}

}  // namespace talweg
