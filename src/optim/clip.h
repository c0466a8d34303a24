// Clipping of a summed gradient, row by row: first its length, then each element. Only who has it switched on pays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "optim/config.h"

namespace talweg {

// What clipping does to the elements of one row.
template <class Real>
struct RowClip {
  Real scale, limit;
  Real operator()(Real gradient) const { return std::min(std::max(gradient * scale, -limit), limit); }
};

class Clip {
 public:
  explicit Clip(const OptimizerConfig& config) : value_(config.clip_value), norm_(config.clip_row_norm) {}

  bool on() const { return value_ > 0 || norm_ > 0; }

  template <class Real>
  RowClip<Real> of_row(const Real* gradients, size_t width) const {
    const double norm = norm_ > 0 ? norm_of(gradients, width) : 0;
    return {norm > norm_ ? static_cast<Real>(norm_ / norm) : Real(1),
            value_ > 0 ? static_cast<Real>(value_) : std::numeric_limits<Real>::infinity()};
  }

 private:
  static constexpr size_t kLanes = 8;

  // In double, so that no square of a float overflows; in lanes, so that it runs on vectors in one fixed order.
  template <class Real>
  static double norm_of(const Real* gradients, size_t width) {
    double lanes[kLanes] = {}, sum = 0;
    const size_t whole = width - width % kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += static_cast<double>(gradients[i + lane]) * static_cast<double>(gradients[i + lane]);
      }
    }
    for (size_t i = whole; i < width; ++i) sum += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
    for (const double lane : lanes) sum += lane;
    return std::sqrt(sum);
  }

  double value_, norm_;
};

}  // namespace talweg
