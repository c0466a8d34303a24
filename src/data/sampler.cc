#include "data/sampler.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "data/permutation.h"
#include "data/shares.h"

namespace talweg {
namespace {

std::shared_ptr<const Shares> shares_of(const SamplerOptions& options) {
  switch (options.partition) {
    case Partition::kContiguous:
    case Partition::kRoundRobin: return nullptr;
    case Partition::kHash: return Shares::by_hash(options.rows, options.workers, options.seed);
    case Partition::kOverlapping: return Shares::overlapping(options.rows, options.workers, options.overlap);
    case Partition::kByLabel:
      CHECK(options.labels.size() == options.rows);
      return Shares::by_label(options.labels, options.workers);
    case Partition::kDirichlet:
      CHECK(options.labels.size() == options.rows);
      return Shares::dirichlet(options.labels, options.workers, options.alpha, options.seed);
  }
  return nullptr;
}

uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

Sampler::Sampler(const SamplerOptions& options)
    : rows_(options.rows),
      workers_(options.workers),
      seed_(options.seed),
      shuffle_(options.shuffle),
      partition_(options.partition) {
  CHECK(workers_ > 0);
  shares_ = shares_of(options);
  set_batch(options.batch);
}

Sampler::Sampler(uint64_t rows, uint64_t batch, uint32_t workers, std::optional<uint64_t> shuffle_seed,
                 Partition partition)
    : Sampler(SamplerOptions{.rows = rows,
                             .batch = batch,
                             .workers = workers,
                             .seed = shuffle_seed.value_or(0),
                             .shuffle = shuffle_seed.has_value(),
                             .partition = partition}) {}

Sampler Sampler::with_batch(uint64_t batch) const {
  Sampler other = *this;
  other.set_batch(batch);
  return other;
}

void Sampler::set_batch(uint64_t batch) {
  CHECK(batch > 0);
  batch_ = batch;
  steps_ = 0;
  if (shares_ == nullptr) steps_ = divide_up(rows_, batch_);
  for (uint32_t worker = 0; shares_ != nullptr && worker < workers_; ++worker) {
    steps_ = std::max(steps_, divide_up(shares_->size(worker), worker_batch(worker)));
  }
}

uint64_t Sampler::worker_batch(uint32_t worker) const {
  return std::max<uint64_t>(1, batch_ / workers_ + (worker < batch_ % workers_ ? 1 : 0));
}

Sampler::Slice Sampler::share_slice(uint64_t step, uint32_t worker) const {
  const uint64_t size = shares_->size(worker), most = worker_batch(worker);
  const uint64_t begin = std::min(size, step * most);
  return {begin, std::min(most, size - begin)};
}

uint64_t Sampler::batch_rows(uint64_t step) const {
  CHECK(step < steps_per_epoch());
  if (shares_ == nullptr) return std::min(batch_, rows_ - step * batch_);
  uint64_t count = 0;
  for (uint32_t worker = 0; worker < workers_; ++worker) count += share_slice(step, worker).size;
  return count;
}

void Sampler::rows_of(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const {
  CHECK(worker < workers_ && step < steps_per_epoch());
  out->clear();
  if (shares_ == nullptr) return rows_of_batch(epoch, step, worker, out);
  const Slice slice = share_slice(step, worker);
  if (slice.size == 0) return;
  const Permutation order(shares_->size(worker), mix64(mix64(seed_) ^ epoch) ^ worker);
  for (uint64_t i = slice.begin; i < slice.begin + slice.size; ++i) {
    out->push_back(shares_->row(worker, shuffle_ ? order(i) : i));
  }
}

void Sampler::rows_of_batch(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const {
  const uint64_t count = batch_rows(step), share = count / workers_, extra = count % workers_;
  const uint64_t size = share + (worker < extra ? 1 : 0);
  const bool contiguous = partition_ == Partition::kContiguous;
  const uint64_t begin = step * batch_ + (contiguous ? worker * share + std::min<uint64_t>(worker, extra) : worker);
  const uint64_t stride = contiguous ? 1 : workers_;
  for (uint64_t i = 0; i < size; ++i) out->push_back(begin + i * stride);
  if (!shuffle_) return;
  const Permutation order(rows_, mix64(seed_) ^ epoch);
  for (uint64_t& row : *out) row = order(row);
}

}  // namespace talweg
