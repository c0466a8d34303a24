// Rows that are still coming, for learning as they do: from standard input, a pipe, or a file that others append to.
// Text formats only, not compressed. A line is taken when its end has come; until then it is kept, up to kMaxLineBytes.
//
// `read` may wait, for a bounded time: call it where that does no harm (Io::compute). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "data/format.h"
#include "data/row_block.h"

namespace talweg {

struct StreamRead {
  size_t rows = 0;              // added by this call
  bool at_end_for_now = false;  // nothing more came within the time
  bool ended = false;           // nothing more will come; a file that may grow never ends by itself
};

class RowStream {
 public:
  static constexpr int kMaxWaitMs = 100;
  // What one call takes from the stream at most, so that it ends even if no line of it holds a row.
  static constexpr size_t kMaxBytesPerRead = size_t{8} << 20;

  // "-" is standard input, for which the format must be set. Bad rows are counted over the stream's whole life; lines
  // are numbered from its start.
  static Result<std::unique_ptr<RowStream>> open(const std::string& path, const ReadOptions& options);
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // Appends up to `max_rows` rows to `out`. Waits only if no whole line is there, for `timeout_ms` (kMaxWaitMs) at
  // most. After a failure the stream stays failed; `out` then holds the rows before the bad one.
  Result<StreamRead> read(size_t max_rows, int timeout_ms, RowBlock* out);
  // For a file that grew, once the caller takes it for complete: from now on its end is the stream's, and a last line
  // without an end counts.
  void take_as_complete() { may_grow_ = false; }

  uint64_t bad_rows() const { return bad_.count; }

 private:
  RowStream(Fd fd, std::string name, Format format, const ReadOptions& options);

  Status read_rows(size_t max_rows, int timeout_ms, RowBlock* out, StreamRead* outcome);
  // Parses lines that are there; how many rows came of it.
  Result<size_t> parse_lines(size_t max_rows, RowBlock* out);
  // Once the first line is there: finds out how to read it.
  Status begin();
  // Of the first lines that are there, at most `count`; fewer bytes than are there unless the stream has ended.
  std::string_view lines_there(size_t count) const;
  // Reads what has come, waiting for it if need be; the number of bytes.
  Result<size_t> receive(int timeout_ms);
  Result<bool> wait_for_input(int timeout_ms);
  Result<size_t> read_some();
  Status check_not_cut() const;
  std::string_view buffered() const { return std::string_view(buffer_).substr(begin_); }

  const Fd fd_;
  const std::string name_;
  const Format format_;
  const ReadOptions options_;
  bool is_file_ = false;
  bool may_grow_ = false;
  bool input_ended_ = false;
  uint64_t offset_ = 0;  // bytes received

  std::string buffer_;
  size_t begin_ = 0;  // of what is not parsed yet
  size_t line_ = 1;
  std::optional<TextParser> parser_;
  BadRows bad_;
  Status failure_;
};

}  // namespace talweg
