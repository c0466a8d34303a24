#include "model/fm.h"

#include "math/kernels.h"

namespace talweg {
namespace {

// One key's share of the sums. Factors are independent of each other here, so any vector width gives the same bits.
template <class Real>
void add_key(const Real* __restrict factors, Real value, size_t count, Real* __restrict sums,
             Real* __restrict squares) {
  for (size_t f = 0; f < count; ++f) {
    const Real term = factors[f] * value;
    sums[f] += term;
    squares[f] += term * term;
  }
}

// The derivative of the pairs in one key's factors: its value times the sum over the row's other entries.
template <class Real>
void add_gradient(const Real* __restrict factors, Real value, Real slope, size_t count, const Real* __restrict sums,
                  Real* __restrict gradient) {
  for (size_t f = 0; f < count; ++f) gradient[f] += slope * (sums[f] - factors[f] * value);
}

}  // namespace

template <class Real>
std::vector<TableShape> FmScore<Real>::tables() const {
  return {{.name = "weights", .sparse = true, .width = 1, .size = 0},
          {.name = "factors",
           .sparse = true,
           .width = factors_,
           .size = 0,
           .init = {.type = InitType::kNormal, .scale = init_scale_}}};
}

template <class Real>
StepCost FmScore<Real>::cost(const Batch& batch) const {
  const auto nonzeros = static_cast<double>(batch.index.size()), rows = static_cast<double>(batch.rows());
  const double width = 1 + static_cast<double>(factors_);
  // Forward reads a key's values, backward reads them again and changes as many gradients.
  return {.flops = 8 * nonzeros * width + 3 * rows * width,
          .bytes = nonzeros * (2 * sizeof(uint32_t) + 4 * width * sizeof(Real))};
}

template <class Real>
FmScore<Real>::Pass::Pass(const FmScore& score, const Batch& batch, const Parameters<Real>& parameters)
    : batch_(batch),
      weights_(parameters.tables[0].data()),
      factors_(parameters.tables[1].data()),
      sums_(score.factors_),
      squares_(score.factors_),
      pairs_(score.factors_) {}

template <class Real>
Real FmScore<Real>::Pass::forward(size_t row) {
  const RowView view = row_of(batch_, row);
  const size_t count = sums_.size();
  std::fill(sums_.begin(), sums_.end(), Real{0});
  std::fill(squares_.begin(), squares_.end(), Real{0});
  for (size_t e = 0; e < view.index.size(); ++e) {
    add_key(factors_ + view.index[e] * count, view.template value<Real>(e), count, sums_.data(), squares_.data());
  }
  for (size_t f = 0; f < count; ++f) pairs_[f] = sums_[f] * sums_[f] - squares_[f];
  return gather_dot(weights_, view.index, view.values) + sum(std::span<const Real>(pairs_)) / 2;
}

template <class Real>
void FmScore<Real>::Pass::backward(size_t row, Real slope, Gradients<Real>* gradients) const {
  const RowView view = row_of(batch_, row);
  const size_t count = sums_.size();
  scatter_axpy(gradients->tables[0].data(), view.index, view.values, slope);
  Real* const factor_gradients = gradients->tables[1].data();
  for (size_t e = 0; e < view.index.size(); ++e) {
    const size_t at = view.index[e] * count;
    const Real value = view.template value<Real>(e);
    add_gradient(factors_ + at, value, slope * value, count, sums_.data(), factor_gradients + at);
  }
}

template class FmScore<float>;
template class FmScore<double>;

}  // namespace talweg
