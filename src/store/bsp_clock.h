// The clock of a table under bulk-synchronous parallelism (Valiant, "A bridging model for parallel computation", 1990):
// step t is over when every worker has contributed to it, and only then may step t + 1 be read.
// What other clocks would answer differently is asked here, and nothing else is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "store/limits.h"

namespace talweg {

enum class Arrival {
  kWanted,
  kRepeated,  // this worker's contribution to this step is here already, or the step is over
  kTooEarly,  // more than limits::kStepsAhead ahead of the clock
};

class BspClock {
 public:
  explicit BspClock(uint32_t workers) : workers_(workers), arrived_(kSteps * workers) { CHECK(workers >= 1); }

  uint32_t workers() const { return workers_; }
  // The step that is being gathered; all before it are over.
  int64_t step() const { return step_; }
  bool may_pull(int64_t step) const { return step <= step_; }

  Arrival judge(int64_t step, uint32_t rank) const {
    if (step < step_) return Arrival::kRepeated;
    if (step > step_ + limits::kStepsAhead) return Arrival::kTooEarly;
    return arrived_[at(step, rank)] ? Arrival::kRepeated : Arrival::kWanted;
  }
  void arrive(int64_t step, uint32_t rank) {
    CHECK(judge(step, rank) == Arrival::kWanted);
    arrived_[at(step, rank)] = true;
  }

  bool complete() const { return missing().empty(); }
  // The workers the step waits for.
  std::vector<uint32_t> missing() const {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      if (!arrived_[at(step_, rank)]) ranks.push_back(rank);
    }
    return ranks;
  }
  void advance() {
    CHECK(complete());
    for (uint32_t rank = 0; rank < workers_; ++rank) arrived_[at(step_, rank)] = false;
    ++step_;
  }

  // Whether the values stay as they are until this worker pushes this step: then they may be sent from where they are.
  bool rests_until_push(int64_t step, uint32_t rank) const { return step == step_ && !arrived_[at(step, rank)]; }

 private:
  static constexpr size_t kSteps = limits::kStepsAhead + 1;
  size_t at(int64_t step, uint32_t rank) const { return static_cast<size_t>(step) % kSteps * workers_ + rank; }

  uint32_t workers_;
  int64_t step_ = 0;
  std::vector<bool> arrived_;
};

}  // namespace talweg
