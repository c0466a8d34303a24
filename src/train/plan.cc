#include "train/plan.h"

#include <algorithm>
#include <cmath>

#include "train/job.h"

namespace talweg {
namespace {

uint64_t batch_at(const TrainConfig& train, uint64_t epoch, uint64_t rows) {
  double batch = static_cast<double>(train.batch);
  if (train.grow_every > 0) batch *= std::pow(train.grow_by, static_cast<double>(epoch / train.grow_every));
  return static_cast<uint64_t>(std::clamp(batch, 1.0, std::max(1.0, static_cast<double>(rows))));
}

}  // namespace

Plan::Plan(const TrainConfig& train, uint32_t workers, const Dataset& data) {
  const Sampler first({.rows = data.rows(),
                       .batch = batch_at(train, 0, data.rows()),
                       .workers = workers,
                       .seed = train.seed,
                       .shuffle = train.shuffle,
                       .partition = train.partition,
                       .overlap = train.overlap,
                       .alpha = train.alpha,
                       .labels = data.labels()});
  if (train.online_updates) full_batch_.push_back(first.with_batch(std::max<uint64_t>(1, data.rows())));
  first_step_.push_back(0);
  uint64_t batch = 0;
  for (uint64_t epoch = 0; epoch < static_cast<uint64_t>(train.epochs); ++epoch) {
    const uint64_t wanted = batch_at(train, epoch, data.rows());
    samplers_.push_back(wanted == batch ? samplers_.back() : first.with_batch(wanted));
    batch = wanted;
    uint64_t steps = samplers_.back().steps_per_epoch();
    if (train.online_updates) steps = 1 + std::min<uint64_t>(steps, *train.online_updates);
    first_step_.push_back(first_step_.back() + static_cast<int64_t>(steps));
  }
}

Plan::Place Plan::place(uint64_t epoch, int64_t step) const {
  const auto of_epoch = static_cast<uint64_t>(step - first_step_[epoch]);
  if (full_batch_.empty()) return {samplers_[epoch], of_epoch};
  if (of_epoch == 0) return {full_batch_[0], 0};
  return {samplers_[epoch], of_epoch - 1};
}

uint64_t Plan::rows_at(uint64_t epoch, int64_t step) const {
  const Place at = place(epoch, step);
  return at.sampler.batch_rows(at.step);
}

void Plan::rows_of(uint64_t epoch, int64_t step, uint32_t rank, std::vector<uint64_t>* out) const {
  const Place at = place(epoch, step);
  at.sampler.rows_of(epoch, at.step, rank, out);
}

}  // namespace talweg
