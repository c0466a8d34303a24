#include "store/routing.h"

#include <gtest/gtest.h>

namespace talweg {
namespace {

std::vector<uint64_t> random_keys(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint64_t> keys(count);
  for (uint64_t& key : keys) key = rng.next();
  return keys;
}

TEST(Routing, ranges_cut_a_table_without_gap_or_overlap) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{7}, uint64_t{1000}, ~uint64_t{0}}) {
    for (const uint32_t shards : {1u, 2u, 3u, 64u}) {
      uint64_t next = 0;
      for (uint32_t s = 0; s < shards; ++s) {
        const Range range = shard_range(size, s, shards);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size() - size / shards, 1u);
        next = range.end;
      }
      EXPECT_EQ(next, size);
    }
  }
  EXPECT_EQ(overlap({2, 8}, {5, 11}), (Range{5, 8}));
  EXPECT_EQ(overlap({2, 4}, {5, 11}).size(), 0u);
}

TEST(Routing, shards_get_equal_shares_of_keys) {
  std::vector<size_t> counts(7);
  for (uint64_t key = 0; key < 70'000; ++key) ++counts[shard_of(key, 7)];
  for (const size_t count : counts) EXPECT_NEAR(static_cast<double>(count), 10'000, 500);
}

TEST(KeyRoute, groups_keys_by_shard_and_knows_the_way_back) {
  for (const uint32_t shards : {1u, 2u, 5u, 300u}) {
    KeyRoute route(shards);
    for (const size_t count : {1000, 0, 1, 517}) {
      const auto keys = random_keys(count, count + shards);
      route.build(keys);
      ASSERT_EQ(route.size(), count);
      size_t i = 0;
      for (uint32_t s = 0; s < shards; ++s) {
        ASSERT_EQ(route.begin(s), i);
        for (const uint64_t key : route.keys(s)) {
          ASSERT_EQ(shard_of(key, shards), s);
          ++i;
        }
        ASSERT_EQ(route.keys_hash(s), hash_keys(route.keys(s)));
      }
      ASSERT_EQ(i, count);
      std::vector<uint64_t> sent;
      for (uint32_t s = 0; s < shards; ++s) sent.insert(sent.end(), route.keys(s).begin(), route.keys(s).end());
      for (size_t k = 0; k < count; ++k) {
        ASSERT_EQ(sent[route.places().empty() ? k : route.places()[k]], keys[k]);
      }
    }
  }
}

TEST(KeyRoute, keeps_the_given_order_on_one_shard_without_a_copy) {
  const auto keys = random_keys(100, 1);
  KeyRoute route(1);
  route.build(keys);
  EXPECT_TRUE(route.places().empty());
  EXPECT_EQ(route.keys(0).data(), keys.data());
}

TEST(KeyRoute, reuses_its_memory) {
  KeyRoute route(4);
  route.build(random_keys(1000, 1));
  const uint64_t* const keys = route.keys(0).data();
  const uint32_t* const order = route.places().data();
  for (uint64_t seed = 2; seed < 10; ++seed) {
    route.build(random_keys(500 + 50 * seed, seed));
    EXPECT_EQ(route.keys(0).data(), keys);
    EXPECT_EQ(route.places().data(), order);
  }
}

TEST(KeyRoute, the_hash_tells_lists_apart) {
  const std::vector<uint64_t> keys = {1, 2, 3}, swapped = {2, 1, 3}, longer = {1, 2, 3, 0}, other = {1, 2, 4};
  EXPECT_EQ(hash_keys(keys), hash_keys(std::vector<uint64_t>(keys)));
  EXPECT_NE(hash_keys(keys), hash_keys(swapped));
  EXPECT_NE(hash_keys(keys), hash_keys(longer));
  EXPECT_NE(hash_keys(keys), hash_keys(other));
}

TEST(KeyRoute, sorted_keys_rise_within_a_shard_and_stand_once) {
  for (const uint32_t shards : {1u, 2u, 5u}) {
    KeyRoute route(shards, KeyOrder::kSorted);
    for (const size_t count : {1000, 0, 10}) {  // built again, it forgets what it held
      std::vector<uint64_t> keys = random_keys(count, shards);
      for (size_t i = 0; i < count / 2; ++i) keys.push_back(keys[i]);
      route.build(keys);
      EXPECT_EQ(route.given(), keys.size());
      EXPECT_EQ(route.size(), count);
      EXPECT_EQ(route.merges(), count > 0);
      ASSERT_EQ(route.places().size(), keys.size());
      std::vector<uint64_t> grouped;
      for (uint32_t s = 0; s < shards; ++s) {
        const std::span<const uint64_t> here = route.keys(s);
        EXPECT_EQ(route.begin(s), grouped.size());
        EXPECT_EQ(route.keys_hash(s), hash_keys(here));
        for (size_t i = 0; i < here.size(); ++i) {
          EXPECT_EQ(shard_of(here[i], shards), s);
          if (i > 0) {
            EXPECT_LT(here[i - 1], here[i]);
          }
        }
        grouped.insert(grouped.end(), here.begin(), here.end());
      }
      ASSERT_EQ(grouped.size(), count);
      for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(grouped[route.places()[i]], keys[i]);
    }
  }
}

TEST(KeyRoute, the_same_keys_in_another_order_have_the_same_hash_when_sorted) {
  const std::vector<uint64_t> one = {5, 9, 7}, other = {9, 7, 5, 9};
  KeyRoute first(1, KeyOrder::kSorted), second(1, KeyOrder::kSorted), given(1);
  first.build(one);
  second.build(other);
  given.build(one);
  EXPECT_EQ(first.keys_hash(0), second.keys_hash(0));
  EXPECT_NE(first.keys_hash(0), given.keys_hash(0));
}

TEST(Routing, padding_fills_up_to_eight_bytes) {
  for (size_t bytes = 0; bytes < 100; ++bytes) {
    EXPECT_EQ((bytes + padding_of(bytes)) % 8, 0u);
    EXPECT_LT(padding_of(bytes), 8u);
  }
}

}  // namespace
}  // namespace talweg
