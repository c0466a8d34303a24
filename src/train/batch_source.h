// Where a worker's batches come from: rows of a data set, as the plan says, or a stream that the coordinator reads and
// deals out. A batch is this worker's share of a step; no two steps are asked for at once.
#pragma once

#include <memory>

#include "data/batch.h"
#include "data/generator.h"
#include "io/io.h"
#include "train/busy.h"
#include "train/job.h"
#include "train/plan.h"

namespace talweg {

// One step's share.
struct Share {
  Batch batch;
  uint64_t rows_in_all = 0;  // of all workers
  bool ended = false;        // there is no such step: the data has come to its end
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Task<Status> fill(uint64_t epoch, int64_t step, Share* share) = 0;
  // Where an epoch ends: the first step of the next one. A stream's end may come before.
  virtual int64_t end_of(uint64_t epoch) const = 0;
  // No epoch follows this one.
  virtual bool is_last(uint64_t epoch) const = 0;
};

// `data` must outlive it; `busy` learns how long batches took to make.
std::unique_ptr<BatchSource> make_batch_source(Io& io, const JobConfig& job, uint32_t rank, const TrainingData& data,
                                               BusyMeter& busy);

}  // namespace talweg
