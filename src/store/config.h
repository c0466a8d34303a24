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
  uint64_t key_cache = uint64_t{32} << 20;
  bool pack_keys = false;
  uint64_t max_bytes = 0;

  template <class Fields>
  void fields(Fields& f) {
    f("clock_timeout", clock_timeout, "how long a pull waits at a server for the pushes of the step before");
    f("call_timeout", call_timeout, "how long a worker waits for a server's answer");
    f("key_cache", key_cache, "bytes of key lists that a shard remembers for each table: they travel as a hash then",
      at_least(0));
    f("pack_keys", pack_keys, "sort keys and send their differences in few bits: fewer bytes, more work");
    f("max_bytes", max_bytes, "of all jobs: a shard answers that it is full rather than hold more; 0: no limit",
      at_least(0));
  }
};

// Of one table, or the sum over several.
struct StoreServerCounters {
  uint64_t pulls = 0, pushes = 0;
  uint64_t keys_pulled = 0, keys_pushed = 0;   // dense: values
  uint64_t keys_received = 0;                  // that travelled as keys; the others were known already
  uint64_t lists_known = 0, lists_needed = 0;  // key lists named by their hash: that were here, that were not
  uint64_t pushes_repeated = 0;                // acknowledged again, not applied again
  uint64_t pushes_held = 0;                    // came before their turn
  uint64_t zeroed = 0;                         // gradients that were not finite
  uint64_t refused = 0;
  Duration clock_wait{};  // of all pulls together

  StoreServerCounters& operator+=(const StoreServerCounters& other);
};

struct StoreClientCounters {
  uint64_t pulls = 0, pushes = 0;               // batches, over all shards
  uint64_t keys_pulled = 0, keys_pushed = 0;    // dense: values
  uint64_t lists_known = 0;                     // key lists that went as a hash
  uint64_t lists_resent = 0;                    // of those, the ones that a shard did not have any more
  uint64_t late = 0;                            // pushes, one for each shard, whose step was over without them
  uint64_t bytes_pushed = 0, bytes_pulled = 0;  // keys and values, there and back; without frames
  Duration pull_wait{}, push_wait{};
};

}  // namespace talweg
