#include "data/dataset.h"

#include <algorithm>

#include "base/check.h"

namespace talweg {
namespace {

constexpr size_t kLineBytes = 64;
// Past this the hardware's own prefetching has seen the stream.
constexpr size_t kMostLines = 8;

void prefetch_range(const void* first, size_t bytes) {
  const char* p = static_cast<const char*>(first);
  for (size_t at = 0; at < std::min(bytes, kMostLines * kLineBytes); at += kLineBytes) __builtin_prefetch(p + at);
  // GCC takes a function that only prefetches for one without effect, and leaves it out.
  asm volatile("");
}

}  // namespace

Dataset::Dataset(DatasetColumns columns, std::shared_ptr<const void> owner)
    : columns_(columns), owner_(std::move(owner)) {
  if (columns.labels.empty()) return;
  CHECK(columns.offsets.size() == columns.labels.size() + 1 && columns.offsets.front() == 0);
  CHECK(columns.keys32.size() + columns.keys64.size() == columns.offsets.back());
  CHECK(columns.keys32.empty() || columns.keys64.empty());
  CHECK(columns.values.empty() || columns.values.size() == columns.offsets.back());
}

std::pair<uint64_t, float> Dataset::entry(size_t row, size_t i) const {
  return visit(row, [&](auto keys, std::span<const float> values) -> std::pair<uint64_t, float> {
    return {keys[i], values.empty() ? 1.0f : values[i]};
  });
}

void Dataset::prefetch(size_t row) const {
  visit(row, [](auto keys, std::span<const float> values) {
    prefetch_range(keys.data(), keys.size_bytes());
    prefetch_range(values.data(), values.size_bytes());
  });
}

}  // namespace talweg
