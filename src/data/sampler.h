// Which rows a worker takes at a step. An epoch goes through all rows in one global order, a batch at a step; the
// workers share each batch out among them. So the rows of a step are those of serial mini-batch training, whatever the
// number of workers, and every row is taken exactly once per epoch. Everything is computed from the arguments: no
// memory, random access, the same on every node. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace talweg {

// A bijection of [0, n), chosen by a key: a Feistel network on the smallest power of two that holds n, applied again
// while it leads outside (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t encrypt(uint64_t x) const;

  uint64_t n_, key_;
  unsigned right_bits_;
  uint64_t left_mask_, right_mask_;
};

enum class Partition {
  kContiguous,  // worker r takes the r-th of equal slices of the batch; sizes differ by at most one
  kRoundRobin,  // position p of the batch goes to worker p mod workers
};

class Sampler {
 public:
  // Without a seed, the order is that of the data set in every epoch.
  Sampler(uint64_t rows, uint64_t batch, uint32_t workers, std::optional<uint64_t> shuffle_seed,
          Partition partition = Partition::kContiguous);

  uint64_t steps_per_epoch() const { return rows_ / batch_ + (rows_ % batch_ != 0 ? 1 : 0); }
  // Rows of a step, of all workers together: the batch size, less in an epoch's last step.
  uint64_t batch_rows(uint64_t step) const;
  // Replaces `out` with the rows of one worker, in the order of the batch. May be none.
  void rows_of(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const;

 private:
  uint64_t rows_, batch_;
  uint32_t workers_;
  std::optional<uint64_t> shuffle_seed_;
  Partition partition_;
};

}  // namespace talweg
