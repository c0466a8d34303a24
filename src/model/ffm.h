// Field-aware factorisation machine (Juan et al., "Field-aware factorization machines for CTR prediction", RecSys
// 2016): a key has a vector of factors for each field it may meet, and a pair of keys multiplies the vectors that each
// has for the other's field. The fields are equal slices of the keys, as the click generator lays them out. Unlike the
// paper's, it keeps the weights and the bias of a factorisation machine.
#pragma once

#include "model/scored_model.h"

namespace talweg {

template <class Real>
class FfmScore {
 public:
  // Whether a row of factors can be stored, and every field has a key.
  static Status check_config(const ModelConfig& config);
  // The config must have passed.
  explicit FfmScore(const ModelConfig& config)
      : features_(config.features),
        fields_(config.field_count),
        factors_(config.factors),
        init_scale_(config.init_scale) {}

  std::vector<TableShape> tables() const;
  Status check(const Dataset& data) const { return check_keys(data, features_); }
  StepCost cost(const Batch& batch) const;
  // Below the number of fields, for a key below the features.
  uint32_t field_of(uint64_t key) const;

  class Pass {
   public:
    Pass(const FfmScore& score, const Batch& batch, const Parameters<Real>& parameters);
    Real forward(size_t row);
    void backward(size_t row, Real slope, Gradients<Real>* gradients) const;

   private:
    // Where the vector lies that a key of the batch has for another's field.
    size_t vector_of(uint32_t key, uint32_t other) const { return key * width_ + field_offset_[other]; }

    const Batch& batch_;
    const Real* weights_;
    const Real* factors_;
    size_t width_;
    std::vector<size_t> field_offset_;  // of each key of the batch: where vectors for its field start in a row
    std::vector<Real> pairs_;           // per factor
  };

 private:
  uint64_t features_;
  uint32_t fields_, factors_;
  double init_scale_;
};

}  // namespace talweg
