// The index of a sparse table: 64-bit keys to row numbers, given out in order of first touch and never changed. Open
// addressing with linear probing in one flat array; lookups come in batches, so that the memory of a dozen keys is on
// its way while one is looked at. Any key is allowed, 0 and ~0 included.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "store/zeroed_array.h"

namespace talweg {

class SparseIndex {
 public:
  static constexpr uint32_t kNoRow = ~uint32_t{0};

  SparseIndex();

  // The number of keys, and the row the next new key gets. The caller keeps it below limits::kMaxRows.
  uint32_t size() const { return size_; }

  void find_or_insert(std::span<const uint64_t> keys, uint32_t* rows);
  // kNoRow for keys that are not there.
  void find(std::span<const uint64_t> keys, uint32_t* rows) const;

  // All (key, row), by rising key.
  std::vector<std::pair<uint64_t, uint32_t>> sorted() const;
  // For error messages: looks at everything.
  uint64_t key_of(uint32_t row) const;

  size_t bytes() const { return slots_.bytes(); }

 private:
  struct Slot {
    uint64_t key;
    uint32_t row_after;  // the row number + 1; 0: the slot is free
  };
  // The slot that holds the key, or the free one where it belongs.
  Slot* probe(uint64_t key, uint64_t hash) const;
  void grow();

  ZeroedArray<Slot> slots_;
  size_t mask_ = 0;
  uint32_t size_ = 0;
  uint64_t grow_at_ = 0;
};

}  // namespace talweg
