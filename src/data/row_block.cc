#include "data/row_block.h"

namespace talweg {

void RowBlock::add(uint64_t key, float value) {
  if (key >> 32 != 0 && !wide) widen();
  if (value != 1.0f && !has_values) keep_values();
  if (wide) {
    keys64.push(key);
  } else {
    keys32.push(static_cast<uint32_t>(key));
  }
  if (has_values) values.push(value);
}

void RowBlock::end_row(float label) {
  const size_t begin = nonzeros(), end = wide ? keys64.size() : keys32.size();
  for (size_t i = begin; i < end; ++i) max_key = std::max(max_key, wide ? keys64.span()[i] : keys32.span()[i]);
  labels.push(label);
  row_ends.push(end);
}

void RowBlock::drop_open_row() {
  const size_t kept = nonzeros();
  keys32.truncate(std::min(keys32.size(), kept));
  keys64.truncate(std::min(keys64.size(), kept));
  values.truncate(std::min(values.size(), kept));
}

void RowBlock::widen() {
  std::copy_n(keys32.data(), keys32.size(), keys64.room(keys32.size()));
  keys64.took(keys32.size());
  keys32 = {};
  wide = true;
}

void RowBlock::keep_values() {
  const size_t count = wide ? keys64.size() : keys32.size();
  std::fill_n(values.room(count), count, 1.0f);
  values.took(count);
  has_values = true;
}

Status BadRows::add(Status complaint) {
  if (++count == 1) first = complaint.message();
  if (count <= most) return {};
  if (most == 0) return complaint;
  return error(Code::kInvalid, "more than {} bad rows; the first is {}", most, first);
}

std::string shown(std::string_view token) {
  constexpr size_t kMost = 40;
  std::string text(token.substr(0, kMost));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return token.size() > kMost ? text + "..." : text;
}

}  // namespace talweg
