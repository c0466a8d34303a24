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

TEST(Layout, a_job_on_a_server_group_has_a_block_of_ids_and_the_groups_shards) {
  const Layout layout{.shards = 2, .workers = 3, .base = 40};
  EXPECT_EQ(layout.nodes(), 4u);
  EXPECT_EQ(layout.coordinator(), 40u);
  EXPECT_EQ(layout.shard(1), 2u);
  EXPECT_EQ(layout.worker(2), 43u);
  EXPECT_EQ(layout.rank_of(43), 2u);
  EXPECT_EQ(layout.index_of(43), 3u);
  EXPECT_EQ(layout.role_of(40), Role::kCoordinator);
  EXPECT_EQ(layout.name_of(41), "worker 0");
  EXPECT_EQ(layout.name_of(2), "server 1") << "whom an error may name";
  EXPECT_EQ(layout.name_of(0), "node 0") << "the group's coordinator";
  EXPECT_EQ(layout.name_of(44), "node 44");
  for (Peer other : {0u, 1u, 2u, 39u, 44u}) EXPECT_FALSE(layout.contains(other)) << other << " is not of this job";
}

TEST(Layout, a_server_group_has_no_workers) {
  const Layout layout{.shards = 2, .workers = 0};
  EXPECT_EQ(layout.nodes(), 3u);
  EXPECT_EQ(layout.role_of(2), Role::kServer);
  EXPECT_FALSE(layout.contains(3));
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
