#include "model/softmax.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/rows.h"

namespace talweg {
namespace {

constexpr size_t kWeights = 0, kBias = 1;

template <class Real>
void add_scaled(const Real* __restrict from, Real value, size_t count, Real* __restrict into) {
  for (size_t c = 0; c < count; ++c) into[c] += value * from[c];
}

bool is_class(float label, uint32_t classes) {
  return label >= 0 && label < static_cast<float>(classes) && label == std::floor(label);
}

size_t class_of(float label, uint32_t classes) {
  CHECK(is_class(label, classes));
  return static_cast<size_t>(label);
}

}  // namespace

template <class Real>
Softmax<Real>::Softmax(const ModelConfig& config)
    : features_(config.features),
      classes_(config.classes),
      layout_{{.name = "weights", .sparse = true, .width = config.classes, .size = 0},
              {.name = "bias", .sparse = false, .width = 1, .size = config.classes}} {}

template <class Real>
Status Softmax<Real>::check(const Dataset& data) const {
  TRY(check_keys(data, features_));
  for (size_t row = 0; row < data.rows(); ++row) {
    if (!is_class(data.label(row), classes_)) {
      return error(Code::kInvalid, "row {} has the label {}; with model.classes {} a label is one of 0 to {}", row,
                   data.label(row), classes_, classes_ - 1);
    }
  }
  return {};
}

template <class Real>
StepCost Softmax<Real>::cost(const Batch& batch) const {
  const auto nonzeros = static_cast<double>(batch.index.size()), rows = static_cast<double>(batch.rows());
  const auto classes = static_cast<double>(classes_);
  // A row of weights is read forward, a row of gradients read and written backward.
  return {.flops = 4 * nonzeros * classes + 25 * rows * classes,
          .bytes = nonzeros * (2 * sizeof(uint32_t) + 3 * classes * sizeof(Real))};
}

template <class Real>
double Softmax<Real>::predict(const Batch& batch, const Parameters<Real>& parameters, size_t row,
                              std::span<Real> out) const {
  const RowView view = row_of(batch, row);
  std::copy_n(parameters.tables[kBias].begin(), classes_, out.begin());
  const Real* const weights = parameters.tables[kWeights].data();
  for (size_t e = 0; e < view.index.size(); ++e) {
    add_scaled(weights + size_t{view.index[e]} * classes_, view.template value<Real>(e), classes_, out.data());
  }
  // The highest score becomes 0, so that no exponential overflows.
  const Real most = *std::max_element(out.begin(), out.end());
  const double of_label = out[class_of(batch.labels[row], classes_)] - most;
  Real sum = 0;
  for (Real& score : out) {
    score = std::exp(score - most);
    sum += score;
  }
  for (Real& score : out) score /= sum;
  return std::log(static_cast<double>(sum)) - of_label;
}

template <class Real>
StepResult Softmax<Real>::step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                               Gradients<Real>* gradients) {
  shape_for(batch, layout_, gradients);
  for (auto& table : gradients->tables) std::fill(table.begin(), table.end(), Real{0});
  Real* const weight_gradients = gradients->tables[kWeights].data();
  std::vector<Real> slopes(classes_);
  StepResult result{.loss_sum = 0, .rows = batch.rows()};
  for (size_t i = 0; i < batch.rows(); ++i) {
    result.loss_sum += predict(batch, parameters, i, slopes);
    slopes[class_of(batch.labels[i], classes_)] -= 1;
    for (Real& slope : slopes) slope *= scale;
    const RowView view = row_of(batch, i);
    for (size_t e = 0; e < view.index.size(); ++e) {
      add_scaled(slopes.data(), view.template value<Real>(e), classes_,
                 weight_gradients + size_t{view.index[e]} * classes_);
    }
    add_scaled(slopes.data(), Real{1}, classes_, gradients->tables[kBias].data());
  }
  return result;
}

template <class Real>
void Softmax<Real>::evaluate(const Batch& batch, const Parameters<Real>& parameters, Metrics* metrics) const {
  std::vector<Real> probabilities(classes_);
  for (size_t i = 0; i < batch.rows(); ++i) {
    const double loss = predict(batch, parameters, i, probabilities);
    const auto likeliest = std::max_element(probabilities.begin(), probabilities.end());
    const bool right = likeliest - probabilities.begin() == static_cast<ptrdiff_t>(batch.labels[i]);
    metrics->add_class(right, static_cast<double>(*likeliest), loss);
  }
}

template class Softmax<float>;
template class Softmax<double>;

}  // namespace talweg
