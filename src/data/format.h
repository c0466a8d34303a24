// What a data file can be, how it is to be read, and the parser for each kind of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/csv.h"
#include "data/row_block.h"

namespace talweg {

enum class Format {
  kAuto,    // by the file's name
  kLibSvm,  // text: data/libsvm.h
  kCsv,     // text: data/csv.h
  kTsv,
  kCriteo,  // text: data/criteo.h
  kNpy,     // NumPy arrays: data/npy.h
  kNpz,
  kIdx,  // MNIST's files: data/idx.h
};
enum class BadRowPolicy { kStop, kSkip };

struct ReadOptions {
  Format format = Format::kAuto;
  CsvOptions csv;      // `label` tells the label's column in .npy too (by number), `hash_bits` counts for criteo too
  std::string labels;  // idx and npy: the file of the labels. Empty: idx finds it by name, npy has them in a column
  BadRowPolicy bad_rows = BadRowPolicy::kStop;
  uint64_t max_bad_rows = 100;  // with kSkip: more than these are a failure
  size_t threads = 0;           // 0: one per core
  size_t piece_bytes = size_t{8} << 20;

  uint64_t most_bad_rows() const { return bad_rows == BadRowPolicy::kSkip ? max_bad_rows : 0; }
};

// .svm, .libsvm and .txt are LibSVM; .csv and .tsv tables; .criteo, .npy, .npz and .idx what they say, and so are names
// that end in idx<digit>-ubyte. A further .gz or .zst does not count.
Result<Format> format_of(const std::string& path, Format wanted);

bool is_text(Format format);

struct TextParser {
  // As parse_libsvm, which is one.
  std::function<Status(std::string_view text, size_t first_line, RowBlock* out, BadRows* bad)> parse;
  bool header = false;  // the text's first line holds no row
};
// For a text format. `first_line` is the text's; `file` is named in messages and must outlive the parser.
Result<TextParser> text_parser(Format format, const ReadOptions& options, const std::string& file,
                               std::string_view first_line);

// A byte order mark, as some programs put before text, is no part of it.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace talweg
