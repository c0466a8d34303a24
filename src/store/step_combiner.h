// The blackboard of a table: the workers' contributions to a step are summed in the order of their ranks, whatever
// order they arrive in, then the optimizer runs once and the clock goes on. So the result has the same bits for every
// arrival order. Contributions that come before their turn are held, each in the body it came in; what is in turn is
// summed at once, so the work is spread over the step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/bsp_clock.h"
#include "store/table.h"

namespace talweg {

class StepCombiner {
 public:
  StepCombiner(Table& table, uint32_t workers);

  const BspClock& clock() const { return clock_; }

  // Takes a contribution that the clock wants. True if the clock went on.
  bool add(int64_t step, uint32_t rank, Contribution contribution);
  // How many are held because their turn has not come.
  size_t held() const { return held_count_; }

  // Memory of row lists that were summed, for the next ones.
  std::vector<uint32_t> spare_rows();

 private:
  std::optional<Contribution>& held(int64_t step, uint32_t rank);

  Table& table_;
  BspClock clock_;
  uint32_t next_rank_ = 0;  // whose turn it is in the clock's step
  std::vector<std::optional<Contribution>> held_;
  size_t held_count_ = 0;
  std::vector<std::vector<uint32_t>> spare_rows_;
};

}  // namespace talweg
