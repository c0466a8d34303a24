#include "cluster/layout.h"

#include <gtest/gtest.h>

namespace talweg {
namespace {

TEST(Layout, the_coordinator_comes_first_then_the_shards_then_the_workers) {
  const Layout layout{.shards = 2, .workers = 3};
  EXPECT_EQ(layout.nodes(), 6u);
  EXPECT_EQ(layout.role_of(0), Role::kCoordinator);
  EXPECT_EQ(layout.role_of(2), Role::kServer);
  EXPECT_EQ(layout.role_of(3), Role::kWorker);
  EXPECT_EQ(layout.shard(1), 2u);
  EXPECT_EQ(layout.worker(2), 5u);
  for (Peer node = 1; node < layout.nodes(); ++node) {
    const uint32_t rank = layout.rank_of(node);
    EXPECT_EQ(node, layout.role_of(node) == Role::kServer ? layout.shard(rank) : layout.worker(rank));
  }
}

TEST(Layout, a_job_without_servers_has_its_workers_from_node_1) {
  const Layout layout{.shards = 0, .workers = 2};
  EXPECT_EQ(layout.role_of(1), Role::kWorker);
  EXPECT_EQ(layout.rank_of(2), 1u);
}

TEST(Layout, nodes_are_named_by_role_and_rank) {
  const Layout layout{.shards = 2, .workers = 3};
  EXPECT_EQ(layout.name_of(0), "coordinator");
  EXPECT_EQ(layout.name_of(2), "server 1");
  EXPECT_EQ(layout.name_of(5), "worker 2");
  EXPECT_EQ(layout.name_of(6), "node 6");
  EXPECT_EQ(layout.names_of({2}), "server 1");
  EXPECT_EQ(layout.names_of({2, 5}), "server 1 and worker 2");
  EXPECT_EQ(layout.names_of({1, 2, 5}), "server 0, server 1 and worker 2");
}

}  // namespace
}  // namespace talweg
