#include "model/linear.h"

#include "math/kernels.h"

namespace talweg {

template <class Real>
StepCost LinearScore<Real>::cost(const Batch& batch) const {
  const auto nonzeros = static_cast<double>(batch.index.size());
  // Two passes over the non-zeros, each a multiplication, an addition and a scattered access.
  return {.flops = 4 * nonzeros, .bytes = 2 * nonzeros * (sizeof(uint32_t) + sizeof(Real))};
}

template <class Real>
Real LinearScore<Real>::Pass::forward(size_t row) const {
  const auto [index, values] = row_of(batch_, row);
  return gather_dot(weights_, index, values);
}

template <class Real>
void LinearScore<Real>::Pass::backward(size_t row, Real slope, Gradients<Real>* gradients) const {
  const auto [index, values] = row_of(batch_, row);
  scatter_axpy(gradients->tables[0].data(), index, values, slope);
}

template class LinearScore<float>;
template class LinearScore<double>;

}  // namespace talweg
