// Makes an optimizer of the arithmetic of one weight. The arithmetic is inlined into the loop over a row, so that it
// runs on vectors, and the rows, which lie anywhere in memory, are fetched ahead.
//
// A user adds an optimizer by writing such an arithmetic (see WeightUpdate) and adding it to a registry.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "optim/clip.h"
#include "optim/optimizer.h"

namespace talweg {

// An update is made anew for each batch of rows, in one of two ways: of the config, whose lr is then already multiplied
// by the rate; or, where it has such a constructor, of the config as it is, the rate and the number of the update.
template <class Update>
concept MadeOfRateAndNumber = std::constructible_from<Update, const OptimizerConfig&, double, uint64_t>;
template <class Update>
concept MadeForRows = MadeOfRateAndNumber<Update> || std::constructible_from<Update, const OptimizerConfig&>;

// The arithmetic of one weight: changes the weight and its state by a gradient.
template <class Update, class Real>
concept WeightUpdate = MadeForRows<Update> &&
    requires(const Update& update, Real& weight, Real gradient, std::array<Real, Update::kState>& state) {
  { Update::kState } -> std::convertible_to<size_t>;
  { update.initial_state(size_t{0}) } -> std::convertible_to<Real>;
  update(weight, gradient, state);
};

// An update says that it heeds l1 by `static constexpr bool kL1 = true`. To the others a registry gives none.
template <class Update>
constexpr bool kHeedsL1 = false;
template <class Update>
requires(Update::kL1) constexpr bool kHeedsL1<Update> = true;

// An optimizer made of a WeightUpdate.
template <class Real, WeightUpdate<Real> Update>
class RowwiseOptimizer final : public Optimizer<Real> {
 public:
  explicit RowwiseOptimizer(OptimizerConfig config) : config_(std::move(config)), clip_(config_) {}

  size_t state_per_weight() const override { return Update::kState; }
  Real initial_state(size_t k) const override { return update_for(1, 1).initial_state(k); }
  void apply(const Rows<Real>& rows) override {
    const Update update = update_for(rows.rate, rows.number);
    if (clip_.on()) return apply_rows<true>(rows, update);
    apply_rows<false>(rows, update);
  }

 private:
  // Rows lie anywhere in memory, so each is asked for some rows before it is needed: this many, or fewer where a row is
  // many cache lines and a processor has only so many requests under way.
  static constexpr size_t kPrefetchRows = 12;
  static constexpr size_t kLine = 64 / sizeof(Real);

  struct NoClip {
    Real operator()(Real gradient) const { return gradient; }
  };

  Update update_for(double rate, uint64_t number) const {
    if constexpr (MadeOfRateAndNumber<Update>) {
      return Update(config_, rate, number);
    } else {
      OptimizerConfig now = config_;
      now.lr *= rate;
      return Update(now);
    }
  }

  static void prefetch(const Real* row, size_t values) {
    for (size_t at = 0; at < values; at += kLine) __builtin_prefetch(row + at, 1);
  }

  template <bool kClip>
  void apply_rows(const Rows<Real>& rows, const Update& update) const {
    // A width the compiler knows turns the inner loop of narrow rows into straight code.
    if (rows.width == 1) return apply_rows_of<1, kClip>(rows, update);
    apply_rows_of<0, kClip>(rows, update);
  }

  template <size_t kWidth, bool kClip>
  void apply_rows_of(const Rows<Real>& rows, const Update& update) const {
    const size_t count = rows.rows.size(), width = kWidth != 0 ? kWidth : rows.width;
    const size_t row_values = width * (1 + Update::kState);
    const size_t distance = row_values <= kLine ? kPrefetchRows : 2;
    const size_t ahead = count > distance ? count - distance : 0;
    const Real* gradients = rows.gradients;
    for (size_t i = 0; i < count; ++i, gradients += width) {
      if (i < ahead) prefetch(rows.row(rows.rows[i + distance]), kWidth != 0 ? 1 : row_values);
      Real* const row = rows.row(rows.rows[i]);
      if constexpr (kClip) {
        apply_row(row, rows.state_offset, width, gradients, update, clip_.of_row(gradients, width));
      } else {
        apply_row(row, rows.state_offset, width, gradients, update, NoClip{});
      }
    }
  }

  // By value: what lies behind a reference might, for all the compiler knows, change with every weight.
  template <class RowClip>
  static void apply_row(Real* __restrict row, size_t state_offset, size_t width, const Real* __restrict gradients,
                        const Update update, const RowClip clip) {
    // Weights and state are apart by at least the width, which the compiler cannot see.
#pragma GCC ivdep
    for (size_t j = 0; j < width; ++j) {
      std::array<Real, Update::kState> state;
      for (size_t k = 0; k < Update::kState; ++k) state[k] = row[j + (k + 1) * state_offset];
      update(row[j], clip(gradients[j]), state);
      for (size_t k = 0; k < Update::kState; ++k) row[j + (k + 1) * state_offset] = state[k];
    }
  }

  OptimizerConfig config_;
  Clip clip_;
};

}  // namespace talweg
