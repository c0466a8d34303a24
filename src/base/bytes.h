// Spans of bytes, and views of typed data as bytes. Every multi-byte value we send or store is little-endian; we build
// only for little-endian machines, so a typed span is its own encoding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace talweg {

static_assert(std::endian::native == std::endian::little, "formats are little-endian and read in place");

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

template <class T>
Bytes bytes_of(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(values);
}
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A byte buffer whose memory is not cleared when it is made: a large one costs only what is written into it.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) : data_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  MutableBytes bytes() { return {data_.get(), size_}; }
  Bytes bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t size_ = 0;
};

// Reads typed runs off the front of bytes that came from outside. `take` gives an empty span and marks the cursor bad
// when too little is left or the data is not aligned for T; callers look at `ok()` once at the end.
class ByteCursor {
 public:
  explicit ByteCursor(Bytes bytes) : rest_(bytes) {}

  template <class T>
  std::span<const T> take(size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const bool aligned = reinterpret_cast<uintptr_t>(rest_.data()) % alignof(T) == 0;
    if (!ok_ || !aligned || count > rest_.size() / sizeof(T)) {
      ok_ = false;
      return {};
    }
    const auto* first = reinterpret_cast<const T*>(rest_.data());
    rest_ = rest_.subspan(count * sizeof(T));
    return {first, count};
  }
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  Bytes rest_;
  bool ok_ = true;
};

}  // namespace talweg
