// For tests: a store of some shards and the workers that use it, in the simulator.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sim/world.h"
#include "store/client.h"
#include "store/server.h"

namespace talweg {

class TestStore {
 public:
  TestStore(uint32_t workers, uint32_t shards) : workers(workers), shards(shards) {}

  const uint32_t workers, shards;
  StoreParts parts;
  StoreConfig config;
  SimConfig sim;
  Faults faults;

  // What they were when the run ended.
  std::vector<StoreServerCounters> server_counters;
  std::vector<StoreClientCounters> client_counters;
  std::vector<size_t> server_bytes;

  using Work = std::function<Task<>(Io&, StoreClient&, uint32_t rank)>;

  // Runs `work` on every worker; the shards go when all have ended. Shard i is node i.
  void run(Work work) {
    working_ = workers;
    server_counters.assign(shards, {});
    client_counters.assign(workers, {});
    server_bytes.assign(shards, 0);
    World world(sim, faults);
    for (uint32_t s = 0; s < shards; ++s) world.add_node(s, [this, s](Io& io) { return server_main(io, s); });
    for (uint32_t rank = 0; rank < workers; ++rank) {
      world.add_node(shards + rank, [this, rank, &work](Io& io) { return worker_main(io, rank, work); });
    }
    const Status outcome = world.run();
    EXPECT_TRUE(outcome.ok()) << outcome.text();
  }

  StoreJob job() const { return {.id = 1, .name = "test", .workers = workers}; }
  std::vector<Peer> peers() const {
    std::vector<Peer> nodes;
    for (uint32_t s = 0; s < shards; ++s) nodes.push_back(s);
    return nodes;
  }

 private:
  Task<> server_main(Io& io, uint32_t shard) {
    StoreServer server(io, shard, shards, parts, config);
    TaskSet tasks(io);
    server.start(tasks);
    while (working_ > 0) static_cast<void>(co_await io.sleep(milliseconds(10)));
    server_counters[shard] = server.counters();
    server_bytes[shard] = server.bytes();
    io.stop(Status(Code::kCancelled, "the test is over"));
    co_await tasks.join();
  }
  Task<> worker_main(Io& io, uint32_t rank, const Work& work) {
    StoreClient client(io, peers(), job(), rank, config);
    co_await work(io, client, rank);
    client_counters[rank] = client.counters();
    --working_;
  }

  uint32_t working_ = 0;
};

// In coroutines, where ASSERT's return is not possible.
#define CO_ASSERT_OK(expression)                                 \
  do {                                                           \
    const Status assert_outcome_ = status_of(expression);        \
    EXPECT_TRUE(assert_outcome_.ok()) << assert_outcome_.text(); \
    if (!assert_outcome_.ok()) co_return;                        \
  } while (false)

}  // namespace talweg
