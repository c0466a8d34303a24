// HostIo: Io in production. One loop on one thread moves bytes between this node and its peers, over whatever transport
// reaches them, and runs the node's coroutines. Waiting spins, then yields, then sleeps: an oversubscribed host must
// not burn the time its other nodes need.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "io/io.h"
#include "io/link.h"
#include "io/session.h"

namespace talweg {

// Threads that long pieces of work run on, shared by the nodes of a process. Thread-safe.
class ComputePool {
 public:
  explicit ComputePool(unsigned threads);
  ~ComputePool();
  void run(std::function<void()> work);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable available_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

struct HostIoOptions {
  Peer self = 0;
  std::string job;
  uint64_t seed = 0;
  // How long an idle loop spins before it yields and sleeps. Zero where a host has more nodes than cores.
  Duration spin = microseconds(0);
  ComputePool* pool = nullptr;  // none: all work runs on the node's thread
  Duration hello_timeout = limits::kHelloTimeout;
  // Connections that have not introduced themselves yet; past the bound others wait at the door.
  size_t unintroduced_links = 256;
};

class HostIo final : public Io {
 public:
  explicit HostIo(HostIoOptions options);
  ~HostIo() override;

  const std::shared_ptr<Bell>& bell() const { return bell_; }
  void add(std::unique_ptr<Transport> transport);

  // Runs `main` and all it spawns on the calling thread until `main` has ended.
  void run(Task<> main);
  // From any thread: runs `action` on the node's thread soon.
  void from_outside(std::function<void()> action);

  Time now() const override { return now_; }
  void learn(Peer peer, const std::string& address) override;
  std::string address() const override;
  void post(std::coroutine_handle<> ready) override { ready_.push_back(ready); }

 protected:
  void start_send(SendOp& op) override;
  void start_compute(ComputeOp& op) override;
  void wake_at(Time) override {}  // the loop looks at earliest_deadline() before it sleeps
  void withdraw(SendOp& op) override;
  void inbox_has_room() override { room_made_ = true; }

 private:
  struct Known {
    std::string address;
    Incarnation incarnation = 0;  // the highest met
    uint64_t connection = 0;      // the highest number it dialled us with in this incarnation
    Session* session = nullptr;   // there is at most one per pair of nodes
  };

  void turn();
  bool run_ready();
  bool pump_sessions();
  bool accept_links();
  bool takes_links() const;
  bool run_outside_actions();
  void wait_for_events();
  bool anything_to_do() const;
  void poll(int timeout_ms);
  void watch(Watched& watched);
  void unwatch(Watched& watched);

  Result<Session*> dial(Peer peer, Known& known);
  Session& open_session(std::unique_ptr<Link> link, std::optional<Peer> expected);
  void pump(Session& session, bool* progress);
  Status introduce(Session& session);
  void lose(Session& session, Status why);
  Session* parked_beside(const Session& session) const;
  bool is_dead(const Session& session) const;
  void bury_dead_sessions();

  HostIoOptions options_;
  NodeIdentity identity_;
  std::shared_ptr<Bell> bell_;
  Fd epoll_;
  Time now_;
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> dead_;
  std::map<Peer, Known> peers_;
  uint64_t connections_dialled_ = 0;
  bool room_made_ = false;
  bool needs_poll_ = false;
  unsigned turns_since_poll_ = 0;
  unsigned idle_turns_ = 0;
  Time idle_since_;

  std::atomic<bool> has_outside_actions_{false};
  std::mutex outside_mutex_;
  std::vector<std::function<void()>> outside_actions_;
};

}  // namespace talweg
