// A file's pieces, parsed on several threads. The outcome does not depend on their number: when rows are bad, the first
// in the file is the one told.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/row_block.h"

namespace talweg {

class Pieces {
 public:
  // Parses piece `i`. Only when `exact` must messages name the right lines: to know them may cost a pass over the file.
  using Parse = std::function<Status(size_t i, bool exact, RowBlock* out, BadRows* bad)>;

  Pieces(size_t count, uint64_t max_bad_rows, Parse parse)
      : max_bad_rows_(max_bad_rows), parse_(std::move(parse)), blocks_(count), bad_(count), first_failed_(count) {}

  // Once for each piece, in rising order, on any thread.
  void parse(size_t i);
  // When all are parsed: appends their blocks and counts their bad rows, on top of those of earlier pieces of the file.
  Status finish(std::vector<RowBlock>* blocks, BadRows* bad);

 private:
  Status failure_of(size_t failed) const;
  std::string first_complaint() const;

  const uint64_t max_bad_rows_;
  const Parse parse_;
  std::vector<RowBlock> blocks_;
  std::vector<BadRows> bad_;
  std::atomic<size_t> first_failed_;
};

}  // namespace talweg
