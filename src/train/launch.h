// Runs a job on this host: every node a thread of this process, or nodes as processes. The caller's thread is the
// coordinator's.
#pragma once

#include <string>

#include "train/node.h"

namespace talweg {

struct LaunchOptions {
  const JobParts& parts;
  JobEvents events;
  std::string executable;  // processes: the talweg command
  std::string log_path;    // processes: where nodes log; empty: nowhere
  // manual: how to start the nodes, told once the coordinator listens.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// As `distribute.launch` says. Ends in order on SIGINT and SIGTERM.
JobResult launch(const JobConfig& job, const TrainingData& data, LaunchOptions options);

// One process of a job: `count` nodes from `first` on, each a thread.
struct NodeProcess {
  std::string coordinator;  // its address
  Peer first = 1;
  uint32_t count = 1;
  std::string secret;
  std::string listen = "127.0.0.1:0";  // tcp
  Duration join_timeout = ClusterConfig{}.join_timeout;
  bool shares_cores = true;  // with other nodes of the job: waiting must not burn them
};
Status run_node_process(const NodeProcess& process, const JobParts& parts);

// How the job's secret reaches a node: not by the command line, which everybody on the host can read.
constexpr const char* kSecretVariable = "TALWEG_JOB_SECRET";

}  // namespace talweg
