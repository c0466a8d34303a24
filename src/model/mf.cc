#include "model/mf.h"

#include "math/kernels.h"

namespace talweg {

template <class Real>
std::vector<TableShape> MfScore<Real>::tables() const {
  return {{.name = "factors",
           .sparse = true,
           .width = factors_,
           .size = 0,
           .init = {.type = InitType::kNormal, .scale = init_scale_}},
          {.name = "biases", .sparse = true, .width = 1, .size = 0}};
}

template <class Real>
Status MfScore<Real>::check(const Dataset& data) const {
  TRY(check_keys(data, features_));
  for (size_t row = 0; row < data.rows(); ++row) {
    if (data.row_size(row) != 2) {
      return error(Code::kInvalid, "row {} has {} entries; a row for mf has two, a user's key and an item's", row,
                   data.row_size(row));
    }
    const auto [a, a_value] = data.entry(row, 0);
    const auto [b, b_value] = data.entry(row, 1);
    if (a == b) return error(Code::kInvalid, "row {} has the key {} twice; a user and an item must differ", row, a);
    if (a_value != 1 || b_value != 1) {
      return error(Code::kInvalid, "row {} has the values {} and {}; mf takes no values but 1, the rating is the label",
                   row, a_value, b_value);
    }
  }
  return {};
}

template <class Real>
StepCost MfScore<Real>::cost(const Batch& batch) const {
  const double values = static_cast<double>(batch.rows()) * (1 + static_cast<double>(factors_));
  // Two vectors are read forward, read again and two gradients changed backward.
  return {.flops = 6 * values, .bytes = 8 * values * sizeof(Real)};
}

template <class Real>
Real MfScore<Real>::Pass::forward(size_t row) const {
  const size_t at = batch_.offsets[row];
  const size_t a = batch_.index[at], b = batch_.index[at + 1];
  const std::span<const Real> of_a(factors_ + a * count_, count_), of_b(factors_ + b * count_, count_);
  return biases_[a] + biases_[b] + dot(of_a, of_b);
}

template <class Real>
void MfScore<Real>::Pass::backward(size_t row, Real slope, Gradients<Real>* gradients) const {
  const size_t at = batch_.offsets[row];
  const size_t a = batch_.index[at], b = batch_.index[at + 1];
  Real* const into = gradients->tables[0].data();
  const std::span<const Real> of_a(factors_ + a * count_, count_), of_b(factors_ + b * count_, count_);
  axpy(slope, of_b, std::span(into + a * count_, count_));
  axpy(slope, of_a, std::span(into + b * count_, count_));
  gradients->tables[1][a] += slope;
  gradients->tables[1][b] += slope;
}

template class MfScore<float>;
template class MfScore<double>;

}  // namespace talweg
