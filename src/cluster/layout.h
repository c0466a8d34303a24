// Layout: which node of a job plays which part. Node 0 coordinates, the next ones are the server shards, the rest are
// workers. A job that uses a standing server group has its shards there, as nodes 1 and up of the group, and its own
// nodes are a block of ids that the group leased to it. Every node derives the layout from the job, so nobody has to be
// told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/mailbox.h"

namespace talweg {

enum class Role { kCoordinator, kServer, kWorker };

constexpr Peer kCoordinatorNode = 0;

struct Layout {
  uint32_t shards = 0;  // server nodes in all
  uint32_t workers = 1;
  Peer base = kCoordinatorNode;  // the coordinator; not 0: the shards are a group's

  Peer coordinator() const { return base; }
  bool uses_group() const { return base != kCoordinatorNode; }
  // The job's own nodes, which have the ids from the coordinator's on: those who join and are watched.
  uint32_t nodes() const { return 1 + (uses_group() ? 0 : shards) + workers; }
  bool contains(Peer node) const { return node >= base && node - base < nodes(); }
  uint32_t index_of(Peer node) const { return node - base; }

  // Of nodes that the layout contains, and of the group's shards; ranks count from 0 within a role.
  Role role_of(Peer node) const;
  uint32_t rank_of(Peer node) const;
  Peer shard(uint32_t rank) const;
  Peer worker(uint32_t rank) const;

  // How errors call a node: "coordinator", "server 1", "worker 2".
  std::string name_of(Peer node) const;
  // "server 1", "server 1 and worker 2", "server 1, worker 0 and worker 2"
  std::string names_of(const std::vector<Peer>& nodes) const;

 private:
  bool is_shard(Peer node) const { return node >= 1 && node <= shards; }
  Peer first_worker() const { return base + nodes() - workers; }
};

}  // namespace talweg
