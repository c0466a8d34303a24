#include "data/sections.h"

#include <cstring>

namespace talweg {
namespace {

template <class T>
std::span<const T> typed(const std::byte* first, uint64_t bytes) {
  return {reinterpret_cast<const T*>(first), bytes / sizeof(T)};
}

template <class T, class Element>
Bytes fill_scratch(std::vector<std::byte>* scratch, size_t count, Element element) {
  scratch->resize(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const T value = element(i);
    std::memcpy(scratch->data() + i * sizeof(T), &value, sizeof(T));
  }
  return *scratch;
}

Bytes keys_of_block(const DatasetShape& shape, const RowBlock& block, std::vector<std::byte>* scratch) {
  const auto narrow = block.keys32.span();
  const auto wide = block.keys64.span();
  if (shape.wide() && !block.wide) {
    return fill_scratch<uint64_t>(scratch, narrow.size(), [&](size_t i) { return narrow[i]; });
  }
  // A block may have gone wide for a row that was then dropped as bad.
  if (!shape.wide() && block.wide) {
    return fill_scratch<uint32_t>(scratch, wide.size(), [&](size_t i) { return static_cast<uint32_t>(wide[i]); });
  }
  return block.wide ? bytes_of(wide) : bytes_of(narrow);
}

}  // namespace

uint64_t section_bytes(const DatasetShape& shape, Section section) {
  switch (section) {
    case Section::kOffsets: return (shape.rows + 1) * sizeof(uint64_t);
    case Section::kLabels: return shape.rows * sizeof(float);
    case Section::kKeys: return shape.nonzeros * shape.key_bytes();
    case Section::kValues: return shape.has_values ? shape.nonzeros * sizeof(float) : 0;
  }
  return 0;
}

DatasetColumns columns_at(const DatasetShape& shape, const std::array<const std::byte*, kSections.size()>& sections) {
  const auto size = [&](Section section) { return section_bytes(shape, section); };
  DatasetColumns columns;
  columns.offsets = typed<uint64_t>(sections[0], size(Section::kOffsets));
  columns.labels = typed<float>(sections[1], size(Section::kLabels));
  if (shape.wide()) {
    columns.keys64 = typed<uint64_t>(sections[2], size(Section::kKeys));
  } else {
    columns.keys32 = typed<uint32_t>(sections[2], size(Section::kKeys));
  }
  columns.values = typed<float>(sections[3], size(Section::kValues));
  columns.max_key = shape.max_key;
  columns.skipped_rows = shape.skipped_rows;
  return columns;
}

Bytes section_of_block(const DatasetShape& shape, Section section, const RowBlock& block, uint64_t nonzeros_before,
                       std::vector<std::byte>* scratch) {
  switch (section) {
    case Section::kOffsets:
      return fill_scratch<uint64_t>(scratch, block.rows(),
                                    [&](size_t i) { return nonzeros_before + block.row_ends.span()[i]; });
    case Section::kLabels: return bytes_of(block.labels.span());
    case Section::kKeys: return keys_of_block(shape, block, scratch);
    case Section::kValues:
      if (!shape.has_values) return {};
      if (!block.has_values) return fill_scratch<float>(scratch, block.nonzeros(), [](size_t) { return 1.0f; });
      return bytes_of(block.values.span());
  }
  return {};
}

Dataset to_dataset(const ParsedRows& rows) {
  constexpr uint64_t kAlignment = sizeof(uint64_t);
  uint64_t total = 0;
  std::array<uint64_t, kSections.size()> begins{};
  for (size_t s = 0; s < kSections.size(); ++s) {
    begins[s] = total;
    total += (section_bytes(rows.shape, kSections[s]) + kAlignment - 1) / kAlignment * kAlignment;
  }
  auto memory = std::make_shared<Buffer>(total);
  std::array<const std::byte*, kSections.size()> sections{};
  for (size_t s = 0; s < kSections.size(); ++s) {
    std::byte* to = memory->data() + begins[s];
    sections[s] = to;
    const Status copied = put_section(rows, kSections[s], [&](Bytes piece) -> Status {
      if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
      return {};
    });
    CHECK(copied.ok());
  }
  return Dataset(columns_at(rows.shape, sections), memory);
}

}  // namespace talweg
