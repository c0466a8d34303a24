// A batch's rows as models read them, and the checks of data that models share.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "data/batch.h"

namespace talweg {

struct RowView {
  std::span<const uint32_t> index;
  std::span<const float> values;  // empty when all are 1

  template <class Real>
  Real value(size_t i) const {
    return values.empty() ? Real{1} : static_cast<Real>(values[i]);
  }
};

inline RowView row_of(const Batch& batch, size_t i) {
  const size_t begin = batch.offsets[i], count = batch.offsets[i + 1] - begin;
  const std::span<const float> values(batch.values);
  return {std::span(batch.index).subspan(begin, count), values.empty() ? values : values.subspan(begin, count)};
}

inline Status check_keys(const Dataset& data, uint64_t features) {
  if (data.rows() == 0 || data.max_key() < features) return {};
  return error(Code::kInvalid, "the data has key {}, but model.features is {}: set it to at least {}", data.max_key(),
               features, data.max_key() + 1);
}

inline Status check_labels_are_finite(const Dataset& data) {
  for (size_t row = 0; row < data.rows(); ++row) {
    if (!std::isfinite(data.label(row))) {
      return error(Code::kInvalid, "row {} has the label {}, which is not a finite number", row, data.label(row));
    }
  }
  return {};
}

}  // namespace talweg
