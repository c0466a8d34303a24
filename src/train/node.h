// The parts of a job, as coroutines over Io: the coordinator's, and the one of every other node. How they are started
// (threads, processes, in the simulator) is train/launch.h and train/simulate.h; they cannot tell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/coordinator.h"
#include "cluster/lease.h"
#include "cluster/member.h"
#include "store/store.pb.h"
#include "train/feed.h"
#include "train/job.h"
#include "train/progress.h"
#include "train/trained_model.h"

namespace talweg {

struct JobResult {
  Status status;
  TrainedModel model;
  std::vector<EpochResult> epochs;
  Progress progress;
  bool reached_target = false;
  std::vector<proto::WorkerReport> workers;  // by rank
  std::vector<proto::StatsReply> shards;     // by rank
};

// Called on the coordinator's thread.
struct JobEvents {
  std::function<void(const Progress&)> on_progress = [](const Progress&) {};
  std::function<void(const Progress&)> on_epoch = [](const Progress&) {};
};

class CoordinatorNode {
 public:
  // Opens the coordinator's services: make it before the node can be reached.
  CoordinatorNode(Io& io, const JobConfig& job, const JobParts& parts, const TrainingData& data, JobEvents events);

  // Gathers the nodes, waits for the workers, fetches the model, ends the job.
  Task<> run(JobResult* result);
  Coordinator& coordinator() { return coordinator_; }
  // Somebody wants the job to end. A stream ends with the rows that have come, once; all else fails with `why`.
  void interrupt(Status why);

 private:
  Task<Status> job_part(JobResult* result);
  Task<> feed_workers();
  Task<> keep_lease();
  Task<> release_lease();
  void on_report(Peer from, const std::string& payload);

  Io& io_;
  const JobConfig& job_;
  const JobParts& parts_;
  JobEvents events_;
  bool reached_target_ = false;
  ProgressBoard board_;
  std::optional<RowFeed> feed_;
  bool interrupted_ = false;
  Coordinator coordinator_;
  std::optional<LeaseKeeper> lease_;  // of a job on a server group
};

// What a server or worker needs from the process it runs in.
struct NodeContext {
  Identity identity;
  const JobParts& parts;
  std::function<Result<TrainingData>(const JobConfig&)> open_data;
  ClusterConfig joining;  // until the coordinator has told the job's own
  Peer coordinator = kCoordinatorNode;
};

// Writes to the log who waits for whom, for what and how long, until the Io stops.
Task<> watch_stalls(Io& io, std::string who);

// A server or worker, whichever the layout says this node is. `outcome`: how the job ended.
Task<> run_member(Io& io, const NodeContext& context, Status* outcome);

}  // namespace talweg
