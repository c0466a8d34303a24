// What the tests of this folder share: rows to update, and making an optimizer that must be there.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optim/registry.h"

namespace talweg {

template <class Real>
std::unique_ptr<Optimizer<Real>> make_standard(const OptimizerConfig& config, BlockShape shape = {}) {
  auto made = OptimizerRegistry::standard().make<Real>(config, shape);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? std::move(*made) : nullptr;
}

// Rows of `width` weights in chunks of two, so that every test with three rows crosses a chunk.
template <class Real>
struct Storage {
  static constexpr unsigned kShift = 1;
  Storage(const Optimizer<Real>& optimizer, size_t count, size_t width)
      : width(width), stride(width * (1 + optimizer.state_per_weight())), values(count * stride) {
    for (size_t r = 0; r < count; ++r) {
      for (size_t k = 0; k < optimizer.state_per_weight(); ++k) {
        for (size_t j = 0; j < width; ++j) values[r * stride + (k + 1) * width + j] = optimizer.initial_state(k);
      }
    }
    for (size_t r = 0; r < count; r += 1u << kShift) chunks.push_back(values.data() + r * stride);
  }
  Rows<Real> rows(std::span<const uint32_t> listed, const Real* gradients) const {
    return {chunks.data(), kShift, stride, width, width, listed, gradients};
  }
  size_t width, stride;
  std::vector<Real> values;
  std::vector<Real*> chunks;
};

// One row and its optimizer, updated again and again.
template <class Real>
struct OneRow {
  OneRow(const OptimizerConfig& config, std::vector<Real> start, BlockShape shape = {})
      : optimizer(make_standard<Real>(config, shape)), storage(*optimizer, 1, start.size()) {
    std::copy(start.begin(), start.end(), storage.values.begin());
  }
  // The weights after the next update.
  std::vector<Real> after(const std::vector<Real>& gradients, double rate = 1) {
    EXPECT_EQ(gradients.size(), storage.width);
    const uint32_t listed[] = {0};
    Rows<Real> rows = storage.rows(listed, gradients.data());
    rows.rate = rate;
    rows.number = ++number;
    optimizer->apply(rows);
    return {storage.values.begin(), storage.values.begin() + static_cast<ptrdiff_t>(storage.width)};
  }
  Real after(Real gradient, double rate = 1) { return after(std::vector<Real>{gradient}, rate)[0]; }

  std::unique_ptr<Optimizer<Real>> optimizer;
  Storage<Real> storage;
  uint64_t number = 0;
};

}  // namespace talweg
