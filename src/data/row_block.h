// What a parser makes of a piece of text: rows in columns. A block keeps its keys in 32 bits until a larger one comes,
// and no values until one is not 1, because most click data needs neither. Not thread-safe; one block per parser.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace talweg {

// An array that grows at its end and leaves what is not yet written uninitialised.
template <class T>
class Column {
 public:
  size_t size() const { return size_; }
  T* data() { return data_.get(); }
  std::span<const T> span() const { return {data_.get(), size_}; }

  // Where `count` more elements may be written; `took` then says how many were.
  T* room(size_t count) {
    if (capacity_ - size_ < count) grow(count);
    return data_.get() + size_;
  }
  void took(size_t count) { size_ += count; }
  void push(T value) {
    *room(1) = value;
    ++size_;
  }
  void truncate(size_t size) { size_ = size; }

 private:
  void grow(size_t count) {
    const size_t capacity = std::max(size_ + count, capacity_ * 2);
    auto larger = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(data_.get(), size_, larger.get());
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> data_;
  size_t size_ = 0, capacity_ = 0;
};

struct RowBlock {
  Column<float> labels;
  Column<uint64_t> row_ends;  // non-zeros up to and including each row
  Column<uint32_t> keys32;
  Column<uint64_t> keys64;  // in use instead of keys32 once `wide`
  Column<float> values;     // in use once `has_values`
  uint64_t max_key = 0;
  bool wide = false, has_values = false;

  size_t rows() const { return labels.size(); }
  size_t nonzeros() const { return row_ends.size() == 0 ? 0 : row_ends.span().back(); }

  // One entry of the row that `end_row` will end.
  void add(uint64_t key, float value);
  void end_row(float label);
  // Forgets what was added since the last `end_row`.
  void drop_open_row();

  // Give up the small representation; what is there already is carried over.
  void widen();
  void keep_values();
};

// How a parser goes on after a row it cannot read. With `most` at 0 the first bad row ends the parse.
struct BadRows {
  uint64_t most = 0;
  uint64_t count = 0;
  std::string first;  // the complaint about the first

  // Counts a bad row; a failure when there is one too many.
  Status add(Status complaint);
};

// A piece of input for an error message: at most 40 bytes, nothing that would disturb a terminal.
std::string shown(std::string_view token);

}  // namespace talweg
