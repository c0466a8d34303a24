#include "data/pieces.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace talweg {

void Pieces::parse(size_t i) {
  // Pieces after a failed one cannot change the outcome; those before it can.
  if (i >= first_failed_) return;
  bad_[i].most = max_bad_rows_;
  if (parse_(i, false, &blocks_[i], &bad_[i]).ok()) return;
  size_t first = first_failed_;
  while (i < first && !first_failed_.compare_exchange_weak(first, i)) {
  }
}

Status Pieces::finish(std::vector<RowBlock>* blocks, BadRows* bad) {
  const bool failed = first_failed_ < blocks_.size();
  if (failed && max_bad_rows_ == 0) return failure_of(first_failed_);
  uint64_t count = 0;
  for (const BadRows& piece : bad_) count += piece.count;
  if (bad->count == 0 && count > 0) bad->first = first_complaint();
  bad->count += count;
  if (failed || bad->count > max_bad_rows_) {
    return error(Code::kInvalid, "more than {} bad rows; the first is {}", max_bad_rows_, bad->first);
  }
  blocks->insert(blocks->end(), std::make_move_iterator(blocks_.begin()), std::make_move_iterator(blocks_.end()));
  return {};
}

Status Pieces::failure_of(size_t failed) const {
  RowBlock ignored;
  BadRows none;
  return parse_(failed, true, &ignored, &none);
}

std::string Pieces::first_complaint() const {
  const auto first = std::find_if(bad_.begin(), bad_.end(), [](const BadRows& bad) { return bad.count > 0; });
  RowBlock ignored;
  BadRows all;
  all.most = std::numeric_limits<uint64_t>::max();
  const Status skipped = parse_(static_cast<size_t>(first - bad_.begin()), true, &ignored, &all);
  CHECK(skipped.ok());
  return all.first;
}

}  // namespace talweg
