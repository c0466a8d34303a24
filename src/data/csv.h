// Tables as text, comma- or tab-separated: one column is the label, every other a number. A feature's key is its
// column's position among the features, from 0; an empty field or a zero is absent from the row. Fields may be quoted
// ("" is a quote within), but none may span lines. Errors name file, line and column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/row_block.h"

namespace talweg {

struct CsvOptions {
  char delimiter = 0;       // 0: a comma in .csv, a tab in .tsv
  bool header = true;       // the first line names the columns
  std::string label = "1";  // the label's column: a name, or a number counted from 1
};

// What every row must look like.
struct CsvLayout {
  char delimiter = ',';
  std::vector<std::string> columns;  // as a message calls them: 'age', or 3 when there is no header
  size_t label = 0;
};

// Learns the layout from the first line of the file.
Result<CsvLayout> csv_layout(std::string_view first_line, const CsvOptions& options, const std::string& file);

// As parse_libsvm. `text` must not hold the header.
Status parse_csv(std::string_view text, size_t first_line, const std::string& file, const CsvLayout& layout,
                 RowBlock* out, BadRows* bad = nullptr);

}  // namespace talweg
