#include "store/step_combiner.h"

namespace talweg {

StepCombiner::StepCombiner(Table& table, uint32_t workers)
    : table_(table), clock_(workers), held_((limits::kStepsAhead + 1) * workers) {}

std::optional<Contribution>& StepCombiner::held(int64_t step, uint32_t rank) {
  return held_[static_cast<size_t>(step) % (limits::kStepsAhead + 1) * clock_.workers() + rank];
}

bool StepCombiner::add(int64_t step, uint32_t rank, Contribution contribution) {
  const int64_t before = clock_.step();
  clock_.arrive(step, rank);
  held(step, rank) = std::move(contribution);
  ++held_count_;
  while (auto& next = held(clock_.step(), next_rank_)) {
    table_.accumulate(*next);
    if (spare_rows_.size() < clock_.workers()) spare_rows_.push_back(std::move(next->rows));
    next.reset();
    --held_count_;
    if (++next_rank_ < clock_.workers()) continue;
    table_.apply(1);
    clock_.advance();
    next_rank_ = 0;
  }
  return clock_.step() != before;
}

std::vector<uint32_t> StepCombiner::spare_rows() {
  if (spare_rows_.empty()) return {};
  std::vector<uint32_t> rows = std::move(spare_rows_.back());
  spare_rows_.pop_back();
  return rows;
}

}  // namespace talweg
