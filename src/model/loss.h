// Losses of a row whose prediction is one number. A loss says what a score costs against a label, and its slope in the
// score; everything else about a model is the same under any of them.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/metrics.h"
#include "model/rows.h"

namespace talweg {

// The logarithm of the label's probability, negated. Labels above zero are positive, all others negative.
struct LogisticLoss {
  static constexpr Objective kObjective = Objective::kBinary;
  static constexpr double kFlops = 40;  // two exponentials and a logarithm

  static Status check(const Dataset&) { return {}; }
  template <class Real>
  static double loss(Real score, float label) {
    const double margin = label > 0 ? score : -score;
    // log(1 + exp(-margin)) without overflow.
    return std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0);
  }
  template <class Real>
  static Real slope(Real score, float label) {
    const Real probability = Real{1} / (Real{1} + std::exp(-score));
    return probability - (label > 0 ? Real{1} : Real{0});
  }
};

// Half the squared distance, whose slope is the distance.
struct SquaredLoss {
  static constexpr Objective kObjective = Objective::kRegression;
  static constexpr double kFlops = 4;

  static Status check(const Dataset& data) { return check_labels_are_finite(data); }
  template <class Real>
  static double loss(Real score, float label) {
    const double distance = score - static_cast<Real>(label);
    return distance * distance / 2;
  }
  template <class Real>
  static Real slope(Real score, float label) {
    return score - static_cast<Real>(label);
  }
};

// What is missing to a margin of one (Cortes, Vapnik, "Support-vector networks", 1995). Labels above zero are positive.
struct HingeLoss {
  static constexpr Objective kObjective = Objective::kMargin;
  static constexpr double kFlops = 4;

  static Status check(const Dataset&) { return {}; }
  template <class Real>
  static double loss(Real score, float label) {
    // In this order a score that is no number costs no number, instead of nothing.
    return std::max(1 - static_cast<double>(label > 0 ? score : -score), 0.0);
  }
  template <class Real>
  static Real slope(Real score, float label) {
    const Real sign = label > 0 ? Real{1} : Real{-1};
    return sign * score < 1 ? -sign : Real{0};
  }
};

template <class Loss, class Real>
void record(Real score, float label, Metrics* metrics) {
  const double loss = Loss::loss(score, label);
  if constexpr (Loss::kObjective == Objective::kRegression) {
    metrics->add_prediction(static_cast<double>(score), label, loss);
  } else {
    metrics->add_score(static_cast<float>(score), label > 0, loss);
  }
}

}  // namespace talweg
