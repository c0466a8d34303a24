// Any bytes as a table or a Criteo log: the parsers must not read or write out of bounds, must keep their columns
// consistent, and must give the same rows whether they get the text whole or cut at a line end, as the parallel reader
// cuts it. The first byte chooses the format and its options.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "data/criteo.h"
#include "data/csv.h"

namespace {

using talweg::BadRows;
using talweg::RowBlock;
using talweg::Status;

constexpr unsigned kBits = 20;

// Every row's label and entries, bit for bit.
std::string rows_of(const RowBlock& block) {
  std::string out;
  const auto append = [&](auto value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out.append(bytes, sizeof(value));
  };
  CHECK(block.row_ends.size() == block.rows() && !block.wide);
  CHECK(block.keys32.size() == block.nonzeros());
  CHECK(block.values.size() == (block.has_values ? block.nonzeros() : 0));
  uint64_t begin = 0;
  for (size_t row = 0; row < block.rows(); ++row) {
    const uint64_t end = block.row_ends.span()[row];
    CHECK(begin <= end);
    append(block.labels.span()[row]);
    append(end - begin);
    for (; begin < end; ++begin) {
      CHECK(block.keys32.span()[begin] <= block.max_key);
      append(block.keys32.span()[begin]);
      append(block.has_values ? block.values.span()[begin] : 1.0f);
    }
  }
  return out;
}

template <class Parse>
void check(std::string_view text, Parse parse_text) {
  const auto parse = [&](std::string_view part, BadRows* bad) {
    // A copy of exactly this size, so that a read past the end is caught.
    const std::vector<char> exact(part.begin(), part.end());
    RowBlock block;
    CHECK(parse_text(std::string_view(exact.data(), exact.size()), &block, bad).ok());
    return rows_of(block);
  };
  BadRows whole, parts, none;
  whole.most = parts.most = ~uint64_t{0};
  const std::string rows = parse(text, &whole);
  const size_t cut = text.find('\n', text.size() / 2);
  const size_t first = cut == text.npos ? text.size() : cut + 1;
  CHECK(parse(text.substr(0, first), &parts) + parse(text.substr(first), &parts) == rows);
  CHECK(whole.count == parts.count);
  RowBlock block;
  CHECK(parse_text(text, &block, &none).ok() == (whole.count == 0));
  rows_of(block);
}

void check_csv(std::string_view text, unsigned choice) {
  talweg::CsvOptions options;
  options.delimiter = (choice & 2) != 0 ? ',' : '\t';
  options.header = (choice & 4) != 0;
  options.hash_bits = kBits;
  if ((choice & 8) != 0) options.categorical = {"all"};
  if ((choice & 16) != 0) options.categorical = {"2"};
  const size_t line_end = std::min(text.find('\n'), text.size());
  const auto layout = talweg::csv_layout(text.substr(0, line_end), options, "fuzz");
  if (!layout.ok()) return;
  check(text, [&](std::string_view part, RowBlock* out, BadRows* bad) {
    return talweg::parse_csv(part, 1, "fuzz", *layout, out, bad);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {
    check_csv(text, data[0]);
    return 0;
  }
  static const talweg::CriteoLayout layout(kBits);
  check(text, [](std::string_view part, RowBlock* out, BadRows* bad) {
    return talweg::parse_criteo(part, 1, "fuzz", layout, out, bad);
  });
  return 0;
}
