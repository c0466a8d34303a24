// A standing server group: a coordinator and shards of the parameter store that live without a job, and serve any
// number of jobs at once. Each job leases ids for its nodes and room for its tables (cluster/lease.h); its tables are
// its own and go with it, however it ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/coordinator.h"
#include "cluster/lease.h"
#include "train/job.h"
#include "train/node.h"

namespace talweg {

struct GroupConfig {
  std::string name = "group";
  uint32_t servers = 1;
  uint32_t shards_per_server = 1;
  Wire transport = Wire::kTcp;
  std::string listen = "127.0.0.1:0";
  uint64_t max_bytes_per_job = 0;
  ClusterConfig cluster;
  StoreConfig store;

  template <class Fields>
  void fields(Fields& f) {
    f("name", name, "of the group, in its log");
    f("servers", servers, "who hold the parameters", between(1, 1'000));
    f("shards_per_server", shards_per_server, "cores a server uses, one shard on each", between(1, 256));
    f("transport", transport, "to the jobs and between the servers: shm (this host only), tcp");
    f("listen", listen, "tcp: where the group listens; port 0 lets the system choose");
    f("max_bytes_per_job", max_bytes_per_job, "bytes that one job's tables may take on each shard; 0: no limit",
      at_least(0));
    f("cluster", cluster, "how patient servers and jobs are with each other");
    f("store", store, "the parameter store's patience and memory");
  }
  Layout layout() const { return {.shards = servers * shards_per_server, .workers = 0}; }
  // What single fields cannot tell.
  Status check(const std::string& file) const;
};

// Reads a group's file (none: all defaults) and replaces single settings ("servers=2").
Result<GroupConfig> load_group(const std::string& path, const std::vector<std::string>& settings);

// The group's coordinator.
class GroupNode {
 public:
  // Opens its services: make it before the node can be reached. `on_ready` is called once the shards serve.
  GroupNode(Io& io, const GroupConfig& config, std::function<void()> on_ready);

  // Until `end`, or until a server is lost. Jobs that still run are told why.
  Task<> run(Status* outcome);
  // An end in order, and ok, unless the servers have not even joined.
  void end(Status why);
  Coordinator& coordinator() { return coordinator_; }

 private:
  Task<Status> lead(TaskSet& tasks);
  Task<> say_goodbye(Status verdict);
  Task<Status> drop(uint64_t job);
  LeaseTerms terms() const;

  Io& io_;
  const GroupConfig config_;
  const std::function<void()> on_ready_;
  bool gathered_ = false;
  uint32_t shards_ready_ = 0;
  std::optional<Status> asked_to_end_;
  Signal changed_;
  Coordinator coordinator_;
  LeaseBook book_;
};

// One shard of a group. `outcome`: how the group ended.
Task<> run_group_member(Io& io, const NodeContext& context, Status* outcome);

// The job as its nodes will know it, with a lease from the group that it names. `io` is a visitor's.
Task<> lease_from_group(Io& io, const JobConfig& job, uint64_t nonce, Result<JobConfig>* leased);

}  // namespace talweg
