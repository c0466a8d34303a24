// An array that starts as zeros and costs no memory where it is not touched, for tables that are read at random: its
// elements begin on a cache line, and large ones ask for huge pages, since one entry of the processor's page cache then
// covers 2 MiB instead of 4 KiB.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace talweg {

enum class Pages {
  kSmall,  // memory is used as it is touched, 4 KiB at a time
  kHuge,   // 2 MiB at a time; arrays smaller than that are kSmall
};

// Zeroed memory, at least cache-line aligned. Throws std::bad_alloc.
void* allocate_zeroed(size_t bytes, Pages pages);
void free_zeroed(void* memory, size_t bytes);

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedArray() = default;
  ZeroedArray(size_t size, Pages pages)
      : data_(static_cast<T*>(allocate_zeroed(size * sizeof(T), pages))), size_(size) {}
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() {
    if (data_ != nullptr) free_zeroed(data_, size_ * sizeof(T));
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace talweg
