// Matrix factorisation for recommenders, with biases (Koren, Bell, Volinsky, "Matrix factorization techniques for
// recommender systems", IEEE Computer 2009). A row is a user's key and an item's key, in any order; users and items
// share the tables, so their keys must differ. The bias of the model is the mean rating.
#pragma once

#include "model/scored_model.h"

namespace talweg {

template <class Real>
class MfScore {
 public:
  explicit MfScore(const ModelConfig& config)
      : features_(config.features), factors_(config.factors), init_scale_(config.init_scale) {}

  std::vector<TableShape> tables() const;
  Status check(const Dataset& data) const;
  StepCost cost(const Batch& batch) const;

  class Pass {
   public:
    Pass(const MfScore& score, const Batch& batch, const Parameters<Real>& parameters)
        : batch_(batch),
          factors_(parameters.tables[0].data()),
          biases_(parameters.tables[1].data()),
          count_(score.factors_) {}
    Real forward(size_t row) const;
    void backward(size_t row, Real slope, Gradients<Real>* gradients) const;

   private:
    const Batch& batch_;
    const Real* factors_;
    const Real* biases_;
    size_t count_;
  };

 private:
  uint64_t features_;
  uint32_t factors_;
  double init_scale_;
};

}  // namespace talweg
