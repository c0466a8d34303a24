// Runs a job on this host: every node a thread of this process, or nodes as processes. The caller's thread is the
// coordinator's.
#pragma once

#include <string>

#include "train/group.h"
#include "train/node.h"

namespace talweg {

struct LaunchOptions {
  const JobParts& parts;
  JobEvents events;
  std::string executable;         // processes: the talweg command
  std::string log_path;           // processes: where nodes log; empty: nowhere
  std::string group_secret = {};  // of the server group that the job names
  // manual: how to start the nodes, told once the coordinator listens.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// As `distribute.launch` says. Ends in order on SIGINT and SIGTERM.
JobResult launch(const JobConfig& job, const TrainingData& data, LaunchOptions options);

struct GroupOptions {
  std::string executable;   // the talweg command
  std::string log_path;     // where the servers log; empty: nowhere
  std::string secret = {};  // empty: a new one
  // Where the group is and how jobs get in, told once it serves.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// Runs a standing server group on this host: servers as processes, the coordinator on the caller's thread. Ends in
// order, and ok, on SIGINT and SIGTERM; fails when a server is lost.
Status launch_group(const GroupConfig& config, const GroupOptions& options);

// One process of a job or group: `count` nodes from `first` on, each a thread.
struct NodeProcess {
  std::string coordinator;  // its address
  Peer first = 1;
  uint32_t count = 1;
  std::string secret;
  std::string listen = "127.0.0.1:0";  // tcp
  Duration join_timeout = ClusterConfig{}.join_timeout;
  Peer coordinator_id = kCoordinatorNode;
  bool of_group = false;     // a server of a standing group
  bool shares_cores = true;  // with other nodes of the job: waiting must not burn them
};
Status run_node_process(const NodeProcess& process, const JobParts& parts);

// How the job's secret reaches a node: not by the command line, which everybody on the host can read.
constexpr const char* kSecretVariable = "TALWEG_JOB_SECRET";
// How a server group's secret reaches a job; a group that is started with it uses it as its own.
constexpr const char* kGroupSecretVariable = "TALWEG_GROUP_SECRET";

}  // namespace talweg
