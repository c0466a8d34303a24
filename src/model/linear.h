// Linear models on sparse rows, a weight per key and a bias, under three losses: linear regression (squared), logistic
// regression, and a linear support vector machine (hinge).
#pragma once

#include "model/scored_model.h"

namespace talweg {

template <class Real>
class LinearScore {
 public:
  explicit LinearScore(const ModelConfig& config) : features_(config.features) {}

  std::vector<TableShape> tables() const { return {{.name = "weights", .sparse = true, .width = 1, .size = 0}}; }
  Status check(const Dataset& data) const { return check_keys(data, features_); }
  StepCost cost(const Batch& batch) const;

  class Pass {
   public:
    Pass(const LinearScore&, const Batch& batch, const Parameters<Real>& parameters)
        : batch_(batch), weights_(parameters.tables[0].data()) {}
    Real forward(size_t row) const;
    void backward(size_t row, Real slope, Gradients<Real>* gradients) const;

   private:
    const Batch& batch_;
    const Real* weights_;
  };

 private:
  uint64_t features_;
};

template <class Real>
using LinearRegression = ScoredModel<Real, SquaredLoss, LinearScore>;
template <class Real>
using Logistic = ScoredModel<Real, LogisticLoss, LinearScore>;
template <class Real>
using Hinge = ScoredModel<Real, HingeLoss, LinearScore>;

}  // namespace talweg
