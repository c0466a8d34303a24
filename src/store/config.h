// The store's settings and meters.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "base/time.h"

namespace talweg {

struct StoreConfig {
  // The server's wait ends first, so that the caller hears which workers a step waited for.
  Duration clock_timeout = seconds(30);
  Duration call_timeout = seconds(40);

  template <class Fields>
  void fields(Fields& f) {
    f("clock_timeout", clock_timeout, "how long a pull waits at a server for the pushes of the step before");
    f("call_timeout", call_timeout, "how long a worker waits for a server's answer");
  }
};

struct StoreServerCounters {
  uint64_t pulls = 0, pushes = 0;
  uint64_t keys_pulled = 0, keys_pushed = 0;  // dense: values
  uint64_t keys_received = 0;                 // that travelled as keys; the others were known already
  uint64_t pushes_repeated = 0;               // acknowledged again, not applied again
  uint64_t pushes_held = 0;                   // came before their turn
  uint64_t refused = 0;
  Duration clock_wait{};  // of all pulls together
};

struct StoreClientCounters {
  uint64_t pulls = 0, pushes = 0;             // batches, over all shards
  uint64_t keys_pulled = 0, keys_pushed = 0;  // dense: values
  uint64_t key_lists_resent = 0;              // a shard did not have them any more
  Duration pull_wait{}, push_wait{};
};

}  // namespace talweg
