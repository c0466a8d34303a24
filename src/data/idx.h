// IDX files, as MNIST and its kin come: images in one file, labels in another, both of unsigned bytes. A pixel's value
// is its byte divided by 255; a label is its number.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "data/dense.h"

namespace talweg {

// `name` is for messages; `file` must outlive the array. The size is checked against the shape.
Result<DenseArray> parse_idx(Bytes file, std::string name);

// Images and labels as a table.
Result<DenseTable> parse_idx(Bytes images, const std::string& images_name, Bytes labels,
                             const std::string& labels_name);

// The usual name of the labels' file: images becomes labels, and idx3 idx1.
Result<std::string> idx_labels_path(const std::string& images);

}  // namespace talweg
