// Reads a data file into rows, on several threads. Text is mapped and cut into pieces at line ends; compressed text is
// decompressed beside the parsing, a few pieces at a time, and never held whole; arrays are cut between rows. The
// result and the error do not depend on the number of threads: when rows are bad, the first in the file is the one
// reported.
#pragma once

#include <string>

#include "base/status.h"
#include "data/file.h"
#include "data/format.h"
#include "data/sections.h"

namespace talweg {

// Text may be compressed by gzip or Zstandard, and so may IDX files: told by their first bytes.
Result<ParsedRows> read_rows(const MappedFile& file, const ReadOptions& options);

// The file that holds the labels beside `path`; empty when there is none.
Result<std::string> labels_path(const std::string& path, Format format, const ReadOptions& options);

}  // namespace talweg
