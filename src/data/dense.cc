#include "data/dense.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

namespace talweg {
namespace {

template <class T>
float load(const std::byte* from) {
  T element;
  std::memcpy(&element, from, sizeof(T));
  return static_cast<float>(element);
}

// Calls visitor(load), where load(from) is the element there as a float. One choice per row, not per element.
template <class Visitor>
auto with_loader(ElementType type, Visitor visitor) {
  switch (type) {
    case ElementType::kInt8: return visitor(load<int8_t>);
    case ElementType::kUint8: return visitor(load<uint8_t>);
    case ElementType::kInt16: return visitor(load<int16_t>);
    case ElementType::kUint16: return visitor(load<uint16_t>);
    case ElementType::kInt32: return visitor(load<int32_t>);
    case ElementType::kUint32: return visitor(load<uint32_t>);
    case ElementType::kInt64: return visitor(load<int64_t>);
    case ElementType::kUint64: return visitor(load<uint64_t>);
    case ElementType::kFloat32: return visitor(load<float>);
    case ElementType::kFloat64: break;
  }
  return visitor(load<double>);
}

Status not_finite(const DenseArray& array, uint64_t row, uint64_t column) {
  return error(Code::kInvalid, "{}: row {}, column {} is not a finite 32-bit number", array.name, row + 1, column + 1);
}

Result<float> label_at(const DenseArray& labels, uint64_t row) {
  const std::byte* const from = labels.data.data() + row * size_of(labels.type);
  const float label = with_loader(labels.type, [from](auto load) { return load(from); });
  return std::isfinite(label) ? Result<float>(label) : not_finite(labels, row, 0);
}

Status check_features(const DenseArray& features) {
  TRY(check_size(features));
  if (features.shape.size() >= 2) return {};
  return error(Code::kInvalid, "{} has one dimension: features need two, rows and columns", features.name);
}

}  // namespace

size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kUint8: return 1;
    case ElementType::kInt16:
    case ElementType::kUint16: return 2;
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kFloat32: return 4;
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kFloat64: break;
  }
  return 8;
}

uint64_t DenseArray::columns() const {
  uint64_t columns = 1;
  for (size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
  return columns;
}

Status check_size(const DenseArray& array) {
  uint64_t bytes = size_of(array.type);
  bool wraps = array.shape.empty();
  for (const uint64_t length : array.shape) {
    if (length == 0) return error(Code::kInvalid, "{} holds no rows", array.name);
    wraps |= __builtin_mul_overflow(bytes, length, &bytes);
  }
  if (!wraps && bytes == array.data.size()) return {};
  return error(Code::kCorrupt, "{} has {} bytes of data, which is not what its shape says", array.name,
               array.data.size());
}

Result<DenseTable> DenseTable::with_label_column(DenseArray features, const std::string& label) {
  TRY(check_features(features));
  uint64_t column = 0;
  const char* const end = label.data() + label.size();
  const auto parsed = std::from_chars(label.data(), end, column);
  if (parsed.ec != std::errc() || parsed.ptr != end || column < 1 || column > features.columns()) {
    return error(Code::kInvalid, "{}: no label column '{}': give a number from 1 to {}", features.name, label,
                 features.columns());
  }
  DenseTable table;
  table.features_ = std::move(features);
  table.label_column_ = column - 1;
  return table;
}

Result<DenseTable> DenseTable::with_labels(DenseArray features, DenseArray labels) {
  TRY(check_features(features));
  TRY(check_size(labels));
  if (labels.columns() != 1 || labels.rows() != features.rows()) {
    return error(Code::kInvalid, "{} has {} rows, but {} has {} labels", features.name, features.rows(), labels.name,
                 labels.rows() * labels.columns());
  }
  DenseTable table;
  table.features_ = std::move(features);
  table.labels_ = std::move(labels);
  return table;
}

Status DenseTable::parse(uint64_t first, uint64_t count, RowBlock* out, BadRows* bad) const {
  CHECK(first <= rows() && count <= rows() - first);
  for (uint64_t row = first; row < first + count; ++row) {
    const Status status = parse_row(row, out);
    if (status.ok()) continue;
    out->drop_open_row();
    TRY(bad->add(status));
  }
  return {};
}

Status DenseTable::parse_row(uint64_t row, RowBlock* out) const {
  const uint64_t columns = features_.columns(), bytes = size_of(features_.type);
  const std::byte* const from = features_.data.data() + row * columns * bytes;
  const uint64_t label_column = labels_ ? columns : label_column_;
  float label = 0;
  if (labels_) {
    ASSIGN(label, label_at(*labels_, row));
  }
  uint64_t bad_column = columns;
  with_loader(features_.type, [&](auto load) {
    for (uint64_t i = 0, key = 0; i < columns; ++i) {
      const float value = load(from + i * bytes) / features_.divisor;
      if (!std::isfinite(value)) bad_column = std::min(bad_column, i);
      if (i == label_column) {
        label = value;
        continue;
      }
      if (value != 0) out->add(key, value);
      ++key;
    }
  });
  if (bad_column < columns) return not_finite(features_, row, bad_column);
  out->end_row(label);
  return {};
}

}  // namespace talweg
