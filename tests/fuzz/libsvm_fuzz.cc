// Any bytes as LibSVM text: the parser must not read or write out of bounds, must keep its columns consistent, and must
// give the same rows whether it gets the text whole or cut at a line end, as the parallel reader cuts it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "data/libsvm.h"

namespace {

using talweg::BadRows;
using talweg::RowBlock;

// Every row's label and entries, bit for bit.
std::string rows_of(const RowBlock& block) {
  std::string out;
  const auto append = [&](auto value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out.append(bytes, sizeof(value));
  };
  uint64_t begin = 0;
  for (size_t row = 0; row < block.rows(); ++row) {
    const uint64_t end = block.row_ends.span()[row];
    CHECK(begin <= end);
    append(block.labels.span()[row]);
    append(end - begin);
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t key = block.wide ? block.keys64.span()[i] : block.keys32.span()[i];
      CHECK(key <= block.max_key);
      append(key);
      append(block.has_values ? block.values.span()[i] : 1.0f);
    }
    begin = end;
  }
  return out;
}

void check_columns(const RowBlock& block) {
  CHECK(block.row_ends.size() == block.rows());
  CHECK((block.wide ? block.keys64.size() : block.keys32.size()) == block.nonzeros());
  CHECK(block.values.size() == (block.has_values ? block.nonzeros() : 0));
}

std::string parse(std::string_view text, BadRows* bad) {
  // A copy of exactly this size, so that a read past the end is caught.
  const std::string exact(text);
  RowBlock block;
  CHECK(talweg::parse_libsvm(exact, 1, "fuzz", &block, bad).ok());
  check_columns(block);
  return rows_of(block);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  BadRows whole, parts, none;
  whole.most = parts.most = ~uint64_t{0};
  const std::string rows = parse(text, &whole);

  const size_t cut = text.find('\n', size / 2);
  const size_t first = cut == text.npos ? size : cut + 1;
  CHECK(parse(text.substr(0, first), &parts) + parse(text.substr(first), &parts) == rows);
  CHECK(whole.count == parts.count);

  RowBlock block;
  const bool ok = talweg::parse_libsvm(text, 1, "fuzz", &block, &none).ok();
  CHECK(ok == (whole.count == 0));
  check_columns(block);
  return 0;
}
