// A node's time. In production it is the monotonic clock; in the simulator it is virtual. Both start near zero, so a
// Time means nothing on another node.
#pragma once

#include <chrono>

namespace talweg {

using Duration = std::chrono::nanoseconds;

struct NodeClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<NodeClock>;
  static constexpr bool is_steady = true;
};
using Time = NodeClock::time_point;

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
constexpr Duration from_seconds(double s) { return Duration(static_cast<Duration::rep>(s * 1e9)); }

}  // namespace talweg
