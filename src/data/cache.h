// Opens a data set. The first time, the file is parsed and stored in a binary cache; from then on the cache is mapped,
// which takes no time and shares its pages between all processes of a host. The byte layout is in docs/formats.md.
//
// A cache is used only if it is whole and was made from this very state of the source with these options; otherwise it
// is made anew. It appears under its name complete and on disk, or not at all. Of several processes that open one file
// at once, one parses and the others wait for it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "data/dataset.h"
#include "data/reader.h"

namespace talweg {

struct DatasetOptions {
  std::string path;
  ReadOptions read;
  bool cache = true;          // false: parse into memory each time
  std::string cache_dir;      // empty: beside the source
  bool verify_cache = false;  // check keys and values of a large cache too, which reads all of it
};

Result<Dataset> open_dataset(const DatasetOptions& options);

// Where the cache of a source is: `<source>.talweg` beside it, or in `cache_dir` under a name that also depends on the
// source's folder.
std::string cache_path(const DatasetOptions& options);

}  // namespace talweg
