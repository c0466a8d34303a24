// The arithmetic of the optimizers that come with the system, one weight at a time. Where PyTorch has an optimizer of
// the name, this is its definition; L2 goes into the gradient unless said otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "optim/power.h"
#include "optim/rowwise.h"

namespace talweg {

// The proximal map of threshold * |value|: nearer to zero by the threshold, and exactly zero where that would pass it.
template <class Real>
Real soft_threshold(Real value, Real threshold) {
  return value - std::min(std::max(value, -threshold), threshold);
}

template <class Real>
struct SgdUpdate {
  static constexpr size_t kState = 0;
  Real lr, l2;

  explicit SgdUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)), l2(static_cast<Real>(config.l2)) {}
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 0>&) const { weight -= lr * (gradient + l2 * weight); }
};

// Duchi, Singer, "Efficient online and batch learning using forward backward splitting" (JMLR 2009).
template <class Real>
struct ProximalSgdUpdate : SgdUpdate<Real> {
  static constexpr bool kL1 = true;
  Real threshold;

  explicit ProximalSgdUpdate(const OptimizerConfig& config)
      : SgdUpdate<Real>(config), threshold(static_cast<Real>(config.lr * config.l1)) {}
  void operator()(Real& weight, Real gradient, std::array<Real, 0>& none) const {
    SgdUpdate<Real>::operator()(weight, gradient, none);
    weight = soft_threshold(weight, threshold);
  }
};

// Polyak's heavy ball.
template <class Real>
struct MomentumUpdate {
  static constexpr size_t kState = 1;
  Real lr, l2, momentum;

  explicit MomentumUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)),
        l2(static_cast<Real>(config.l2)),
        momentum(static_cast<Real>(config.momentum)) {}
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& velocity) const {
    velocity[0] = momentum * velocity[0] + (gradient + l2 * weight);
    weight -= lr * velocity[0];
  }
};

// Sutskever et al., "On the importance of initialization and momentum in deep learning" (ICML 2013): the gradient is
// taken where the velocity is about to lead.
template <class Real>
struct NesterovUpdate : MomentumUpdate<Real> {
  using MomentumUpdate<Real>::MomentumUpdate;
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& velocity) const {
    gradient += this->l2 * weight;
    velocity[0] = this->momentum * velocity[0] + gradient;
    weight -= this->lr * (gradient + this->momentum * velocity[0]);
  }
};

// Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (JMLR 2011), the
// diagonal form. Epsilon is added outside the root.
template <class Real>
struct AdagradUpdate {
  static constexpr size_t kState = 1;
  Real lr, l2, epsilon, initial;

  explicit AdagradUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)),
        l2(static_cast<Real>(config.l2)),
        epsilon(static_cast<Real>(config.epsilon.value_or(1e-10))),
        initial(static_cast<Real>(config.initial_accumulator)) {}
  Real initial_state(size_t) const { return initial; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& accumulator) const {
    gradient += l2 * weight;
    accumulator[0] += gradient * gradient;
    weight -= lr * gradient / (std::sqrt(accumulator[0]) + epsilon);
  }
};

// The paper's composite form (its section 5): the threshold is the weight's own rate times l1.
template <class Real>
struct ProximalAdagradUpdate : AdagradUpdate<Real> {
  static constexpr bool kL1 = true;
  Real lr_l1;

  explicit ProximalAdagradUpdate(const OptimizerConfig& config)
      : AdagradUpdate<Real>(config), lr_l1(static_cast<Real>(config.lr * config.l1)) {}
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& accumulator) const {
    AdagradUpdate<Real>::operator()(weight, gradient, accumulator);
    weight = soft_threshold(weight, lr_l1 / (std::sqrt(accumulator[0]) + this->epsilon));
  }
};

// Tieleman, Hinton, "Lecture 6.5: RMSProp" (2012).
template <class Real>
struct RmspropUpdate {
  static constexpr size_t kState = 1;
  Real lr, l2, epsilon, smoothing, fresh;

