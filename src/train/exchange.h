// Exchange: how replicas agree. A strategy is an implementation of this; the training loop knows no other difference.
#pragma once

#include "io/task.h"
#include "model/model.h"

namespace talweg {

template <class Real>
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Once, before the first step.
  virtual Task<Status> prepare() = 0;
  // What the step computes with: pulled, or what is already here.
  virtual Task<Status> begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) = 0;
  // What the step computed: pushed, reduced, mixed.
  virtual Task<Status> end(int64_t step, const Batch& batch, const Gradients<Real>& gradients) = 0;
  // The parameters as they are before `step`, for evaluation.
  virtual Task<Status> read(int64_t step, const Batch& batch, Parameters<Real>* parameters) = 0;
};

}  // namespace talweg
