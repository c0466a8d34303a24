// The index of a sparse table: 64-bit keys to row numbers. A key keeps its row number until it is swept away; the
// number is then given to another key. Open addressing with linear probing in one flat array; lookups come in batches,
// so that the memory of many keys is on its way while one is looked at. Any key is allowed, 0 and ~0 included.
//
// The array grows and never shrinks: it stays at what the most keys of one time needed. Allocation happens in `reserve`
// alone, and `sweep`, which may both throw std::bad_alloc with nothing changed. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/zeroed_array.h"

namespace talweg {

class SparseIndex {
 public:
  static constexpr uint32_t kNoRow = ~uint32_t{0};

  SparseIndex();

  // The number of keys.
  uint32_t size() const { return size_; }
  // All row numbers that were ever given out are below this.
  uint32_t row_bound() const { return row_bound_; }
  // The same after `count` new keys.
  uint64_t row_bound_with(size_t count) const {
    return row_bound_ + (count > free_rows_.size() ? uint64_t{count} - free_rows_.size() : 0);
  }

  // kNoRow for keys that are not there.
  void find(std::span<const uint64_t> keys, uint32_t* rows) const;
  // The same, and the places in `keys` of those that are not there go to `missing`, which has room for all. Returns how
  // many these are. Keys that are there are stamped, if there is a stamp.
  size_t touch(std::span<const uint64_t> keys, std::optional<uint32_t> stamp, uint32_t* rows, uint32_t* missing);

  // How many keys fit, now and after growing for `count` new ones. There are never more rows than that.
  size_t capacity() const { return grow_at_; }
  size_t capacity_for(size_t count) const;
  // Whether `count` new keys go in without growing; how much memory growing for them takes, the old array beside it.
  bool has_room(size_t count) const { return size_ + uint64_t{count} <= grow_at_; }
  size_t growth_bytes(size_t count) const;
  void reserve(size_t count);
  // Gives rows to the keys at the places `at` where they have none; there must be room for as many. Places of keys that
  // are new are appended to `fresh`, which must have room too: a key that `at` names twice is new once.
  void insert(std::span<const uint64_t> keys, std::span<const uint32_t> at, uint32_t stamp, uint32_t* rows,
              std::vector<uint32_t>& fresh);

  // Looks at the next `slots` places, going round, and removes the keys for which gone(row, stamp) holds. Their rows
  // are the first to be given out again. Returns how many were removed.
  template <class Gone>
  size_t sweep(size_t slots, Gone gone);

  // All keys, rising.
  std::vector<uint64_t> sorted_keys() const;
  // For error messages: looks at everything. Nothing if no key has this row.
  std::optional<uint64_t> key_of(uint32_t row) const;

  size_t bytes() const { return slots_.bytes() + sizeof(uint32_t) * free_rows_.capacity(); }

 private:
  struct Slot {
    uint64_t key;
    uint32_t row_after;  // the row number + 1; 0: the slot is free
    uint32_t stamp;      // of the last touch; in what would be padding
  };
  static constexpr size_t kSlotsPerLine = 64 / sizeof(Slot);

  // Where the search for a key begins: at the first slot of a cache line.
  size_t home_of(uint64_t hash) const { return hash & mask_ & ~(kSlotsPerLine - 1); }
  // The slot that holds the key, or the free one where it belongs.
  Slot* probe(uint64_t key, uint64_t hash) const;
  template <bool kStamps, class Missing>
  void look_up(std::span<const uint64_t> keys, uint32_t stamp, uint32_t* rows, Missing missing) const;
  size_t slots_for(size_t count) const;
  void remove(size_t at);

  ZeroedArray<Slot> slots_;
  size_t mask_ = 0;
  uint32_t size_ = 0;
  uint32_t row_bound_ = 0;
  uint64_t grow_at_ = 0;
  size_t hand_ = 0;  // where the next sweep begins
  std::vector<uint32_t> free_rows_;
};

template <class Gone>
size_t SparseIndex::sweep(size_t slots, Gone gone) {
  const uint32_t before = size_;
  for (slots = std::min(slots, slots_.size()); slots > 0; --slots, hand_ = (hand_ + 1) & mask_) {
    // What takes the place of a removed key is looked at too.
    while (slots_[hand_].row_after != 0 && gone(slots_[hand_].row_after - 1, slots_[hand_].stamp)) remove(hand_);
  }
  return before - size_;
}

}  // namespace talweg
