// Exchange: how replicas agree. A strategy is an implementation of this; the training loop knows no other difference.
#pragma once

#include <functional>

#include "io/task.h"
#include "model/model.h"

namespace talweg {

// What an exchange has moved so far.
struct ExchangeMeter {
  int64_t rounds = 0;  // in which all workers took part
  uint64_t pulls = 0, pushes = 0;
  uint64_t bytes_pulled = 0, bytes_pushed = 0;  // keys and values, without frames
  uint64_t late = 0;                            // what was computed in vain
  uint64_t lists_known = 0, lists_resent = 0;  // key lists that went as a hash; of those, the ones that had to go again
};

template <class Real>
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Told at once when something fails that goes on behind `end`; whoever waits next is told too, but may wait long.
  std::function<void(const Status&)> on_failure = [](const Status&) {};

  // Once, before the first step.
  virtual Task<Status> prepare() = 0;
  // Says what `step` will need, as early as it is known. The batch must stay as it is until the step has ended.
  virtual Task<Status> expect(int64_t step, const Batch& batch) = 0;
  // What the step computes with: pulled, or what is already here.
  virtual Task<Status> begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) = 0;
  // What the step computed: pushed, reduced, mixed. Takes the gradients' memory, and may go on after it returns: the
  // batches of the last batches_in_use() steps must stay as they are. Returns the next step: the one behind this, or a
  // later one where the others went on without this worker.
  virtual Task<Result<int64_t>> end(int64_t step, const Batch& batch, Gradients<Real>* gradients) = 0;
  // Waits until nothing it began is under way, however that ends. Before it goes.
  virtual Task<> drain() = 0;
  // Ends all that `end` began. The parameters hold every step of this worker then.
  virtual Task<Status> settle() = 0;
  // The parameters with all workers' steps before `step`, for evaluation; after `settle`.
  virtual Task<Status> read(int64_t step, const Batch& batch, Parameters<Real>* parameters) = 0;

  virtual size_t batches_in_use() const = 0;
  virtual ExchangeMeter meter(int64_t step) const = 0;
};

}  // namespace talweg
