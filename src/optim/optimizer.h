// Optimizers run where the weights live: a server applies one to the summed gradients of a step, in place. One virtual
// call serves a whole batch of rows; the arithmetic of a row is inlined into it. L2 regularisation is part of the
// update and so reaches only the rows a step touches, once, however many workers touched them.
//
// A user adds an optimizer by writing the arithmetic of one weight (see WeightUpdate) and adding it to a registry.
// Not thread-safe.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/config.h"

namespace talweg {

struct OptimizerConfig {
  std::string type = "sgd";
  double lr = 0.1;
  double l2 = 0;
  double epsilon = 1e-10;
  double initial_accumulator = 0;

  bool operator==(const OptimizerConfig&) const = default;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type, "how a gradient changes the weights: sgd, adagrad, or one that was added");
    f("lr", lr, "learning rate", at_least(0));
    f("l2", l2, "weight of the L2 penalty, applied to the rows a step touches", at_least(0));
    f("epsilon", epsilon, "adagrad: added to the root of the accumulator", at_least(0));
    f("initial_accumulator", initial_accumulator, "adagrad: where the accumulator starts", at_least(0));
  }
};

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

template <class Real>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual size_t state_per_weight() const = 0;
  // What the k-th state value of a fresh weight is.
  virtual Real initial_state(size_t k) const = 0;
  // No row may be listed twice: gradients of one weight are summed before they come here.
  virtual void apply(const Rows<Real>& rows) = 0;
};

// The arithmetic of one weight: changes the weight and its state by a gradient.
template <class Update, class Real>
concept WeightUpdate = requires(const Update& update, Real& weight, Real gradient,
                                std::array<Real, Update::kState>& state) {
  { Update::kState } -> std::convertible_to<size_t>;
  { update.initial_state(size_t{0}) } -> std::convertible_to<Real>;
  update(weight, gradient, state);
};

// An optimizer made of a WeightUpdate.
template <class Real, WeightUpdate<Real> Update>
class RowwiseOptimizer final : public Optimizer<Real> {
 public:
  explicit RowwiseOptimizer(Update update) : update_(std::move(update)) {}

  size_t state_per_weight() const override { return Update::kState; }
  Real initial_state(size_t k) const override { return update_.initial_state(k); }
  void apply(const Rows<Real>& rows) override {
    // A width the compiler knows turns the inner loop of narrow rows into straight code.
    if (rows.width == 1) return apply_rows<1>(rows);
    apply_rows<0>(rows);
  }

 private:
  // Rows lie anywhere in memory, so each is asked for some rows before it is needed: this many, or fewer where a row is
  // many cache lines and a processor has only so many requests under way.
  static constexpr size_t kPrefetchRows = 12;
  static constexpr size_t kLine = 64 / sizeof(Real);

  static void prefetch(const Real* row, size_t values) {
    for (size_t at = 0; at < values; at += kLine) __builtin_prefetch(row + at, 1);
  }

  template <size_t kWidth>
  void apply_rows(const Rows<Real>& rows) const {
    const size_t count = rows.rows.size(), width = kWidth != 0 ? kWidth : rows.width;
    const size_t row_values = width * (1 + Update::kState);
    const size_t distance = row_values <= kLine ? kPrefetchRows : 2;
    const size_t ahead = count > distance ? count - distance : 0;
    const Real* gradients = rows.gradients;
    for (size_t i = 0; i < count; ++i, gradients += width) {
      if (i < ahead) prefetch(rows.row(rows.rows[i + distance]), kWidth != 0 ? 1 : row_values);
      apply_row(rows.row(rows.rows[i]), rows.state_offset, width, gradients);
    }
  }

  void apply_row(Real* __restrict row, size_t state_offset, size_t width, const Real* __restrict gradients) const {
    const Update update = update_;
    // Weights and state are apart by at least the width, which the compiler cannot see.
#pragma GCC ivdep
    for (size_t j = 0; j < width; ++j) {
      std::array<Real, Update::kState> state;
      for (size_t k = 0; k < Update::kState; ++k) state[k] = row[j + (k + 1) * state_offset];
      update(row[j], gradients[j], state);
      for (size_t k = 0; k < Update::kState; ++k) row[j + (k + 1) * state_offset] = state[k];
    }
  }

  Update update_;
};

}  // namespace talweg
