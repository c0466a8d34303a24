// Tables as text, comma- or tab-separated: one column is the label, every other a number or a category. Fields may be
// quoted ("" is a quote within), but none may span lines. An empty field or a zero is absent from the row. Errors name
// file, line and column.
//
// When all features are numbers, a feature's key is its column's position among the features, from 0. As soon as one
// column is categorical, all keys are hashes below 2^hash_bits (data/feature_hash.h, columns numbered from 1 as in the
// file): a category's is that of its text, with value 1; a number's that of the empty text, with the number as value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/feature_hash.h"
#include "data/row_block.h"

namespace talweg {

struct CsvOptions {
  char delimiter = 0;       // 0: a comma in .csv, a tab in .tsv
  bool header = true;       // the first line names the columns
  std::string label = "1";  // the label's column: a name, or a number counted from 1
  // Columns of words instead of numbers, told like the label's; {"all"}: every one but the label's.
  std::vector<std::string> categorical;
  unsigned hash_bits = 22;  // hashed keys are below 2^hash_bits; from 1 to 32
};

// What every row must look like.
struct CsvLayout {
  enum class Kind { kLabel, kNumber, kCategory };
  struct Column {
    std::string name;  // as a message calls it: 'age', or 3 when there is no header
    Kind kind = Kind::kNumber;
    uint64_t key = 0;   // of a number
    uint64_t seed = 0;  // of a category's keys
  };
  char delimiter = ',';
  std::vector<Column> columns;
  FeatureHash hash;
};

// Learns the layout from the first line of the file.
Result<CsvLayout> csv_layout(std::string_view first_line, const CsvOptions& options, const std::string& file);

// As parse_libsvm. `text` must not hold the header.
Status parse_csv(std::string_view text, size_t first_line, const std::string& file, const CsvLayout& layout,
                 RowBlock* out, BadRows* bad = nullptr);

}  // namespace talweg
