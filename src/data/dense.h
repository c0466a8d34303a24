// Rows from dense arrays, as NumPy and MNIST files hold them: the first dimension counts the rows, the others are the
// features, numbered from 0 in the order they lie. Zeros are left out. Numbers become 32-bit floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "data/row_block.h"

namespace talweg {

enum class ElementType { kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64 };

size_t size_of(ElementType type);

// Little-endian elements, the last dimension's beside each other; not necessarily aligned.
struct DenseArray {
  std::string name;  // for messages
  ElementType type = ElementType::kFloat32;
  std::vector<uint64_t> shape;
  Bytes data;
  std::shared_ptr<const void> owner;  // of the data, where it is not in the file itself
  float divisor = 1;                  // of each element

  uint64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  // Elements of a row.
  uint64_t columns() const;
};

// Whether the data is as long as type and shape say, none of the dimensions being 0.
Status check_size(const DenseArray& array);

// Features and labels that fit each other.
class DenseTable {
 public:
  // Labels in a column of the features, counted from 1. What else stands in a row are the features.
  static Result<DenseTable> with_label_column(DenseArray features, const std::string& label);
  // Labels in an array of their own, of as many elements as there are rows.
  static Result<DenseTable> with_labels(DenseArray features, DenseArray labels);

  uint64_t rows() const { return features_.rows(); }
  uint64_t row_bytes() const { return features_.columns() * size_of(features_.type); }
  // As parse_libsvm, for rows [first, first + count).
  Status parse(uint64_t first, uint64_t count, RowBlock* out, BadRows* bad) const;

 private:
  Status parse_row(uint64_t row, RowBlock* out) const;

  DenseArray features_;
  std::optional<DenseArray> labels_;
  uint64_t label_column_ = 0;  // without `labels_`
};

}  // namespace talweg
