#include "cluster/silence.h"

#include <gtest/gtest.h>

namespace talweg {
namespace {

Time at(Duration since_start) { return Time(since_start); }

TEST(Silence, is_a_loss_when_the_bound_passes_and_not_before) {
  Silence silence(ClusterConfig{}, at(seconds(10)));
  EXPECT_EQ(silence.bound(), at(seconds(13)));
  EXPECT_FALSE(silence.is_loss(at(milliseconds(12999))));
  EXPECT_TRUE(silence.is_loss(at(seconds(13))));
  EXPECT_EQ(silence.seconds(at(seconds(13))), 3.0);
}

TEST(Silence, begins_anew_with_every_beat) {
  Silence silence(ClusterConfig{}, at(seconds(10)));
  silence.heard(at(seconds(12)));
  EXPECT_FALSE(silence.is_loss(at(seconds(14))));
  EXPECT_TRUE(silence.is_loss(at(seconds(15))));
}

TEST(Silence, a_node_that_was_itself_held_up_listens_once_more_before_it_calls_another_lost) {
  Silence silence(ClusterConfig{}, at(seconds(10)));
  EXPECT_FALSE(silence.is_loss(at(seconds(20))));
  EXPECT_EQ(silence.bound(), at(milliseconds(20200)));
  EXPECT_TRUE(silence.is_loss(at(milliseconds(20200))));
}

TEST(Silence, a_node_that_is_always_held_up_still_finds_a_loss) {
  Silence silence(ClusterConfig{}, at(seconds(10)));
  EXPECT_FALSE(silence.is_loss(at(seconds(20))));
  EXPECT_TRUE(silence.is_loss(at(seconds(30))));
}

}  // namespace
}  // namespace talweg
