// A mini-batch as a model wants it: the distinct keys it touches, and each row as positions in that list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace talweg {

struct Batch {
  std::vector<uint64_t> keys;     // distinct, in order of first appearance
  std::vector<uint32_t> offsets;  // rows + 1: where each row's entries start
  std::vector<uint32_t> index;    // of each entry: the position of its key in `keys`
  std::vector<float> values;      // of each entry; empty when all are 1
  std::vector<float> labels;

  size_t rows() const { return labels.size(); }
};

// Builds batches, and keeps its scratch memory from one to the next: once it has seen its largest batch, building
// allocates nothing. Not thread-safe; one builder per thread.
class BatchBuilder {
 public:
  BatchBuilder();
  // Rows in the order given; a row may be given twice.
  void build(const Dataset& data, std::span<const uint64_t> rows, Batch* out);

 private:
  // In use when its generation is the batch's, so that starting a batch clears nothing.
  struct Slot {
    uint64_t key = 0;
    uint32_t generation = 0;
    uint32_t position = 0;
  };

  void start_batch();
  void grow(const std::vector<uint64_t>& keys);
  size_t home_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15) >> shift_; }
  uint32_t position_of(uint64_t key, std::vector<uint64_t>* keys);

  std::vector<Slot> slots_;  // a power of two, at least twice the keys of the batch
  unsigned shift_;
  uint32_t generation_ = 0;
  std::vector<uint64_t> entry_keys_;  // the batch's keys, entry by entry, and some more to look ahead into
};

}  // namespace talweg
