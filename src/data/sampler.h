// Which rows a worker takes at a step. Everything is computed from the arguments: random access, the same on every
// node. Thread-safe.
//
// With `contiguous` and `round_robin` an epoch goes through all rows in one global order, a batch at a step, and the
// workers share each batch out among them: the rows of a step are those of serial mini-batch training, whatever the
// number of workers. With the others each worker has rows of its own for the whole job (data/shares.h) and goes through
// them in an order of its own. Either way all workers make the same number of steps in an epoch; one whose rows have
// run out takes none. Every row is taken exactly once per epoch, except with `overlapping`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace talweg {

class Shares;

enum class Partition {
  kContiguous,   // worker r takes the r-th of equal slices of the batch; sizes differ by at most one
  kRoundRobin,   // position p of the batch goes to worker p mod workers
  kHash,         // a row's worker is a hash of its number
  kOverlapping,  // a slice of the data, and a fraction of the neighbour's
  kByLabel,      // a slice of the data sorted by label
  kDirichlet,    // of each label a random fraction
};

struct SamplerOptions {
  uint64_t rows = 0;
  uint64_t batch = 1;    // rows of a step, all workers together
  uint32_t workers = 1;  // at least 1
  uint64_t seed = 1;
  bool shuffle = true;  // a new order in each epoch; without, that of the data or of the share
  Partition partition = Partition::kContiguous;
  double overlap = 0;                  // kOverlapping: the fraction of the neighbour's slice, from 0 to 1
  double alpha = 1;                    // kDirichlet: above 0; the smaller, the less alike the workers' rows
  std::span<const float> labels = {};  // kByLabel and kDirichlet: of all rows; used by the constructor only
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);
  // For partitions that need no more than these. Without a seed, the order is that of the data set in every epoch.
  Sampler(uint64_t rows, uint64_t batch, uint32_t workers, std::optional<uint64_t> shuffle_seed,
          Partition partition = Partition::kContiguous);
  // The same rows and workers with another batch size, as when batches grow; the shares are not computed again.
  Sampler with_batch(uint64_t batch) const;

  uint64_t steps_per_epoch() const { return steps_; }
  // Rows of a step, of all workers together: the batch size, less towards an epoch's end. (With fixed shares and fewer
  // rows in a batch than workers, a worker still takes one.)
  uint64_t batch_rows(uint64_t step) const;
  // Replaces `out` with the rows of one worker, in the order of the batch. May be none.
  void rows_of(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const;

 private:
  struct Slice {
    uint64_t begin, size;
  };
  void set_batch(uint64_t batch);
  // With fixed shares: the rows a worker takes at a step, and which of its share.
  uint64_t worker_batch(uint32_t worker) const;
  Slice share_slice(uint64_t step, uint32_t worker) const;
  void rows_of_batch(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const;

  uint64_t rows_, batch_ = 1, steps_ = 0;
  uint32_t workers_;
  uint64_t seed_;
  bool shuffle_;
  Partition partition_;
  std::shared_ptr<const Shares> shares_;  // null: the batch is shared out
};

}  // namespace talweg
