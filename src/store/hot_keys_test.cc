#include "store/hot_keys.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace talweg {
namespace {

TEST(HotKeys, nothing_was_hot_before_the_first_touch) {
  EXPECT_TRUE(HotKeys().hottest(5).empty());
  EXPECT_EQ(HotKeys().bytes(), 0u);
}

TEST(HotKeys, finds_the_hottest_among_many_and_how_often_they_came) {
  HotKeys hot;
  Rng rng(1);
  std::vector<uint64_t> keys(1000);
  for (int list = 0; list < 2000; ++list) {
    for (uint64_t& key : keys) {
      const uint64_t kind = rng.below(100);
      key = kind < 10 ? 7 : kind < 15 ? 8 : kind < 18 ? 9 : rng.next();
    }
    hot.sample(keys);
  }
  const auto hottest = hot.hottest(3);
  ASSERT_EQ(hottest.size(), 3u);
  const double touches = 2e6, error = touches * 2 / HotKeys::kCounters;
  for (const auto& [at, key, share] : {std::tuple(0, 7, 0.10), {1, 8, 0.05}, {2, 9, 0.03}}) {
    EXPECT_EQ(hottest[at].first, static_cast<uint64_t>(key));
    EXPECT_NEAR(static_cast<double>(hottest[at].second), share * touches, error);
  }
}

TEST(HotKeys, lists_of_one_key_are_sampled_too) {
  HotKeys hot;
  const uint64_t key = 5;
  for (int list = 0; list < 64'000; ++list) hot.sample(std::span(&key, 1));
  ASSERT_EQ(hot.hottest(9).size(), 1u);
  EXPECT_NEAR(static_cast<double>(hot.hottest(1)[0].second), 64'000, 6'400);
}

TEST(HotKeys, memory_does_not_grow_with_the_keys) {
  HotKeys hot;
  std::vector<uint64_t> keys(100'000);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (int list = 0; list < 10; ++list) hot.sample(keys);
  EXPECT_LE(hot.bytes(), 16u << 10);
}

}  // namespace
}  // namespace talweg
