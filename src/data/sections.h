// A data set as a few long arrays: what parsed blocks are joined into, in memory and in the cache file alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/row_block.h"

namespace talweg {

struct DatasetShape {
  uint64_t rows = 0, nonzeros = 0, max_key = 0, skipped_rows = 0;
  bool has_values = false;

  bool wide() const { return max_key >> 32 != 0; }
  uint64_t key_bytes() const { return wide() ? sizeof(uint64_t) : sizeof(uint32_t); }
};

// In the order they are stored.
enum class Section { kOffsets, kLabels, kKeys, kValues };
constexpr std::array kSections = {Section::kOffsets, Section::kLabels, Section::kKeys, Section::kValues};

// Its size follows from the shape alone.
uint64_t section_bytes(const DatasetShape& shape, Section section);

// The columns, given where each section starts.
DatasetColumns columns_at(const DatasetShape& shape, const std::array<const std::byte*, kSections.size()>& sections);

// Rows in the order of their file, still in the blocks they were parsed into.
struct ParsedRows {
  std::vector<RowBlock> blocks;
  DatasetShape shape;
};

// One block's share of a section, ready to be stored; `scratch` is used when it must be converted.
Bytes section_of_block(const DatasetShape& shape, Section section, const RowBlock& block, uint64_t nonzeros_before,
                       std::vector<std::byte>* scratch);

// Hands the content of one section to `put`, a piece at a time, in order.
template <class Put>
Status put_section(const ParsedRows& rows, Section section, Put put) {
  std::vector<std::byte> scratch;
  uint64_t nonzeros = 0;
  if (section == Section::kOffsets) TRY(put(std::as_bytes(std::span(&nonzeros, 1))));
  for (const RowBlock& block : rows.blocks) {
    TRY(put(section_of_block(rows.shape, section, block, nonzeros, &scratch)));
    nonzeros += block.nonzeros();
  }
  return {};
}

// All rows in one heap block.
Dataset to_dataset(const ParsedRows& rows);

}  // namespace talweg
