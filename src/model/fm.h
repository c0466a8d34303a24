// Factorisation machine of order two (Rendle, "Factorization machines", ICDM 2010): beside its weight every key has a
// vector of factors, and two keys of a row add the product of their values and vectors. Linear in the row's length by
// the paper's lemma 3.1. Weights start at zero and factors at random, because at zero no factor has a gradient; that is
// why they are two tables.
#pragma once

#include "model/scored_model.h"

namespace talweg {

template <class Real>
class FmScore {
 public:
  explicit FmScore(const ModelConfig& config)
      : features_(config.features), factors_(config.factors), init_scale_(config.init_scale) {}

  std::vector<TableShape> tables() const;
  Status check(const Dataset& data) const { return check_keys(data, features_); }
  StepCost cost(const Batch& batch) const;

  class Pass {
   public:
    Pass(const FmScore& score, const Batch& batch, const Parameters<Real>& parameters);
    Real forward(size_t row);
    void backward(size_t row, Real slope, Gradients<Real>* gradients) const;

   private:
    const Batch& batch_;
    const Real* weights_;
    const Real* factors_;
    // Of the row that forward saw last, per factor: the sum over its keys, the sum of their squares, and the pairs'.
    std::vector<Real> sums_, squares_, pairs_;
  };

 private:
  uint64_t features_;
  uint32_t factors_;
  double init_scale_;
};

}  // namespace talweg
