// Layout: which node of a job plays which part. Node 0 coordinates, the next ones are the server shards, the rest are
// workers. Every node derives it from the job, so nobody has to be told.
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

  uint32_t nodes() const { return 1 + shards + workers; }
  bool contains(Peer node) const { return node < nodes(); }

  // Of nodes that the layout contains; ranks count from 0 within a role.
  Role role_of(Peer node) const;
  uint32_t rank_of(Peer node) const;
  Peer shard(uint32_t rank) const;
  Peer worker(uint32_t rank) const;

  // How errors call a node: "coordinator", "server 1", "worker 2".
  std::string name_of(Peer node) const;
  // "server 1", "server 1 and worker 2", "server 1, worker 0 and worker 2"
  std::string names_of(const std::vector<Peer>& nodes) const;
};

}  // namespace talweg
