// Logistic regression by serial mini-batch training, written out plainly: what distributed training is compared with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "data/sampler.h"
#include "train/job.h"
#include "train/trained_model.h"

namespace talweg {

constexpr uint64_t kBiasKey = ~uint64_t{0};

struct Weight {
  double value = 0;
  std::array<double, 2> state = {};
};
using Weights = std::unordered_map<uint64_t, Weight>;

inline double probability(const Dataset& data, uint64_t row, Weights& weights) {
  double margin = weights[kBiasKey].value;
  for (size_t i = 0; i < data.row_size(row); ++i) {
    const auto [key, value] = data.entry(row, i);
    margin += weights[key].value * value;
  }
  return 1 / (1 + std::exp(-margin));
}

// Each from its paper: momentum as in PyTorch, Adam (Kingma, Ba, 2015), FTRL (McMahan et al., 2013, algorithm 1). State
// starts at zero, AdaGrad's and FTRL's accumulator where the job says. `number` counts updates from 1.
inline void update(const OptimizerConfig& optimizer, double gradient, double lr, double number, Weight& weight) {
  double& w = weight.value;
  double &first = weight.state[0], &second = weight.state[1];
  if (optimizer.type == "ftrl") {
    if (second == 0) second = optimizer.initial_accumulator;
    const double grown = second + gradient * gradient;
    first += gradient - (std::sqrt(grown) - std::sqrt(second)) / lr * w;
    second = grown;
    const double shrunk = std::max(0.0, std::abs(first) - optimizer.l1);
    w = -std::copysign(shrunk, first) / ((optimizer.beta + std::sqrt(second)) / lr + optimizer.l2);
    return;
  }
  gradient += optimizer.l2 * w;
  if (optimizer.type == "sgd") {
    w -= lr * gradient;
  } else if (optimizer.type == "momentum") {
    first = optimizer.momentum * first + gradient;
    w -= lr * first;
  } else if (optimizer.type == "adagrad") {
    if (first == 0) first = optimizer.initial_accumulator;
    first += gradient * gradient;
    w -= lr * gradient / (std::sqrt(first) + optimizer.epsilon.value_or(1e-10));
  } else {
    first = optimizer.beta1 * first + (1 - optimizer.beta1) * gradient;
    second = optimizer.beta2 * second + (1 - optimizer.beta2) * gradient * gradient;
    const double mean = first / (1 - std::pow(optimizer.beta1, number));
    const double square = second / (1 - std::pow(optimizer.beta2, number));
    w -= lr * mean / (std::sqrt(square) + optimizer.epsilon.value_or(1e-8));
  }
}

// L2 reaches the weights a batch touches, and the bias always.
inline void serial_step(const JobConfig& job, const Dataset& data, const std::vector<uint64_t>& rows, int64_t step,
                        Weights& weights) {
  std::unordered_map<uint64_t, double> gradients;
  for (uint64_t row : rows) {
    const double slope = probability(data, row, weights) - (data.label(row) > 0 ? 1 : 0);
    gradients[kBiasKey] += slope;
    for (size_t i = 0; i < data.row_size(row); ++i) {
      const auto [key, value] = data.entry(row, i);
      gradients[key] += slope * value;
    }
  }
  const double mean = 1 / static_cast<double>(rows.size());
  const OptimizerConfig& optimizer = job.train.optimizer;
  const double lr = optimizer.lr * optimizer.schedule.rate_at(step);
  for (const auto& [key, gradient] : gradients) {
    update(optimizer, gradient * mean, lr, static_cast<double>(step + 1), weights[key]);
  }
}

inline Weights train_serially(const JobConfig& job, const Dataset& data) {
  const Sampler sampler(data.rows(), static_cast<uint64_t>(job.train.batch), 1, job.train.seed);
  Weights weights;
  std::vector<uint64_t> rows;
  int64_t steps = 0;
  for (uint64_t epoch = 0; epoch < static_cast<uint64_t>(job.train.epochs); ++epoch) {
    for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      sampler.rows_of(epoch, step, 0, &rows);
      serial_step(job, data, rows, steps++, weights);
    }
  }
  return weights;
}

// The numbers of a table in double precision.
inline std::vector<double> numbers_of(const TrainedTable& table) {
  std::vector<double> numbers(table.values.size() / sizeof(double));
  std::memcpy(numbers.data(), table.values.data(), table.values.size());
  return numbers;
}

}  // namespace talweg
