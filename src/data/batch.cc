#include "data/batch.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace talweg {
namespace {

constexpr size_t kFirstSlots = 1024;
// Slots are small, and every collision is a mispredicted branch: room is cheaper.
constexpr size_t kSlotsPerKey = 4;
// Rows of a shuffled batch lie anywhere in memory, so they are asked for this many rows ahead.
constexpr size_t kRowsAhead = 16;
constexpr size_t kEntriesAhead = 16;

// Fills in labels and offsets, and returns the number of entries.
size_t place_rows(const Dataset& data, std::span<const uint64_t> rows, Batch* out) {
  size_t entries = 0;
  out->offsets[0] = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) data.prefetch_place(rows[i + kRowsAhead]);
    entries += data.row_size(rows[i]);
    CHECK(entries < std::numeric_limits<uint32_t>::max());
    out->offsets[i + 1] = static_cast<uint32_t>(entries);
    out->labels[i] = data.label(rows[i]);
  }
  return entries;
}

}  // namespace

BatchBuilder::BatchBuilder() : slots_(kFirstSlots), shift_(64 - std::bit_width(kFirstSlots - 1)) {}

void BatchBuilder::build(const Dataset& data, std::span<const uint64_t> rows, Batch* out) {
  out->labels.resize(rows.size());
  out->offsets.resize(rows.size() + 1);
  const size_t entries = place_rows(data, rows, out);
  out->index.resize(entries);
  keys_.resize(1 + entries + kEntriesAhead);
  out->values.resize(data.has_values() ? entries : 0);
  // Keys are brought together before any is looked up: a plain copy keeps many far reads in flight, while the look-ups'
  // mispredicted branches would end each other's.
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) data.prefetch(rows[i + kRowsAhead]);
    const size_t begin = out->offsets[i];
    data.visit(rows[i], [&](auto keys, std::span<const float> values) {
      std::copy(keys.begin(), keys.end(), keys_.data() + 1 + begin);
      if (!values.empty()) std::copy(values.begin(), values.end(), out->values.data() + begin);
    });
  }
  const size_t distinct = number_keys(out->index);
  out->keys.assign(keys_.begin() + 1, keys_.begin() + 1 + static_cast<ptrdiff_t>(distinct));
}

uint32_t BatchBuilder::number_keys(std::span<uint32_t> index) {
  std::fill(slots_.begin(), slots_.end(), 0);
  uint32_t distinct = 0;
  for (size_t e = 0; e < index.size(); ++e) {
    if (distinct >= slots_.size() / kSlotsPerKey) grow(distinct);
    __builtin_prefetch(&slots_[home_of(keys_[1 + e + kEntriesAhead])], 1);
    const uint64_t key = keys_[1 + e];
    uint32_t& slot = slot_of(key);
    // Whether a key is new is a coin's toss, so nothing branches on it: both cases store the same things.
    const bool fresh = slot == 0;
    slot |= (distinct + 1) & -uint32_t{fresh};
    keys_[1 + distinct] = key;  // not ahead of the keys still to be read
    distinct += fresh;
    index[e] = slot - 1;
  }
  return distinct;
}

inline uint32_t& BatchBuilder::slot_of(uint64_t key) {
  const size_t mask = slots_.size() - 1;
  size_t at = home_of(key);
  // Not free and not this key, in one test: only a collision is rare enough for a branch.
  const auto is_anothers = [&] { return ((keys_[slots_[at]] ^ key) & -uint64_t{slots_[at] != 0}) != 0; };
  while (is_anothers()) at = (at + 1) & mask;
  return slots_[at];
}

void BatchBuilder::grow(uint32_t distinct) {
  slots_.assign(slots_.size() * 2, 0);
  --shift_;
  for (uint32_t number = 1; number <= distinct; ++number) slot_of(keys_[number]) = number;
}

}  // namespace talweg
