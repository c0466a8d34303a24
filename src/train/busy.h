// How long at least one of several overlapping pieces of work was under way: a worker computes, and makes its next
// batch beside that. What is left of the time it waited.
#pragma once

#include "base/time.h"
#include "io/io.h"

namespace talweg {

class BusyMeter {
 public:
  void begin(Time now) {
    if (active_++ == 0) since_ = now;
  }
  void end(Time now) {
    if (--active_ == 0) busy_ += now - since_;
  }
  Duration busy(Time now) const { return active_ > 0 ? busy_ + (now - since_) : busy_; }

 private:
  int active_ = 0;
  Time since_{};
  Duration busy_{};
};

inline Task<> compute_busy(Io& io, BusyMeter& busy, Cost cost, std::function<void()> work) {
  busy.begin(io.now());
  co_await io.compute(cost, std::move(work));
  busy.end(io.now());
}

}  // namespace talweg
