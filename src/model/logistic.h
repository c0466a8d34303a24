// Logistic regression on sparse rows: a weight per key and a bias. Labels above zero are positive, all others negative.
#pragma once

#include "model/model.h"

namespace talweg {

template <class Real>
class Logistic final : public Model<Real> {
 public:
  explicit Logistic(uint64_t features);

  const std::vector<TableShape>& layout() const override { return layout_; }
  Status check(const Dataset& data) const override;
  StepCost cost(const Batch& batch) const override;
  StepResult step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                  Gradients<Real>* gradients) override;
  StepResult evaluate(const Batch& batch, const Parameters<Real>& parameters,
                      std::vector<float>* scores) const override;

 private:
  uint64_t features_;
  std::vector<TableShape> layout_;
};

}  // namespace talweg
