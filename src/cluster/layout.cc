#include "cluster/layout.h"

#include <fmt/format.h>

#include "base/check.h"

namespace talweg {

Role Layout::role_of(Peer node) const {
  CHECK(contains(node) || is_shard(node));
  if (node == base) return Role::kCoordinator;
  return is_shard(node) ? Role::kServer : Role::kWorker;
}

uint32_t Layout::rank_of(Peer node) const {
  switch (role_of(node)) {
    case Role::kCoordinator: return 0;
    case Role::kServer: return node - 1;
    case Role::kWorker: break;
  }
  return node - first_worker();
}

Peer Layout::shard(uint32_t rank) const {
  CHECK(rank < shards);
  return 1 + rank;
}

Peer Layout::worker(uint32_t rank) const {
  CHECK(rank < workers);
  return first_worker() + rank;
}

std::string Layout::name_of(Peer node) const {
  if (!contains(node) && !is_shard(node)) return fmt::format("node {}", node);
  switch (role_of(node)) {
    case Role::kCoordinator: return "coordinator";
    case Role::kServer: return fmt::format("server {}", rank_of(node));
    case Role::kWorker: break;
  }
  return fmt::format("worker {}", rank_of(node));
}

std::string Layout::names_of(const std::vector<Peer>& nodes) const {
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0) text += i + 1 < nodes.size() ? ", " : " and ";
    text += name_of(nodes[i]);
  }
  return text;
}

}  // namespace talweg
