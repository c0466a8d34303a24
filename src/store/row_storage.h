// The rows of a table, in chunks of a fixed size: growing allocates a chunk and neither copies nor moves a row. A row
// is its weights, which start at zero, and behind them the optimizer's state. Not thread-safe.
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

  RowStorage(size_t width, const Optimizer<Real>& optimizer)
      : width_(width), stride_(width * (1 + optimizer.state_per_weight())), initial_(stride_) {
    for (size_t k = 0; k < optimizer.state_per_weight(); ++k) {
      const auto state = initial_.begin() + static_cast<ptrdiff_t>((k + 1) * width);
      std::fill_n(state, width, optimizer.initial_state(k));
    }
    starts_at_zero_ = std::all_of(initial_.begin(), initial_.end(), [](Real value) { return value == 0; });
    const size_t rows = std::max<size_t>(1, kChunkBytes / (stride_ * sizeof(Real)));
    chunk_shift_ = static_cast<unsigned>(std::bit_width(rows) - 1);
  }

  size_t width() const { return width_; }
  uint32_t size() const { return size_; }
  // Adds fresh rows until there are `size`.
  void grow_to(uint32_t size) {
    if (size <= size_) return;
    const size_t chunk_rows = size_t{1} << chunk_shift_;
    while (chunks_.size() * chunk_rows < size) add_chunk(chunk_rows * stride_);
    if (!starts_at_zero_) {
      for (uint32_t r = size_; r < size; ++r) std::copy(initial_.begin(), initial_.end(), row(r));
    }
    size_ = size;
  }

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

  size_t bytes() const { return chunks_.size() * (sizeof(Real) * stride_ << chunk_shift_); }

 private:
  // The first chunks use memory as it is touched: most tables are small, and a simulation has thousands.
  static constexpr size_t kSmallPageChunks = 4;

  void add_chunk(size_t values) {
    owned_.emplace_back(values, owned_.size() < kSmallPageChunks ? Pages::kSmall : Pages::kHuge);
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
