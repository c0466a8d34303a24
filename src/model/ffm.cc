#include "model/ffm.h"

#include "math/kernels.h"

namespace talweg {
namespace {

template <class Real>
void add_pair(const Real* __restrict a, const Real* __restrict b, Real value, size_t count, Real* __restrict pairs) {
  for (size_t f = 0; f < count; ++f) pairs[f] += value * a[f] * b[f];
}

// The two gradients of a pair are added one after the other: when a key meets itself they are the same memory.
template <class Real>
void add_scaled(const Real* __restrict from, Real value, size_t count, Real* __restrict into) {
  for (size_t f = 0; f < count; ++f) into[f] += value * from[f];
}

}  // namespace

template <class Real>
Status FfmScore<Real>::check_config(const ModelConfig& config) {
  if (uint64_t{config.field_count} * config.factors > kMostRowValues) {
    return error(Code::kInvalid, "model.factors: {} fields of {} factors are {} values for each key; at most {} fit",
                 config.field_count, config.factors, uint64_t{config.field_count} * config.factors, kMostRowValues);
  }
  if (config.field_count > config.features) {
    return error(Code::kInvalid, "model.fields: {} fields do not fit in {} features", config.field_count,
                 config.features);
  }
  return {};
}

template <class Real>
std::vector<TableShape> FfmScore<Real>::tables() const {
  return {{.name = "weights", .sparse = true, .width = 1, .size = 0},
          {.name = "factors",
           .sparse = true,
           .width = fields_ * factors_,
           .size = 0,
           .init = {.type = InitType::kNormal, .scale = init_scale_}}};
}

// Field f starts at features * f / fields, rounded down; this is the last f that starts no later than the key.
template <class Real>
uint32_t FfmScore<Real>::field_of(uint64_t key) const {
  const unsigned __int128 scaled = (static_cast<unsigned __int128>(key) + 1) * fields_ - 1;
  return static_cast<uint32_t>(scaled / features_);
}

template <class Real>
StepCost FfmScore<Real>::cost(const Batch& batch) const {
  const auto nonzeros = static_cast<double>(batch.index.size());
  double pairs = 0;
  for (size_t row = 0; row < batch.rows(); ++row) {
    const double size = batch.offsets[row + 1] - batch.offsets[row];
    pairs += size * (size - 1) / 2;
  }
  const auto factors = static_cast<double>(factors_);
  // A pair reads two vectors forward, reads them again and changes two more backward. Each is somewhere else.
  return {.flops = 7 * pairs * factors + 4 * nonzeros,
          .bytes = 8 * pairs * factors * sizeof(Real) + 2 * nonzeros * (sizeof(uint32_t) + sizeof(Real))};
}

template <class Real>
FfmScore<Real>::Pass::Pass(const FfmScore& score, const Batch& batch, const Parameters<Real>& parameters)
    : batch_(batch),
      weights_(parameters.tables[0].data()),
      factors_(parameters.tables[1].data()),
      width_(size_t{score.fields_} * score.factors_),
      field_offset_(batch.keys.size()),
      pairs_(score.factors_) {
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    field_offset_[i] = size_t{score.field_of(batch.keys[i])} * score.factors_;
  }
}

template <class Real>
Real FfmScore<Real>::Pass::forward(size_t row) {
  const RowView view = row_of(batch_, row);
  std::fill(pairs_.begin(), pairs_.end(), Real{0});
  for (size_t i = 0; i < view.index.size(); ++i) {
    const Real value = view.template value<Real>(i);
    for (size_t j = i + 1; j < view.index.size(); ++j) {
      const uint32_t a = view.index[i], b = view.index[j];
      add_pair(factors_ + vector_of(a, b), factors_ + vector_of(b, a), value * view.template value<Real>(j),
               pairs_.size(), pairs_.data());
    }
  }
  return gather_dot(weights_, view.index, view.values) + sum(std::span<const Real>(pairs_));
}

template <class Real>
void FfmScore<Real>::Pass::backward(size_t row, Real slope, Gradients<Real>* gradients) const {
  const RowView view = row_of(batch_, row);
  scatter_axpy(gradients->tables[0].data(), view.index, view.values, slope);
  Real* const factor_gradients = gradients->tables[1].data();
  for (size_t i = 0; i < view.index.size(); ++i) {
    const Real value = slope * view.template value<Real>(i);
    for (size_t j = i + 1; j < view.index.size(); ++j) {
      const Real scaled = value * view.template value<Real>(j);
      const size_t a = vector_of(view.index[i], view.index[j]), b = vector_of(view.index[j], view.index[i]);
      add_scaled(factors_ + b, scaled, pairs_.size(), factor_gradients + a);
      add_scaled(factors_ + a, scaled, pairs_.size(), factor_gradients + b);
    }
  }
}

template class FfmScore<float>;
template class FfmScore<double>;

}  // namespace talweg
