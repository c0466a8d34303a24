// Decompressed text in pieces that end where lines do. Holds one piece and the beginning of the next line, never the
// whole text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/compressed.h"

namespace talweg {

// A line of text that comes in pieces may not be longer: it has to be held in memory until its end is found.
constexpr size_t kMaxLineBytes = size_t{16} << 20;

struct TextPiece {
  std::string text;  // whole lines; the file's last may lack its end
  size_t first_line = 1;
};

// Not thread-safe.
class LineSource {
 public:
  // `file` is named in messages.
  LineSource(std::unique_ptr<Decompressor> from, std::string file, size_t piece_bytes);

  // Replaces `out` with the next pieces, at most `count`; none at the end.
  Status take(size_t count, std::vector<TextPiece>* out);

 private:
  // Empty at the end.
  Result<std::string> next();

  const std::unique_ptr<Decompressor> from_;
  const std::string file_;
  const size_t piece_bytes_;
  std::string rest_;  // read, but beyond the last line end
  size_t line_ = 1;
  bool at_end_ = false;
};

}  // namespace talweg
