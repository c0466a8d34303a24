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
  // Gives each entry the position of its key among the distinct ones, which it moves to the front of keys_; returns how
  // many there are.
  uint32_t number_keys(std::span<uint32_t> index);
  // The slot that holds the key, or the free one where it belongs.
  uint32_t& slot_of(uint64_t key);
  void grow(uint32_t distinct);
  size_t home_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15) >> shift_; }

  // A hash table of places in keys_; 0: free. A power of two.
  std::vector<uint32_t> slots_;
  unsigned shift_;
  // From place 1 on: the batch's keys entry by entry, and some more to look ahead into.
  std::vector<uint64_t> keys_;
};

}  // namespace talweg
