// The arithmetic of the optimizers that come with the system, one weight at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "optim/optimizer.h"

namespace talweg {

template <class Real>
struct SgdUpdate {
  static constexpr size_t kState = 0;
  Real lr, l2;

  explicit SgdUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)), l2(static_cast<Real>(config.l2)) {}
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 0>&) const { weight -= lr * (gradient + l2 * weight); }
};

// Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (JMLR 2011), the
// diagonal form. Epsilon is added outside the root and L2 goes into the gradient, as PyTorch's Adagrad does.
template <class Real>
struct AdagradUpdate {
  static constexpr size_t kState = 1;
  Real lr, l2, epsilon, initial;

  explicit AdagradUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)),
        l2(static_cast<Real>(config.l2)),
        epsilon(static_cast<Real>(config.epsilon)),
        initial(static_cast<Real>(config.initial_accumulator)) {}
  Real initial_state(size_t) const { return initial; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& accumulator) const {
    gradient += l2 * weight;
    accumulator[0] += gradient * gradient;
    weight -= lr * gradient / (std::sqrt(accumulator[0]) + epsilon);
  }
};

}  // namespace talweg
