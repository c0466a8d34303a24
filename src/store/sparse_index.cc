#include "store/sparse_index.h"

#include <array>
#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace talweg {
namespace {

constexpr size_t kFirstSlots = 256;
constexpr double kMaxLoad = 0.6;
constexpr size_t kPrefetchKeys = 16;
constexpr size_t kBlock = 512;

uint64_t load_limit(size_t slots) { return static_cast<uint64_t>(kMaxLoad * static_cast<double>(slots)); }

// Calls visit(hash, i) for the keys key_at(0 .. count), having asked for the slot of each kPrefetchKeys keys before.
template <class KeyAt, class Prefetch, class Visit>
void in_batch(size_t count, KeyAt key_at, Prefetch prefetch, Visit visit) {
  std::array<uint64_t, kPrefetchKeys> hashes;
  const size_t first = std::min(count, kPrefetchKeys);
  for (size_t i = 0; i < first; ++i) prefetch(hashes[i] = mix64(key_at(i)));
  for (size_t i = 0; i < count; ++i) {
    uint64_t& place = hashes[i % kPrefetchKeys];
    const uint64_t hash = place;
    if (i + kPrefetchKeys < count) prefetch(place = mix64(key_at(i + kPrefetchKeys)));
    visit(hash, i);
  }
}

}  // namespace

SparseIndex::SparseIndex()
    : slots_(kFirstSlots, Pages::kHuge), mask_(kFirstSlots - 1), grow_at_(load_limit(kFirstSlots)) {}

SparseIndex::Slot* SparseIndex::probe(uint64_t key, uint64_t hash) const {
  size_t at = home_of(hash);
  while (slots_[at].row_after != 0 && slots_[at].key != key) at = (at + 1) & mask_;
  return &slots_[at];
}

// Most keys stand in the line where their search begins. All of it is compared at once and without a branch, which
// would often be guessed wrong. The other keys are looked for when their block is through and the lines behind are on
// their way.
template <bool kStamps, class Missing>
void SparseIndex::look_up(std::span<const uint64_t> keys, uint32_t stamp, uint32_t* rows, Missing missing) const {
  std::array<uint32_t, kBlock> elsewhere;
  for (size_t from = 0; from < keys.size(); from += kBlock) {
    const uint64_t* const block = keys.data() + from;
    size_t count = 0;
    in_batch(
        std::min(kBlock, keys.size() - from), [&](size_t i) { return block[i]; },
        [&](uint64_t hash) { __builtin_prefetch(&slots_[home_of(hash)], kStamps); },
        [&](uint64_t hash, size_t i) {
          Slot* const line = &slots_[home_of(hash)];
          unsigned matches = 0;
          for (size_t s = 0; s < kSlotsPerLine; ++s) matches |= static_cast<unsigned>(line[s].key == block[i]) << s;
          Slot* const slot = line + std::countr_zero(matches | 1u << (kSlotsPerLine - 1));
          // A free slot looks like key 0, if the key itself does not stand before it.
          const bool found = (matches != 0) & (slot->row_after != 0);
          rows[from + i] = slot->row_after - 1;
          if (kStamps) slot->stamp = found ? stamp : slot->stamp;
          elsewhere[count] = static_cast<uint32_t>(i);
          count += !found;
        });
    in_batch(
        count, [&](size_t i) { return block[elsewhere[i]]; },
        [&](uint64_t hash) { __builtin_prefetch(&slots_[(home_of(hash) + kSlotsPerLine) & mask_], kStamps); },
        [&](uint64_t hash, size_t i) {
          Slot* const slot = probe(block[elsewhere[i]], hash);
          rows[from + elsewhere[i]] = slot->row_after - 1;
          if (kStamps) slot->stamp = stamp;  // of a free slot it means nothing
          if (slot->row_after == 0) missing(from + elsewhere[i]);
        });
  }
}

void SparseIndex::find(std::span<const uint64_t> keys, uint32_t* rows) const {
  look_up<false>(keys, 0, rows, [](size_t) {});
}

size_t SparseIndex::touch(std::span<const uint64_t> keys, std::optional<uint32_t> stamp, uint32_t* rows,
                          uint32_t* missing) {
  size_t count = 0;
  const auto note = [&](size_t at) { missing[count++] = static_cast<uint32_t>(at); };
  if (stamp) {
    look_up<true>(keys, *stamp, rows, note);
  } else {
    look_up<false>(keys, 0, rows, note);
  }
  return count;
}

void SparseIndex::insert(std::span<const uint64_t> keys, std::span<const uint32_t> at, uint32_t stamp, uint32_t* rows,
                         std::vector<uint32_t>& fresh) {
  in_batch(
      at.size(), [&](size_t i) { return keys[at[i]]; },
      [this](uint64_t hash) { __builtin_prefetch(&slots_[home_of(hash)], 1); },
      [&](uint64_t hash, size_t i) {
        const uint64_t key = keys[at[i]];
        Slot* const slot = probe(key, hash);
        if (slot->row_after == 0) {
          CHECK(size_ < grow_at_);
          uint32_t row = row_bound_;
          if (free_rows_.empty()) {
            ++row_bound_;
          } else {
            row = free_rows_.back();
            free_rows_.pop_back();
          }
          *slot = {key, row + 1, stamp};
          ++size_;
          fresh.push_back(at[i]);
        }
        rows[at[i]] = slot->row_after - 1;
      });
}

size_t SparseIndex::slots_for(size_t count) const {
  size_t slots = slots_.size();
  while (size_ + uint64_t{count} > load_limit(slots)) slots *= 2;
  return slots;
}

size_t SparseIndex::capacity_for(size_t count) const { return load_limit(slots_for(count)); }

size_t SparseIndex::growth_bytes(size_t count) const { return has_room(count) ? 0 : slots_for(count) * sizeof(Slot); }

void SparseIndex::reserve(size_t count) {
  if (has_room(count)) return;
  const size_t larger = slots_for(count);
  ZeroedArray<Slot> old(larger, Pages::kHuge);
  std::swap(old, slots_);
  mask_ = larger - 1;
  grow_at_ = load_limit(larger);
  // When the array doubles, an element moves to its old place or half the array further, so this reads and writes in
  // order, nearly.
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].row_after != 0) *probe(old[i].key, mix64(old[i].key)) = old[i];
  }
}

// Closes the gap with the keys behind it that may stand there (Knuth, vol. 3, 6.4, algorithm R): unlike marks for
// removed keys, this leaves lookups as short as if the key had never been there.
void SparseIndex::remove(size_t at) {
  free_rows_.push_back(slots_[at].row_after - 1);
  size_t gap = at;
  for (size_t next = (at + 1) & mask_; slots_[next].row_after != 0; next = (next + 1) & mask_) {
    const size_t home = home_of(mix64(slots_[next].key));
    // A key may not stand before its home.
    if (((next - home) & mask_) < ((next - gap) & mask_)) continue;
    slots_[gap] = slots_[next];
    gap = next;
  }
  slots_[gap] = {};
  --size_;
}

std::vector<uint64_t> SparseIndex::sorted_keys() const {
  std::vector<uint64_t> keys;
  keys.reserve(size_);
  for (size_t i = 0; i <= mask_; ++i) {
    if (slots_[i].row_after != 0) keys.push_back(slots_[i].key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::optional<uint64_t> SparseIndex::key_of(uint32_t row) const {
  if (row == kNoRow) return std::nullopt;
  for (size_t i = 0; i <= mask_; ++i) {
    if (slots_[i].row_after == row + 1) return slots_[i].key;
  }
  return std::nullopt;
}

}  // namespace talweg