  explicit RmspropUpdate(const OptimizerConfig& config)
      : lr(static_cast<Real>(config.lr)),
        l2(static_cast<Real>(config.l2)),
        epsilon(static_cast<Real>(config.epsilon.value_or(1e-8))),
        smoothing(static_cast<Real>(config.smoothing)),
        fresh(static_cast<Real>(1 - config.smoothing)) {}
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& mean_square) const {
    gradient += l2 * weight;
    mean_square[0] = smoothing * mean_square[0] + fresh * gradient * gradient;
    weight -= lr * gradient / (std::sqrt(mean_square[0]) + epsilon);
  }
};

// Kingma, Ba, "Adam: a method for stochastic optimization" (ICLR 2015). The corrections of the means' bias follow the
// number of the table's update, also where a row was not part of every one: as PyTorch's SparseAdam does.
template <class Real>
struct AdamUpdate {
  static constexpr size_t kState = 2;
  Real l2, epsilon, beta1, fresh1, beta2, fresh2;
  Real keep = 1;               // of a weight, before it moves
  Real step, root_correction;  // the rate and what the root is multiplied by, corrected for bias

  AdamUpdate(const OptimizerConfig& config, double rate, uint64_t number)
      : l2(static_cast<Real>(config.l2)),
        epsilon(static_cast<Real>(config.epsilon.value_or(1e-8))),
        beta1(static_cast<Real>(config.beta1)),
        fresh1(static_cast<Real>(1 - config.beta1)),
        beta2(static_cast<Real>(config.beta2)),
        fresh2(static_cast<Real>(1 - config.beta2)) {
    CHECK(number >= 1);
    step = static_cast<Real>(config.lr * rate / (1 - whole_power(config.beta1, number)));
    root_correction = static_cast<Real>(1 / std::sqrt(1 - whole_power(config.beta2, number)));
  }
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 2>& means) const {
    gradient += l2 * weight;
    means[0] = beta1 * means[0] + fresh1 * gradient;
    means[1] = beta2 * means[1] + fresh2 * gradient * gradient;
    weight = keep * weight - step * means[0] / (std::sqrt(means[1]) * root_correction + epsilon);
  }
};

// Loshchilov, Hutter, "Decoupled weight decay regularization" (ICLR 2019): the decay does not pass through the means.
template <class Real>
struct AdamwUpdate : AdamUpdate<Real> {
  AdamwUpdate(const OptimizerConfig& config, double rate, uint64_t number) : AdamUpdate<Real>(config, rate, number) {
    this->keep = static_cast<Real>(1 - config.lr * rate * config.weight_decay);
  }
};

// FTRL-Proximal, McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), algorithm 1, with L1 and
// L2 as there. The state is alpha * z and n: so nothing is divided by alpha, which may be 0. The rate multiplies the
// gradient's part of z only, which makes it AdaGrad's rate when there is no penalty; were alpha to change between
// updates instead, a decaying rate would pull every weight towards zero. A weight that was not zero at first is
// forgotten, as z knows only gradients.
template <class Real>
struct FtrlUpdate {
  static constexpr size_t kState = 2;
  static constexpr bool kL1 = true;
  Real step, beta, alpha_l1, alpha_l2, initial;

  FtrlUpdate(const OptimizerConfig& config, double rate, uint64_t)
      : step(static_cast<Real>(config.lr * rate)),
        beta(static_cast<Real>(config.beta)),
        alpha_l1(static_cast<Real>(config.lr * config.l1)),
        alpha_l2(static_cast<Real>(config.lr * config.l2)),
        initial(static_cast<Real>(config.initial_accumulator)) {}
  Real initial_state(size_t k) const { return k == 0 ? Real(0) : initial; }
  void operator()(Real& weight, Real gradient, std::array<Real, 2>& state) const {
    auto& [alpha_z, n] = state;
    const Real old_root = std::sqrt(n);
    n += gradient * gradient;
    const Real root = std::sqrt(n);
    alpha_z += step * gradient - (root - old_root) * weight;
    // Where no gradient ever came and beta is 0, this is 0 by the least number there is, not 0 by 0.
    const Real curvature = std::max(beta + root + alpha_l2, std::numeric_limits<Real>::min());
    weight = soft_threshold(-alpha_z, alpha_l1) / curvature;
  }
};

}  // namespace talweg
