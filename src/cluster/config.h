// How patient the nodes of a job are with each other. All nodes of a job use the same values.
#pragma once

#include "base/status.h"
#include "base/time.h"

namespace talweg {

struct ClusterConfig {
  Duration heartbeat = milliseconds(200);
  Duration lost_after = seconds(3);
  Duration join_timeout = seconds(60);
  Duration call_timeout = seconds(30);

  template <class Fields>
  void fields(Fields& f) {
    f("heartbeat", heartbeat, "pause between two signs of life");
    f("lost_after", lost_after, "a node not heard of for so long is lost, and the job with it");
    f("join_timeout", join_timeout, "time for all nodes to come up");
    f("call_timeout", call_timeout, "time for one request to be answered, repeats included");
  }
  Status check() const;
};

}  // namespace talweg
