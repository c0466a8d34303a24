// A trained model: its tables as they were at the end, and the file they are kept in.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/table_spec.h"

namespace talweg {

struct TrainedTable {
  std::string name;
  bool sparse = true;
  uint32_t width = 1;
  ValueType type = ValueType::kFloat32;
  std::vector<uint64_t> keys;     // sparse: rising
  std::vector<std::byte> values;  // `width` for each key, or all of a dense table

  uint64_t rows() const { return sparse ? keys.size() : values.size() / size_of(type); }
  bool operator==(const TrainedTable&) const = default;
};

struct TrainedModel {
  std::vector<TrainedTable> tables;

  // The same for the same bits.
  uint32_t checksum() const;
  bool operator==(const TrainedModel&) const = default;
};

// The file appears whole or not at all. docs/formats.md has the layout.
Status save_model(const TrainedModel& model, const std::string& job_text, const std::string& path);
Result<TrainedModel> load_model(const std::string& path);

}  // namespace talweg
