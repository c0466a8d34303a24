// World: a whole cluster in one thread, on virtual time. Every node runs the protocol code that production runs, on
// SimIo instead of HostIo. A run is a function of its settings and its seed: the same gives the same trace hash, so a
// failure that was seen once can be seen again.
//
//   World world(config, faults);
//   world.add_node(0, [&](Io& io) { return coordinator(io); });
//   world.add_node(1, [&](Io& io) { return worker(io); });
//   Status outcome = world.run();
//
// A node's main is its process: when it ends, the node is gone, what it sent still arrives, and its peers then lose
// their connections to it. A crash destroys all tasks of the node where they stand; a restart calls main again, under
// the next incarnation. Whatever mains refer to must outlive the World.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "base/time.h"
#include "io/io.h"
#include "sim/config.h"
#include "sim/node.h"

namespace talweg {

class World {
 public:
  using Main = std::function<Task<>(Io&)>;

  World(SimConfig config, Faults faults);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Before `run`. `main` stays where it is for the whole run, so a coroutine lambda may have captures.
  void add_node(Peer id, Main main);

  // Until the main of every node has ended. A run in which nothing can happen any more, or that reaches a limit, fails
  // with an error that names every wait of every node.
  Status run();

  Time now() const;  // virtual; starts at zero
  uint64_t trace_hash() const;
  int64_t events() const;
  NodeStats stats(Peer id) const;

 private:
  Status check_faults() const;
  void schedule_faults();
  void schedule_random_drop();
  void start(SimNode& node);
  void end(SimNode& node, SimNode::State state);
  void run_ready();
  void on_event(const Event& event);
  void on_node_event(const Event& event);
  void on_fault(const Event& event);
  Status stuck(std::string why) const;

  const SimConfig config_;
  Faults faults_;
  Timeline timeline_;
  Rng fault_rng_;
  std::unique_ptr<Network> network_;
  Surroundings surroundings_;
  size_t unfinished_ = 0;                        // nodes that run or will
  std::vector<std::unique_ptr<SimNode>> nodes_;  // last: their tasks refer to all of the above
};

}  // namespace talweg
