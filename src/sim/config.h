// The settings of a simulated cluster and the faults that happen to it, as they stand in scenario files and in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/time.h"
#include "io/mailbox.h"

namespace talweg {

struct SimNetwork {
  double bandwidth_gbps = 10;
  Duration latency = microseconds(50);
  double same_host_bandwidth_gbps = 80;
  Duration same_host_latency = microseconds(2);

  template <class Fields>
  void fields(Fields& f) {
    f("bandwidth_gbps", bandwidth_gbps, "gigabits per second of a host's network card, in each direction",
      at_least(1e-6));
    f("latency", latency, "time from one host to another, one way");
    f("same_host_bandwidth_gbps", same_host_bandwidth_gbps, "gigabits per second between two nodes of one host",
      at_least(1e-6));
    f("same_host_latency", same_host_latency, "time from one node to another of its host, one way");
  }
};

struct SimCompute {
  double gflops = 50;
  double memory_gbytes_per_s = 10;
  double straggler_sigma = 0;
  std::vector<Peer> slow_nodes;
  double slow_factor = 2;

  template <class Fields>
  void fields(Fields& f) {
    f("gflops", gflops, "billions of operations per second of a node", at_least(1e-6));
    f("memory_gbytes_per_s", memory_gbytes_per_s, "billions of bytes per second that a node's work can touch",
      at_least(1e-6));
    f("straggler_sigma", straggler_sigma, "each piece of work takes a random factor longer, exp(sigma * normal)",
      between(0, 10));
    f("slow_nodes", slow_nodes, "nodes that compute slower than the others, always", at_least(0));
    f("slow_factor", slow_factor, "how many times slower those nodes are", at_least(1e-3));
  }
};

struct SimLimits {
  Duration virtual_time = std::chrono::hours(24);
  int64_t events = 1'000'000'000;

  template <class Fields>
  void fields(Fields& f) {
    f("virtual_time", virtual_time, "a run that is not over by then ends with an error that names all waits");
    f("events", events, "so does a run of more events", at_least(1));
  }
};

struct SimConfig {
  uint64_t seed = 1;
  int64_t nodes_per_host = 1;
  Duration clock_offset{0};
  SimNetwork network;
  SimCompute compute;
  SimLimits limits;

  template <class Fields>
  void fields(Fields& f) {
    f("seed", seed, "the same seed gives the same run, event for event", at_least(0));
    f("nodes_per_host", nodes_per_host, "node k is on host k / nodes_per_host", at_least(1));
    f("clock_offset", clock_offset, "each node's clock starts at a random time up to this");
    f("network", network, "the links");
    f("compute", compute, "the processors");
    f("limits", limits, "when to give up");
  }
};

// All times of faults are virtual times since the start of the run.
struct CrashFault {
  Peer node = 0;
  Duration at{0};
  std::optional<Duration> restart_after;

  template <class Fields>
  void fields(Fields& f) {
    f("node", node, "the node that crashes", at_least(0));
    f("at", at, "when");
    f("restart_after", restart_after, "it starts again this much later, under a new incarnation");
  }
};

struct DropFault {
  Peer a = 0, b = 0;
  Duration at{0};

  template <class Fields>
  void fields(Fields& f) {
    f("a", a, "one end of the connection that is lost", at_least(0));
    f("b", b, "the other end", at_least(0));
    f("at", at, "when");
  }
};

struct PartitionFault {
  std::vector<Peer> nodes;
  Duration at{0};
  Duration lasts{0};

  template <class Fields>
  void fields(Fields& f) {
    f("nodes", nodes, "the nodes that are cut off from all others, not from each other", at_least(0));
    f("at", at, "when");
    f("lasts", lasts, "how long");
  }
};

struct SlowFault {
  Peer node = 0;
  double factor = 2;
  Duration at{0};
  Duration lasts{0};

  template <class Fields>
  void fields(Fields& f) {
    f("node", node, "the node whose work takes longer", at_least(0));
    f("factor", factor, "how many times longer", at_least(1e-3));
    f("at", at, "from when; work that has begun is not affected");
    f("lasts", lasts, "how long");
  }
};

struct RandomDrops {
  double per_second = 0;
  Duration until = std::chrono::hours(24);

  template <class Fields>
  void fields(Fields& f) {
    f("per_second", per_second, "how many connections, chosen by the seed, are lost per second", between(0, 1e6));
    f("until", until, "none is lost later");
  }
};

struct Faults {
  std::vector<CrashFault> crash;
  std::vector<DropFault> drop_connection;
  std::vector<PartitionFault> partition;
  std::vector<SlowFault> slow;
  RandomDrops random_drops;

  template <class Fields>
  void fields(Fields& f) {
    f("crash", crash, "nodes that crash");
    f("drop_connection", drop_connection, "connections that are lost");
    f("partition", partition, "nodes that cannot reach the others for a while");
    f("slow", slow, "nodes that are slow for a while");
    f("random_drops", random_drops, "connections lost at random");
  }
};

}  // namespace talweg
