#include "model/logistic.h"

#include <algorithm>
#include <cmath>

#include "math/kernels.h"

namespace talweg {
namespace {

constexpr size_t kWeights = 0, kBias = 1;

// log(1 + exp(-z)) without overflow.
double softplus_of_minus(double z) { return std::log1p(std::exp(-std::abs(z))) + std::max(-z, 0.0); }

struct RowOf {
  std::span<const uint32_t> index;
  std::span<const float> values;
};

RowOf row_of(const Batch& batch, size_t i) {
  const size_t begin = batch.offsets[i], count = batch.offsets[i + 1] - begin;
  const std::span<const float> values(batch.values);
  return {std::span(batch.index).subspan(begin, count), values.empty() ? values : values.subspan(begin, count)};
}

}  // namespace

template <class Real>
Logistic<Real>::Logistic(uint64_t features)
    : features_(features),
      layout_{{.name = "weights", .sparse = true, .width = 1, .size = 0, .init = {}},
              {.name = "bias", .sparse = false, .width = 1, .size = 1, .init = {}}} {}

template <class Real>
Status Logistic<Real>::check(const Dataset& data) const {
  if (data.rows() == 0 || data.max_key() < features_) return {};
  return error(Code::kInvalid, "the data has key {}, but model.features is {}: set it to at least {}", data.max_key(),
               features_, data.max_key() + 1);
}

template <class Real>
StepCost Logistic<Real>::cost(const Batch& batch) const {
  const auto nonzeros = static_cast<double>(batch.index.size()), rows = static_cast<double>(batch.rows());
  // Two passes over the non-zeros, each a multiplication, an addition and a scattered access.
  return {.flops = 4 * nonzeros + 40 * rows, .bytes = 2 * nonzeros * (sizeof(uint32_t) + sizeof(Real))};
}

template <class Real>
StepResult Logistic<Real>::step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                                Gradients<Real>* gradients) {
  shape_for(batch, layout_, gradients);
  const Real* weights = parameters.tables[kWeights].data();
  const Real bias = parameters.tables[kBias][0];
  std::vector<Real>& weight_gradients = gradients->tables[kWeights];
  std::fill(weight_gradients.begin(), weight_gradients.end(), Real{0});
  Real bias_gradient = 0;
  StepResult result{.loss_sum = 0, .rows = batch.rows()};
  for (size_t i = 0; i < batch.rows(); ++i) {
    const auto [index, values] = row_of(batch, i);
    const Real margin = bias + gather_dot(weights, index, values);
    const bool positive = batch.labels[i] > 0;
    result.loss_sum += softplus_of_minus(positive ? margin : -margin);
    const Real probability = Real{1} / (Real{1} + std::exp(-margin));
    const Real slope = scale * (probability - (positive ? Real{1} : Real{0}));
    scatter_axpy(weight_gradients.data(), index, values, slope);
    bias_gradient += slope;
  }
  gradients->tables[kBias][0] = bias_gradient;
  return result;
}

template <class Real>
StepResult Logistic<Real>::evaluate(const Batch& batch, const Parameters<Real>& parameters,
                                    std::vector<float>* scores) const {
  StepResult result{.loss_sum = 0, .rows = batch.rows()};
  scores->resize(batch.rows());
  for (size_t i = 0; i < batch.rows(); ++i) {
    const auto [index, values] = row_of(batch, i);
    const Real margin = parameters.tables[kBias][0] + gather_dot(parameters.tables[kWeights].data(), index, values);
    result.loss_sum += softplus_of_minus(batch.labels[i] > 0 ? margin : -margin);
    (*scores)[i] = static_cast<float>(margin);
  }
  return result;
}

template class Logistic<float>;
template class Logistic<double>;

}  // namespace talweg
