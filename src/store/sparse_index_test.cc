#include "store/sparse_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "base/rng.h"

namespace talweg {
namespace {

// The key whose hash is `hash`: mix64 undone step by step.
uint64_t key_with_hash(uint64_t hash) {
  const auto inverse = [](uint64_t odd) {
    uint64_t x = odd;  // Newton's iteration doubles the right low bits
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
    return x;
  };
  const auto unshift = [](uint64_t x, int shift) {
    uint64_t y = x;
    for (int done = shift; done < 64; done += shift) y = x ^ (y >> shift);
    return y;
  };
  hash = unshift(hash, 31) * inverse(0x94d049bb133111eb);
  hash = unshift(hash, 27) * inverse(0xbf58476d1ce4e5b9);
  return unshift(hash, 30) - 0x9e3779b97f4a7c15;
}

// Finds the rows of the keys and makes those that are missing.
std::vector<uint32_t> rows_of(SparseIndex& index, const std::vector<uint64_t>& keys, uint32_t stamp = 0) {
  std::vector<uint32_t> rows(keys.size()), missing(keys.size()), fresh;
  missing.resize(index.touch(keys, stamp, rows.data(), missing.data()));
  index.reserve(missing.size());
  fresh.reserve(missing.size());
  index.insert(keys, missing, stamp, rows.data(), fresh);
  return rows;
}

void expect_rows_in_order_of_first_touch(const std::vector<uint64_t>& keys) {
  SparseIndex index;
  const std::vector<uint32_t> rows = rows_of(index, keys);
  std::vector<uint32_t> again(keys.size());
  ASSERT_EQ(index.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(rows[i], i) << keys[i];
  index.find(keys, again.data());
  EXPECT_EQ(again, rows);
  EXPECT_EQ(rows_of(index, keys), rows);
  EXPECT_EQ(index.size(), keys.size());
}

TEST(SparseIndex, any_key_is_allowed) {
  expect_rows_in_order_of_first_touch({0, ~uint64_t{0}, 1, uint64_t{1} << 63, ~uint64_t{0} - 1, 0x9e3779b97f4a7c15});
}

TEST(SparseIndex, a_dense_run_of_keys_grows_it) {
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 100'000; ++k) keys.push_back(k);
  expect_rows_in_order_of_first_touch(keys);
}

TEST(SparseIndex, keys_with_the_same_low_or_high_bits_are_told_apart) {
  std::vector<uint64_t> low, high;
  for (uint64_t k = 0; k < 50'000; ++k) low.push_back(k << 40), high.push_back(~k);
  expect_rows_in_order_of_first_touch(low);
  expect_rows_in_order_of_first_touch(high);
}

TEST(SparseIndex, keys_made_to_collide_are_told_apart) {
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 3000; ++k) keys.push_back(key_with_hash(k << 32 | 255));
  ASSERT_EQ(mix64(keys[7]), uint64_t{7} << 32 | 255);
  expect_rows_in_order_of_first_touch(keys);
}

TEST(SparseIndex, follows_a_map_through_random_batches) {
  Rng rng(7);
  SparseIndex index;
  std::unordered_map<uint64_t, uint32_t> reference;
  for (int batch = 0; batch < 300; ++batch) {
    std::vector<uint64_t> keys(rng.below(200));
    for (uint64_t& key : keys) key = rng.below(2) == 0 ? rng.below(5000) : rng.next();
    std::vector<uint32_t> rows(keys.size());
    index.find(keys, rows.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = reference.find(keys[i]);
      ASSERT_EQ(rows[i], found == reference.end() ? SparseIndex::kNoRow : found->second);
    }
    rows = rows_of(index, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto [entry, fresh] = reference.emplace(keys[i], static_cast<uint32_t>(reference.size()));
      ASSERT_EQ(rows[i], entry->second);
    }
    ASSERT_EQ(index.size(), reference.size());
  }
  const auto sorted = index.sorted_keys();
  ASSERT_EQ(sorted.size(), reference.size());
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  for (const uint64_t key : sorted) ASSERT_TRUE(reference.contains(key));
  EXPECT_EQ(index.key_of(reference.at(sorted[42])), sorted[42]);
  EXPECT_EQ(index.key_of(SparseIndex::kNoRow), std::nullopt);
}

TEST(SparseIndex, follows_a_map_through_random_insertions_and_removals) {
  Rng rng(8);
  SparseIndex index;
  std::unordered_map<uint64_t, uint32_t> reference;
  for (uint32_t round = 1; round <= 400; ++round) {
    std::vector<uint64_t> keys(rng.below(100));
    for (uint64_t& key : keys) key = rng.below(2000);
    const std::vector<uint32_t> rows = rows_of(index, keys, round);
    for (size_t i = 0; i < keys.size(); ++i) reference[keys[i]] = rows[i];
    const uint64_t odd = rng.below(2);
    std::vector<uint32_t> gone;
    index.sweep(rng.below(1000), [&](uint32_t row, uint32_t stamp) {
      if (row % 2 != odd || stamp == round) return false;
      gone.push_back(row);
      return true;
    });
    for (const uint32_t row : gone) {
      const auto found = std::find_if(reference.begin(), reference.end(), [&](auto& e) { return e.second == row; });
      ASSERT_NE(found, reference.end());
      reference.erase(found);
    }
    ASSERT_EQ(index.size(), reference.size());
    std::vector<uint64_t> all(2000);
    for (uint64_t k = 0; k < all.size(); ++k) all[k] = k;
    std::vector<uint32_t> found(all.size());
    index.find(all, found.data());
    for (uint64_t k = 0; k < all.size(); ++k) {
      const auto expected = reference.find(k);
      ASSERT_EQ(found[k], expected == reference.end() ? SparseIndex::kNoRow : expected->second) << k;
    }
  }
  EXPECT_LE(index.row_bound(), 2000u);
}

TEST(SparseIndex, removal_closes_a_gap_that_runs_over_the_end) {
  // All want the last line of the first 256 slots, so most stand at the beginning.
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 40; ++k) keys.push_back(key_with_hash(k << 32 | 255));
  for (uint32_t removed = 0; removed < keys.size(); ++removed) {
    SparseIndex index;
    const std::vector<uint32_t> rows = rows_of(index, keys);
    ASSERT_EQ(index.sweep(1000, [&](uint32_t row, uint32_t) { return row == removed; }), 1u);
    std::vector<uint32_t> found(keys.size());
    index.find(keys, found.data());
    for (uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(found[i], i == removed ? SparseIndex::kNoRow : i);
  }
}

TEST(SparseIndex, a_key_stays_in_its_line_when_one_before_it_goes) {
  SparseIndex index;
  const uint64_t before = key_with_hash(16), home = key_with_hash(20);
  rows_of(index, {before, home});
  index.sweep(1000, [](uint32_t row, uint32_t) { return row == 0; });
  uint32_t row = SparseIndex::kNoRow;
  index.find(std::span(&home, 1), &row);
  EXPECT_EQ(row, 1u);
}

TEST(SparseIndex, rows_of_removed_keys_are_given_out_again) {
  SparseIndex index;
  rows_of(index, {10, 11, 12});
  index.sweep(1000, [](uint32_t row, uint32_t) { return row == 1; });
  EXPECT_EQ(index.key_of(1), std::nullopt);
  EXPECT_EQ(rows_of(index, {13, 14, 13}), (std::vector<uint32_t>{1, 3, 1}));
  EXPECT_EQ(index.row_bound(), 4u);
}

TEST(SparseIndex, a_touch_stamps_the_keys_it_finds_and_no_others) {
  SparseIndex index;
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 120; ++k) keys.push_back(key_with_hash(k << 32 | 64));
  rows_of(index, keys, 5);
  rows_of(index, {keys[2], keys[100], key_with_hash(1)}, 9);
  std::vector<uint32_t> stamped;
  index.sweep(1000, [&](uint32_t row, uint32_t stamp) {
    if (stamp == 9) stamped.push_back(row);
    return false;
  });
  std::sort(stamped.begin(), stamped.end());
  EXPECT_EQ(stamped, (std::vector<uint32_t>{2, 100, 120}));
}

TEST(SparseIndex, a_sweep_goes_round) {
  SparseIndex index;
  std::vector<uint64_t> keys(100);
  for (uint64_t k = 0; k < keys.size(); ++k) keys[k] = k;
  rows_of(index, keys);
  std::vector<int> seen(keys.size());
  for (int step = 0; step < 2 * 256; ++step) index.sweep(1, [&](uint32_t row, uint32_t) { return ++seen[row], false; });
  EXPECT_EQ(seen, std::vector<int>(keys.size(), 2));
}

TEST(SparseIndex, memory_grows_with_the_keys_only) {
  SparseIndex index;
  EXPECT_LE(index.bytes(), 8u << 10);
  std::vector<uint64_t> keys(100'000);
  Rng rng(1);
  for (uint64_t& key : keys) key = rng.next();
  rows_of(index, keys);
  EXPECT_LE(index.bytes(), 64 * keys.size());
}

}  // namespace
}  // namespace talweg
