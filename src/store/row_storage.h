// The rows of a table, in chunks of a fixed size: growing allocates chunks and neither copies nor moves a row. A row is
// its weights, which start at zero, and behind them the optimizer's state. Not thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"
#include "store/zeroed_array.h"

namespace talweg {

template <class Real>
class RowStorage {
 public:
  // One huge page. So few chunk pointers stay in the fastest cache.
  static constexpr size_t kChunkBytes = size_t{2} << 20;

  // `extra` values behind weights and state are the caller's; they start at zero.
  RowStorage(size_t width, const Optimizer<Real>& optimizer, size_t extra = 0)
      : width_(width), stride_(width * (1 + optimizer.state_per_weight()) + extra), initial_(stride_) {
    for (size_t k = 0; k < optimizer.state_per_weight(); ++k) {
      const auto state = initial_.begin() + static_cast<ptrdiff_t>((k + 1) * width);
      std::fill_n(state, width, optimizer.initial_state(k));
    }
    starts_at_zero_ = std::all_of(initial_.begin(), initial_.end(), [](Real value) { return value == 0; });
    const size_t rows = std::max<size_t>(1, kChunkBytes / (stride_ * sizeof(Real)));
    chunk_shift_ = static_cast<unsigned>(std::bit_width(rows) - 1);
  }

  size_t width() const { return width_; }
  // Of a row, with its state and what is behind it.
  size_t stride() const { return stride_; }
  uint32_t size() const { return size_; }
  // For how many rows there is memory, and how much more that of `size` rows takes.
  uint64_t capacity() const { return uint64_t{chunks_.size()} << chunk_shift_; }
  size_t growth_bytes(uint64_t size) const {
    return (chunks_for(size) - std::min(chunks_for(size), chunks_.size())) * chunk_bytes();
  }
  // Makes memory for `size` rows. Throws std::bad_alloc; what there is stays as it is then.
  void reserve(uint64_t size) {
    while (chunks_.size() < chunks_for(size)) add_chunk();
  }
  // Adds fresh rows until there are `size`.
  void grow_to(uint32_t size) {
    if (size <= size_) return;
    reserve(size);
    if (!starts_at_zero_) {
      for (uint32_t r = size_; r < size; ++r) reset(r);
    }
    size_ = size;
  }
  // Makes a row as fresh as it was.
  void reset(uint32_t r) { std::copy(initial_.begin(), initial_.end(), row(r)); }

  Real* row(uint32_t r) { return rows({}, nullptr).row(r); }
  const Real* row(uint32_t r) const { return const_cast<RowStorage*>(this)->row(r); }

  // The view an optimizer takes.
  Rows<Real> rows(std::span<const uint32_t> listed, const Real* gradients) {
    return {.chunks = chunks_.data(),
            .chunk_shift = chunk_shift_,
            .stride = stride_,
            .state_offset = width_,
            .width = width_,
            .rows = listed,
            .gradients = gradients};
  }

  size_t bytes() const { return chunks_.size() * chunk_bytes(); }

 private:
  // The first chunks use memory as it is touched: most tables are small, and a simulation has thousands.
  static constexpr size_t kSmallPageChunks = 4;

  size_t chunks_for(uint64_t size) const { return (size + (uint64_t{1} << chunk_shift_) - 1) >> chunk_shift_; }
  size_t chunk_bytes() const { return sizeof(Real) * stride_ << chunk_shift_; }
  void add_chunk() {
    if (chunks_.size() == chunks_.capacity()) chunks_.reserve(2 * chunks_.size() + 1);
    owned_.emplace_back(stride_ << chunk_shift_, owned_.size() < kSmallPageChunks ? Pages::kSmall : Pages::kHuge);
    chunks_.push_back(owned_.back().data());
  }

  size_t width_, stride_;
  std::vector<Real> initial_;
  bool starts_at_zero_ = true;
  unsigned chunk_shift_ = 0;
  uint32_t size_ = 0;
  std::vector<ZeroedArray<Real>> owned_;
  std::vector<Real*> chunks_;
};

}  // namespace talweg
