#include "cluster/config.h"

#include <gtest/gtest.h>

#include "base/config.h"

namespace talweg {
namespace {

TEST(ClusterConfig, its_defaults_are_valid_and_survive_the_trip_through_text) {
  const ClusterConfig defaults;
  EXPECT_TRUE(defaults.check().ok());
  const Result<ClusterConfig> read = config_from_text<ClusterConfig>(config_to_text(defaults), "job.yaml");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->heartbeat, milliseconds(200));
  EXPECT_EQ(read->lost_after, seconds(3));
  EXPECT_EQ(read->join_timeout, seconds(60));
  EXPECT_EQ(read->call_timeout, seconds(30));
}

TEST(ClusterConfig, a_bound_of_too_few_heartbeats_is_refused) {
  ClusterConfig config;
  config.lost_after = milliseconds(500);
  EXPECT_EQ(config.check().code(), Code::kInvalid);
  config.lost_after = milliseconds(600);
  EXPECT_TRUE(config.check().ok());
  config.heartbeat = Duration(0);
  EXPECT_EQ(config.check().code(), Code::kInvalid);
}

}  // namespace
}  // namespace talweg
