// Coordinator: the node that gathers the others, watches them, and decides how the job ended.
//
//   Coordinator coordinator(io, layout, config, job_text);   // before the node can be reached
//   CO_TRY(co_await coordinator.gather());
//   Status outcome = co_await coordinator.run(job(...));
//
// Promises: a node that falls silent is found lost after `lost_after`; the first failure ends the job; every node that
// can be reached is told to stop and why; the reason names the cause where one failure led to others.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/beat.h"
#include "cluster/cluster.pb.h"
#include "cluster/config.h"
#include "cluster/layout.h"
#include "cluster/silence.h"
#include "io/io.h"

namespace talweg {

// Barriers are places in a program, of which there are few; a node cannot make the coordinator remember more.
constexpr size_t kMaxBarrierNames = 1024;

class Coordinator {
 public:
  using OnReport = std::function<void(Peer, const std::string& payload)>;

  // Opens its services. `on_report` gets what the nodes report, in order of arrival, each once.
  Coordinator(Io& io, Layout layout, ClusterConfig config, std::string job_text, OnReport on_report = {});
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Waits until every node of the layout has joined, then welcomes all and begins to watch them. A failure names the
  // nodes that did not come, has been told to those that did, and has stopped this node's Io.
  Task<Status> gather();

  // Runs `job`, the coordinator's own part, while watching the nodes. Ends when the job does or at the first failure;
  // tells all nodes, waits until each has left or is lost, stops this node's Io and returns how the job ended. What
  // `job` still waits for then ends with the reason.
  Task<Status> run(Task<Status> job);

  // For `job`: returns when every node of this role has said, by Member::leave, that its part has ended well.
  Task<Status> finished(Role role);

  // What the answers to barriers that are passed from now on say.
  void decide(std::string note) { note_ = std::move(note); }

  // What is still to be said to others when the nodes have left: runs before the Io stops, and must end by itself. Set
  // before `gather`.
  using AtEnd = std::function<Task<>(Status verdict)>;
  void at_end(AtEnd run) { at_end_ = std::move(run); }

  // Where a node that has joined can be reached.
  const std::string& address_of(Peer peer) const { return at(peer).address; }

  // For those who see what messages do not tell. The first failure is the job's.
  void fail(Status why);
  // The node's process ended, and how. Nobody waits for its last words then.
  void exited(Peer node, Status how);

 private:
  struct Node {
    bool joined = false;
    Incarnation incarnation = 0;
    std::string address;
    std::optional<Request> asking;   // its latest Join, until it is answered
    std::optional<Silence> silence;  // since all have joined
    bool done = false;               // its part has ended
    bool gone = false;               // it has left, or is lost
    uint64_t reports_seen = 0;
  };
  struct BarrierState {
    uint64_t round = 0;
    uint32_t participants = 0;
    std::map<Peer, Request> waiting;
    std::string note;  // of the round that was passed last
  };
  struct Suspicion {
    Status failure;
    Time until;
  };

  Task<> serve_in_order(Service service, void (Coordinator::*handle)(Request));
  void on_join(Request request);
  Status admit(const Request& request);
  Task<> answer_join(Request request, Status failure);
  Task<> answer_all_joins(Status failure);
  std::vector<Peer> missing() const;

  void on_barrier(Request request);
  Result<BarrierState*> find_barrier(Peer from, const proto::Barrier& barrier);
  void on_report(Request request);
  Task<> acknowledge(Request request, Status failure, std::string note);

  Task<> send_beats(Peer peer);
  Task<> watch(Peer peer);
  void heard(Peer peer, const HeardBeat& beat);
  void lost(Peer peer);

  Task<> run_job(Task<Status> job);
  Task<> await_verdict();
  Task<> stop_nodes();
  Task<> close();
  void suspect(Status failure);
  void settle(Status verdict);
  bool all_gone() const;
  Node& at(Peer peer) { return nodes_[layout_.index_of(peer)]; }
  const Node& at(Peer peer) const { return nodes_[layout_.index_of(peer)]; }
  bool has_joined(Peer peer) const { return layout_.contains(peer) && at(peer).joined; }
  std::vector<Peer> peers() const;

  Io& io_;
  const Layout layout_;
  const ClusterConfig config_;
  const std::string job_text_;
  const OnReport on_report_;

  std::vector<Node> nodes_;  // by their place in the layout; the coordinator's own stays unused
  std::map<std::string, BarrierState> barriers_;
  std::string note_;
  AtEnd at_end_;
  bool gathered_ = false;
  bool stopping_ = false;

  // A failure that may be the echo of one not found yet, and the end of the time in which that one must show.
  std::optional<Suspicion> suspicion_;
  std::optional<Status> verdict_;
  Signal changed_;        // anything that gather, run or finished wait for
  Signal phase_changed_;  // beats must go at once

  TaskSet tasks_;
};

}  // namespace talweg
