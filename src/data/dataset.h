// The rows of a sparse data set: a label and (key, value) pairs each. Immutable and cheap to copy: copies share one
// mapping of the cache file, or one heap block. Thread-safe to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace talweg {

// Where the columns lie. One of keys32 and keys64 is used; no values means that every value is 1.
struct DatasetColumns {
  std::span<const float> labels;
  std::span<const uint64_t> offsets;  // rows + 1, from 0 up to the number of non-zeros
  std::span<const uint32_t> keys32;
  std::span<const uint64_t> keys64;
  std::span<const float> values;
  uint64_t max_key = 0;
  uint64_t skipped_rows = 0;
};

class Dataset {
 public:
  Dataset() = default;
  // `owner` keeps the memory of the columns alive. The offsets must rise and fit the other columns.
  Dataset(DatasetColumns columns, std::shared_ptr<const void> owner);

  size_t rows() const { return columns_.labels.size(); }
  uint64_t nonzeros() const { return rows() == 0 ? 0 : columns_.offsets.back(); }
  // The largest key of any row; 0 when there is none.
  uint64_t max_key() const { return columns_.max_key; }
  // Bad rows that the reader left out.
  uint64_t skipped_rows() const { return columns_.skipped_rows; }
  bool has_values() const { return !columns_.values.empty(); }
  bool has_wide_keys() const { return !columns_.keys64.empty(); }

  float label(size_t row) const { return columns_.labels[row]; }
  std::span<const float> labels() const { return columns_.labels; }
  size_t row_size(size_t row) const { return columns_.offsets[row + 1] - columns_.offsets[row]; }

  // Calls visitor(keys, values): keys is a span of uint32_t or of uint64_t, values is empty when all are 1.
  template <class Visitor>
  decltype(auto) visit(size_t row, Visitor&& visitor) const {
    const uint64_t begin = columns_.offsets[row], count = columns_.offsets[row + 1] - begin;
    const auto values = has_values() ? columns_.values.subspan(begin, count) : std::span<const float>();
    if (has_wide_keys()) return visitor(columns_.keys64.subspan(begin, count), values);
    return visitor(columns_.keys32.subspan(begin, count), values);
  }
  // One entry of a row, for code that need not be fast.
  std::pair<uint64_t, float> entry(size_t row, size_t i) const;

  // Hints that a row is read soon: first its label and place, then (once the place is known) its keys and values.
  void prefetch_place(size_t row) const {
    __builtin_prefetch(&columns_.offsets[row]);
    __builtin_prefetch(&columns_.labels[row]);
  }
  void prefetch(size_t row) const;

 private:
  DatasetColumns columns_;
  std::shared_ptr<const void> owner_;
};

}  // namespace talweg
