// A model whose prediction is one number: a bias, which is its last table, plus a score of the row. What differs from
// model to model is the score, what a wrong one costs is the loss.
//
// A Score<Real> is made from the config and has
//   std::vector<TableShape> tables() const;
//   Status check(const Dataset&) const;
//   StepCost cost(const Batch&) const;
//   class Pass: one pass over a batch, made from (score, batch, parameters), with
//     Real forward(size_t row);
//     void backward(size_t row, Real slope, Gradients<Real>*);   // of the row that forward saw last; adds
#pragma once

#include <algorithm>
#include <vector>

#include "model/loss.h"
#include "model/model.h"

namespace talweg {

template <class Real, class Loss, template <class> class Score>
class ScoredModel final : public Model<Real> {
 public:
  explicit ScoredModel(const ModelConfig& config) : score_(config), layout_(score_.tables()), bias_(layout_.size()) {
    layout_.push_back({.name = "bias", .sparse = false, .width = 1, .size = 1});
  }

  const std::vector<TableShape>& layout() const override { return layout_; }
  Objective objective() const override { return Loss::kObjective; }
  Status check(const Dataset& data) const override {
    TRY(score_.check(data));
    return Loss::check(data);
  }
  StepCost cost(const Batch& batch) const override {
    StepCost cost = score_.cost(batch);
    cost.flops += Loss::kFlops * static_cast<double>(batch.rows());
    return cost;
  }
  StepResult step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                  Gradients<Real>* gradients) override;
  void evaluate(const Batch& batch, const Parameters<Real>& parameters, Metrics* metrics) const override;

 private:
  Score<Real> score_;
  std::vector<TableShape> layout_;
  size_t bias_;
};

template <class Real, class Loss, template <class> class Score>
StepResult ScoredModel<Real, Loss, Score>::step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                                                Gradients<Real>* gradients) {
  shape_for(batch, layout_, gradients);
  for (auto& table : gradients->tables) std::fill(table.begin(), table.end(), Real{0});
  const Real bias = parameters.tables[bias_][0];
  Real bias_gradient = 0;
  StepResult result{.loss_sum = 0, .rows = batch.rows()};
  typename Score<Real>::Pass pass(score_, batch, parameters);
  for (size_t i = 0; i < batch.rows(); ++i) {
    const Real prediction = bias + pass.forward(i);
    result.loss_sum += Loss::loss(prediction, batch.labels[i]);
    const Real slope = scale * Loss::slope(prediction, batch.labels[i]);
    pass.backward(i, slope, gradients);
    bias_gradient += slope;
  }
  gradients->tables[bias_][0] = bias_gradient;
  return result;
}

template <class Real, class Loss, template <class> class Score>
void ScoredModel<Real, Loss, Score>::evaluate(const Batch& batch, const Parameters<Real>& parameters,
                                              Metrics* metrics) const {
  typename Score<Real>::Pass pass(score_, batch, parameters);
  for (size_t i = 0; i < batch.rows(); ++i) {
    record<Loss>(parameters.tables[bias_][0] + pass.forward(i), batch.labels[i], metrics);
  }
}

}  // namespace talweg
