// What the benchmarks share: a clock, a way out, and the samples of a figure as median and spread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/status.h"

namespace talweg::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A benchmark whose payload is wrong measured nothing, so it ends here.
inline void require(bool condition, const std::string& what) {
  if (condition) return;
  fmt::print(stderr, "talweg bench: {}\n", what);
  std::exit(1);
}
inline void require(const Status& status) { require(status.ok(), status.text()); }

// One sample per round.
class Figure {
 public:
  void add(double sample) { samples_.insert(std::upper_bound(samples_.begin(), samples_.end(), sample), sample); }
  double median() const { return samples_[samples_.size() / 2]; }
  double least() const { return samples_.front(); }
  double most() const { return samples_.back(); }
  std::string text(int digits = 2) const {
    return fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", median(), digits, least(), digits, most(), digits);
  }

 private:
  std::vector<double> samples_;  // in rising order
};

}  // namespace talweg::bench
