#include "data/feature_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace talweg {
namespace {

// The definition in the header, word by word.
uint64_t by_definition(uint64_t column, const std::string& text, unsigned bits) {
  uint64_t hash = mix64(column) + text.size() * 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < std::max<size_t>(text.size(), 1); i += 8) {
    uint64_t word = 0;
    for (size_t j = 0; j < 8 && i + j < text.size(); ++j) {
      word |= uint64_t{static_cast<unsigned char>(text[i + j])} << (8 * j);
    }
    hash = mix64(hash ^ word);
  }
  return hash % (uint64_t{1} << bits);
}

TEST(FeatureHash, is_the_one_that_is_written_down) {
  std::string text;
  for (int length = 0; length < 40; ++length, text += static_cast<char>(200 + 7 * length)) {
    for (const unsigned bits : {1u, 20u, 32u}) {
      EXPECT_EQ(FeatureHash(bits).key(FeatureHash::seed_of(3), text), by_definition(3, text, bits)) << length;
    }
  }
}

TEST(FeatureHash, stays_the_same_because_models_depend_on_it) {
  EXPECT_EQ(FeatureHash(32).key(FeatureHash::seed_of(2), ""), 265782452u);
  EXPECT_EQ(FeatureHash(32).key(FeatureHash::seed_of(15), "68fd1e64"), 3727627742u);
  EXPECT_EQ(FeatureHash(20).key(FeatureHash::seed_of(3), "longer than a word"), 578264u);
}

TEST(FeatureHash, texts_and_columns_fall_apart) {
  const FeatureHash hash(32);
  std::set<uint32_t> keys;
  for (uint64_t column = 1; column <= 40; ++column) {
    const uint64_t seed = FeatureHash::seed_of(column);
    for (int i = 0; i < 100; ++i) keys.insert(hash.key(seed, std::to_string(i)));
    keys.insert(hash.key(seed, ""));
    keys.insert(hash.key(seed, std::string(1, '\0')));
    keys.insert(hash.key(seed, std::string(8, '\0')));
    keys.insert(hash.key(seed, std::string(9, '\0')));
  }
  EXPECT_GE(keys.size(), 40u * 104 - 2) << "4160 keys of 2^32 meet by chance once in 500 tries";
}

TEST(FeatureHash, keys_fill_their_range_evenly) {
  const FeatureHash hash(4);
  std::vector<int> counts(16);
  for (int i = 0; i < 16'000; ++i) ++counts[hash.key(FeatureHash::seed_of(1), std::to_string(i))];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(FeatureHash, the_number_of_bits_is_checked) {
  EXPECT_TRUE(FeatureHash::check_bits(1).ok());
  EXPECT_TRUE(FeatureHash::check_bits(32).ok());
  EXPECT_EQ(FeatureHash::check_bits(33).message(), "hash_bits is 33: it must be from 1 to 32");
  EXPECT_FALSE(FeatureHash::check_bits(0).ok());
}

}  // namespace
}  // namespace talweg
