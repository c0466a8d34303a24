#include "data/batch.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace talweg {
namespace {

constexpr size_t kFirstSlots = 1024;
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
    CHECK(entries <= std::numeric_limits<uint32_t>::max());
    out->offsets[i + 1] = static_cast<uint32_t>(entries);
    out->labels[i] = data.label(rows[i]);
  }
  return entries;
}

}  // namespace

BatchBuilder::BatchBuilder() : slots_(kFirstSlots), shift_(64 - std::bit_width(kFirstSlots - 1)) {}

void BatchBuilder::build(const Dataset& data, std::span<const uint64_t> rows, Batch* out) {
  start_batch();
  out->keys.clear();
  out->labels.resize(rows.size());
  out->offsets.resize(rows.size() + 1);
  const size_t entries = place_rows(data, rows, out);
  out->index.resize(entries);
  entry_keys_.resize(entries + kEntriesAhead);
  out->values.resize(data.has_values() ? entries : 0);
  // Keys are brought together before any is looked up: a plain copy keeps many far reads in flight, while the look-ups'
  // mispredicted branches would end each other's.
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) data.prefetch(rows[i + kRowsAhead]);
    const size_t begin = out->offsets[i];
    data.visit(rows[i], [&](auto keys, std::span<const float> values) {
      std::copy(keys.begin(), keys.end(), entry_keys_.data() + begin);
      if (!values.empty()) std::copy(values.begin(), values.end(), out->values.data() + begin);
    });
  }
  for (size_t e = 0; e < entries; ++e) {
    __builtin_prefetch(&slots_[home_of(entry_keys_[e + kEntriesAhead])]);
    out->index[e] = position_of(entry_keys_[e], &out->keys);
  }
}

void BatchBuilder::start_batch() {
  if (++generation_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot());
  generation_ = 1;
}

inline uint32_t BatchBuilder::position_of(uint64_t key, std::vector<uint64_t>* keys) {
  const size_t mask = slots_.size() - 1;
  size_t at = home_of(key);
  for (; slots_[at].generation == generation_; at = (at + 1) & mask) {
    if (slots_[at].key == key) return slots_[at].position;
  }
  const auto position = static_cast<uint32_t>(keys->size());
  slots_[at] = {key, generation_, position};
  keys->push_back(key);
  if (keys->size() * 2 > slots_.size()) grow(*keys);
  return position;
}

void BatchBuilder::grow(const std::vector<uint64_t>& keys) {
  slots_.assign(slots_.size() * 2, Slot());
  --shift_;
  const size_t mask = slots_.size() - 1;
  for (size_t position = 0; position < keys.size(); ++position) {
    size_t at = home_of(keys[position]);
    while (slots_[at].generation == generation_) at = (at + 1) & mask;
    slots_[at] = {keys[position], generation_, static_cast<uint32_t>(position)};
  }
}

}  // namespace talweg
