// How far weights moved: the L2 norm of the difference between two states, always added in the same order, so that all
// machines find the same bits. Difference i of a run is added to lane i mod kLanes; the lanes are added at the end.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace talweg {

class ChangeNorm {
 public:
  template <class Real>
  void add(const Real* now, const Real* before, size_t count) {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) add_one(now[i + lane], before[i + lane], lane);
    }
    for (size_t lane = 0; i < count; ++i, ++lane) add_one(now[i], before[i], lane);
  }
  double value() const {
    double sum = 0;
    for (const double lane : lanes_) sum += lane;
    return std::sqrt(sum);
  }

 private:
  static constexpr size_t kLanes = 8;

  void add_one(double now, double before, size_t lane) { lanes_[lane] += (now - before) * (now - before); }

  std::array<double, kLanes> lanes_ = {};
};

}  // namespace talweg
