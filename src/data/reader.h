// Reads a text file into rows: mapped, cut into pieces at line ends, parsed on several threads. The result and the
// error do not depend on the number of threads: when rows are bad, the first in the file is the one reported.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "data/csv.h"
#include "data/file.h"
#include "data/sections.h"

namespace talweg {

enum class Format { kAuto, kLibSvm, kCsv, kTsv };  // kAuto goes by the file's extension
enum class BadRowPolicy { kStop, kSkip };

struct ReadOptions {
  Format format = Format::kAuto;
  CsvOptions csv;
  BadRowPolicy bad_rows = BadRowPolicy::kStop;
  uint64_t max_bad_rows = 100;  // with kSkip: more than these are a failure
  size_t threads = 0;           // 0: one per core
  size_t piece_bytes = size_t{8} << 20;
};

// .svm, .libsvm and .txt are LibSVM; .csv and .tsv are tables.
Result<Format> format_of(const std::string& path, Format wanted);

Result<ParsedRows> read_rows(const MappedFile& file, const ReadOptions& options);

}  // namespace talweg
