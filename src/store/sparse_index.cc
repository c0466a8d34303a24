#include "store/sparse_index.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/rng.h"

namespace talweg {
namespace {

constexpr size_t kFirstSlots = 256;
// With linear probing an unsuccessful lookup reads (1 + 1/(1-load)^2)/2 slots on average (Knuth, vol. 3, 6.4): 3.6 at
// 0.6.
constexpr double kMaxLoad = 0.6;
constexpr size_t kPrefetchKeys = 16;

uint64_t load_limit(size_t slots) { return static_cast<uint64_t>(kMaxLoad * static_cast<double>(slots)); }

// Calls visit(key, hash, i) for each key, having asked for its slot kPrefetchKeys keys before.
template <class Prefetch, class Visit>
void in_batch(std::span<const uint64_t> keys, Prefetch prefetch, Visit visit) {
  std::array<uint64_t, kPrefetchKeys> hashes;
  const size_t count = keys.size(), first = std::min(count, kPrefetchKeys);
  for (size_t i = 0; i < first; ++i) prefetch(hashes[i] = mix64(keys[i]));
  for (size_t i = 0; i < count; ++i) {
    uint64_t& place = hashes[i % kPrefetchKeys];
    const uint64_t hash = place;
    if (i + kPrefetchKeys < count) prefetch(place = mix64(keys[i + kPrefetchKeys]));
    visit(keys[i], hash, i);
  }
}

}  // namespace

SparseIndex::SparseIndex()
    : slots_(kFirstSlots, Pages::kHuge), mask_(kFirstSlots - 1), grow_at_(load_limit(kFirstSlots)) {}

SparseIndex::Slot* SparseIndex::probe(uint64_t key, uint64_t hash) const {
  size_t at = hash & mask_;
  while (slots_[at].row_after != 0 && slots_[at].key != key) at = (at + 1) & mask_;
  return &slots_[at];
}

void SparseIndex::find_or_insert(std::span<const uint64_t> keys, uint32_t* rows) {
  in_batch(
      keys, [this](uint64_t hash) { __builtin_prefetch(&slots_[hash & mask_], 1); },
      [&](uint64_t key, uint64_t hash, size_t i) {
        Slot* slot = probe(key, hash);
        if (slot->row_after == 0) {
          if (size_ >= grow_at_) {
            grow();
            slot = probe(key, hash);
          }
          slot->key = key;
          slot->row_after = ++size_;
        }
        rows[i] = slot->row_after - 1;
      });
}

void SparseIndex::find(std::span<const uint64_t> keys, uint32_t* rows) const {
  in_batch(
      keys, [this](uint64_t hash) { __builtin_prefetch(&slots_[hash & mask_]); },
      [&](uint64_t key, uint64_t hash, size_t i) { rows[i] = probe(key, hash)->row_after - 1; });
}

void SparseIndex::grow() {
  const size_t old_count = slots_.size();
  ZeroedArray<Slot> old(2 * old_count, Pages::kHuge);
  std::swap(old, slots_);
  mask_ = 2 * old_count - 1;
  grow_at_ = load_limit(2 * old_count);
  // An element moves to its old place or half the array further, so this reads and writes in order, nearly.
  for (size_t i = 0; i < old_count; ++i) {
    if (old[i].row_after != 0) *probe(old[i].key, mix64(old[i].key)) = old[i];
  }
}

std::vector<std::pair<uint64_t, uint32_t>> SparseIndex::sorted() const {
  std::vector<std::pair<uint64_t, uint32_t>> all;
  all.reserve(size_);
  for (size_t i = 0; i <= mask_; ++i) {
    if (slots_[i].row_after != 0) all.emplace_back(slots_[i].key, slots_[i].row_after - 1);
  }
  std::sort(all.begin(), all.end());
  return all;
}

uint64_t SparseIndex::key_of(uint32_t row) const {
  CHECK(row < size_);
  size_t i = 0;
  while (slots_[i].row_after != row + 1) ++i;
  return slots_[i].key;
}

}  // namespace talweg
