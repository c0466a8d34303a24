// Silence: how long nothing was heard of a peer, and whether that means it is lost. Time in which this node itself did
// not listen, because its thread was held up or the machine slept, is not held against the peer.
#pragma once

#include "base/time.h"
#include "cluster/config.h"

namespace talweg {

class Silence {
 public:
  Silence(const ClusterConfig& config, Time now) : config_(config) { heard(now); }

  void heard(Time now) {
    heard_at_ = now;
    bound_ = now + config_.lost_after;
    extended_ = false;
  }
  // When to look next.
  Time bound() const { return bound_; }

  // Woken long after the bound, this node was the one that slept, and the peer's beats may just not have been read yet:
  // the peer gets one beat more, once.
  bool is_loss(Time now) {
    if (now < bound_) return false;
    if (extended_ || now - bound_ < config_.heartbeat) return true;
    extended_ = true;
    bound_ = now + config_.heartbeat;
    return false;
  }
  double seconds(Time now) const { return to_seconds(now - heard_at_); }

 private:
  ClusterConfig config_;
  Time heard_at_{};
  Time bound_{};
  bool extended_ = false;
};

}  // namespace talweg
