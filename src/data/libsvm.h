// LibSVM text: `label index:value index:value ...`, one row a line.
//
// An index alone has the value 1; `#` starts a comment; `qid:N` is accepted and ignored; blank lines are skipped; lines
// may end in CRLF and the last need not end at all. Labels are kept as written. Indices are any whole number below
// 2^64, in any order; numbers must be finite. Bytes are never trusted: a line that is anything else is an error that
// names the file, the line, the token and what was expected.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/row_block.h"

namespace talweg {

// Appends the rows of `text`, whose first line is line `first_line` of `file`, to `out`. On failure `out` holds the
// rows before the bad one. Without `bad` the first bad row is a failure.
Status parse_libsvm(std::string_view text, size_t first_line, const std::string& file, RowBlock* out,
                    BadRows* bad = nullptr);

}  // namespace talweg
