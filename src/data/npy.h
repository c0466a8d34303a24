// NumPy's files: .npy holds one array, .npz is a zip archive of them. Numbers of 8 to 64 bits (and truth values),
// little endian, in C order; other arrays are refused by name. The data is not copied.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "data/dense.h"

namespace talweg {

// `name` is for messages; `file` must outlive the array. The size is checked against the shape.
Result<DenseArray> parse_npy(Bytes file, std::string name);

// The features are the array X, x or data, the labels y, labels or label.
Result<DenseTable> parse_npz(Bytes file, const std::string& name);

}  // namespace talweg
