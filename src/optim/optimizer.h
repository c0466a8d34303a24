// Optimizers run where the weights live: a server applies one to the summed gradients of a step, in place. One virtual
// call serves a whole batch of rows. L2 regularisation is part of the update and so reaches only the rows a step
// touches, once, however many workers touched them.
//
// Most optimizers are the arithmetic of one weight: see rowwise.h for how a user adds one. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "optim/config.h"

namespace talweg {

// The rows one update changes, and their gradients. Storage comes in chunks, so that it can grow without moving a row.
// Within a row the weights come first; the k-th state value of a weight lies (k + 1) * state_offset behind it.
template <class Real>
struct Rows {
  Real* const* chunks = nullptr;  // each holds 2^chunk_shift rows
  unsigned chunk_shift = 0;
  size_t stride = 0;  // from one row of a chunk to the next
  size_t state_offset = 0;
  size_t width = 0;  // weights to update in each row
  std::span<const uint32_t> rows;
  const Real* gradients = nullptr;  // `width` for each of `rows`, in their order
  double rate = 1;                  // the learning rate is multiplied by this
  uint64_t number = 1;              // which update of the table this is, from 1

  Real* row(uint32_t r) const { return chunks[r >> chunk_shift] + (r & ((uint32_t{1} << chunk_shift) - 1)) * stride; }
};

// The matrix that an optimizer is made for, stored row by row; without columns there is none.
struct BlockShape {
  uint64_t rows = 0, columns = 0;
};

template <class Real>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual size_t state_per_weight() const = 0;
  // What the k-th state value of a fresh weight is.
  virtual Real initial_state(size_t k) const = 0;
  // Whether each row given to apply must be the whole block that make() was told the shape of, with its state right
  // behind it (state_offset == width) and zeros for gradients that did not come.
  virtual bool needs_whole_block() const { return false; }
  // No row may be listed twice: gradients of one weight are summed before they come here.
  virtual void apply(const Rows<Real>& rows) = 0;
};

}  // namespace talweg
