// Member: a node's side of the cluster. It joins the coordinator, shows that it is alive, watches that the coordinator
// is, and stops the node's Io when the job ends, so that whatever the node waits for ends with the reason.
//
//   Member member(io, config);
//   CO_ASSIGN(proto::Welcome welcome, co_await member.join(identity));
//   TaskSet tasks(io);
//   member.start(tasks);
//   ... the node's work; other tasks go into `tasks` too ...
//   Status job = co_await member.leave(outcome);   // ok: exit 0
//   co_await tasks.join();
//
// Promises: after `start` the node hears of the job's end, or ends by itself `lost_after` after the coordinator fell
// silent. A connection that is lost for less than that harms nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cluster/cluster.pb.h"
#include "cluster/config.h"
#include "cluster/layout.h"
#include "io/io.h"

namespace talweg {

// What people need to find a node's process. Not an aggregate: GCC 12 destroys an aggregate that is made inside a
// co_await expression twice.
struct Identity {
  Identity(uint64_t pid, std::string host) : pid(pid), host(std::move(host)) {}
  uint64_t pid;
  std::string host;
};

class Member {
 public:
  Member(Io& io, ClusterConfig config, Peer coordinator = kCoordinatorNode)
      : io_(io), config_(config), coordinator_(coordinator) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Waits until all nodes of the job have joined; knows all their addresses then. The node's services must be open
  // before: the other nodes may call as soon as they are welcomed.
  Task<Result<proto::Welcome>> join(Identity identity);

  // Spawns the beats. They end when the node's Io stops.
  void start(TaskSet& tasks);

  // Returns when `participants` nodes have called it with this name. A name is a place in the program and can be passed
  // any number of times, always by the same nodes.
  Task<Status> barrier(std::string name, uint32_t participants) {
    return barrier(std::move(name), participants, config_.call_timeout);
  }
  Task<Status> barrier(std::string name, uint32_t participants, Duration timeout);
  // A barrier at which all learn the same: what Coordinator::decide was last given before the last one came.
  Task<Result<std::string>> decision(std::string name, uint32_t participants, Duration timeout);

  // Gives `payload` to the job's driver, exactly once if this returns ok; in the order of the calls.
  Task<Status> report(std::string payload);

  // Tells the coordinator of a failure while the node's work still waits for something: the job's end then ends that
  // wait. `leave` must follow.
  void fail(Status why);

  // Tells the coordinator that this node's part has ended, and how. Returns when the job has ended, with its outcome;
  // the node's Io is stopped then.
  Task<Status> leave(Status outcome);

  // How the job ended, once the Io has stopped; ok for an orderly end.
  Status outcome() const { return concluded_ ? outcome_ : io_.stopped(); }

 private:
  Task<> send_beats();
  Task<> hear_coordinator();
  void change_phase(proto::Phase phase, Status reason);
  void end(Status outcome);
  void coordinator_lost(double silent_s);
  Task<Status> report_in_turn(uint64_t sequence, const std::string& payload);

  Io& io_;
  const ClusterConfig config_;
  const Peer coordinator_;
  bool started_ = false;

  // What the next beat says.
  proto::Phase phase_ = proto::PHASE_RUNNING;
  Status reason_;
  uint64_t phase_version_ = 0;
  Signal phase_changed_;

  Status own_failure_;
  Status outcome_;  // while leaving, what the coordinator said
  bool concluded_ = false;

  std::map<std::string, uint64_t> barriers_passed_;
  uint64_t reports_begun_ = 0, reports_ended_ = 0;
  Signal report_ended_;
};

}  // namespace talweg
