// Multinomial logistic regression: a weight per key and class, a bias per class. Labels are the classes' numbers.
#pragma once

#include "model/model.h"

namespace talweg {

template <class Real>
class Softmax final : public Model<Real> {
 public:
  explicit Softmax(const ModelConfig& config);

  const std::vector<TableShape>& layout() const override { return layout_; }
  Objective objective() const override { return Objective::kClasses; }
  Status check(const Dataset& data) const override;
  StepCost cost(const Batch& batch) const override;
  StepResult step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                  Gradients<Real>* gradients) override;
  void evaluate(const Batch& batch, const Parameters<Real>& parameters, Metrics* metrics) const override;

 private:
  // The probabilities of a row's classes; returns the loss.
  double predict(const Batch& batch, const Parameters<Real>& parameters, size_t row, std::span<Real> out) const;

  uint64_t features_;
  uint32_t classes_;
  std::vector<TableShape> layout_;
};

}  // namespace talweg
