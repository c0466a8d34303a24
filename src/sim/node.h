// A simulated node: its host, its process (an Io and the tasks that run on it) while it lives, and what outlives a
// crash.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "io/io.h"
#include "sim/config.h"
#include "sim/timeline.h"

namespace talweg {

class Network;
struct Connection;
struct Host;
struct Message;
struct SimNode;

// What a simulated node shares with all others.
struct Surroundings {
  const SimConfig& config;
  const Faults& faults;
  Timeline& timeline;
  Network& network;
};

struct NodeStats {
  IoCounters io;  // of all incarnations together
  Duration compute_busy{0};
  Incarnation incarnations = 0;
};

// The driver that a simulated node's protocol code runs on. Its clock is the timeline's, moved by a constant.
class SimIo final : public Io {
 public:
  SimIo(SimNode& node, Surroundings& surroundings, Rng rng, Duration clock_offset);
  ~SimIo() override;

  Time now() const override { return surroundings_.timeline.now() + clock_offset_; }
  void learn(Peer, const std::string&) override {}
  std::string address() const override { return fmt::format("sim:{}", self_); }
  void post(std::coroutine_handle<> ready) override { surroundings_.timeline.make_ready(node_, ready); }

  // For the network. False: the inbox is full.
  bool deliver(Message& message);
  void lost(Peer peer, const Status& why) { mailbox_.peer_lost(peer, why); }
  void count_sent(const Message& message);

  // For the world.
  void on_wake();
  void on_computed();

 protected:
  void start_send(SendOp& op) override;
  void start_compute(ComputeOp& op) override;
  void wake_at(Time when) override;
  void withdraw(SendOp& op) override;
  void inbox_has_room() override;

 private:
  Duration duration_of(const Cost& cost);
  uint32_t generation() const { return static_cast<uint32_t>(incarnation_); }

  SimNode& node_;
  Surroundings& surroundings_;
  Duration clock_offset_;
  Rng stragglers_;
  Time compute_free_;
  std::map<Peer, Incarnation> met_;  // the latest life of each peer that was heard of
  // In the order in which they end. Each list holds one op, or none once the coroutine that awaited it is gone.
  std::deque<IntrusiveList<ComputeOp, Wait>> computing_;
};

struct SimNode {
  enum class State { kRunning, kCrashed, kEnded };

  bool running() const { return state == State::kRunning; }

  Peer id = 0;
  Host* host = nullptr;
  std::function<Task<>(Io&)> main;
  State state = State::kEnded;
  NodeStats past;  // of the incarnations that are over
  Duration compute_busy{0};
  Incarnation incarnation = 0;
  std::vector<Connection*> connections;
  size_t blocked_messages = 0;  // that its full inbox refused
  bool room_event_pending = false;

  std::unique_ptr<SimIo> io;
  std::unique_ptr<TaskSet> tasks;
};

// Independent random numbers for one purpose of one run: a change to how many draws one purpose makes moves no other.
enum class Purpose : uint64_t { kScheduler = 1, kStragglers, kFaults, kNode, kClock };
inline Rng stream(uint64_t seed, Purpose purpose, uint64_t node = 0, uint64_t incarnation = 0) {
  return Rng(mix64(seed), mix64(mix64(mix64(static_cast<uint64_t>(purpose)) ^ node) ^ incarnation));
}

}  // namespace talweg
