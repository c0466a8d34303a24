#include "data/criteo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace talweg {
namespace {

constexpr unsigned kBits = 30;

// A line with these counts and names, the rest missing.
std::string line_of(std::string_view label, const std::vector<std::string>& counts,
                    const std::vector<std::string>& names) {
  std::string line(label);
  for (size_t i = 0; i < 13; ++i) line += "\t" + (i < counts.size() ? counts[i] : "");
  for (size_t i = 0; i < 26; ++i) line += "\t" + (i < names.size() ? names[i] : "");
  return line;
}

std::vector<uint32_t> keys_of(const RowBlock& block) {
  return {block.keys32.span().begin(), block.keys32.span().end()};
}

RowBlock parsed(const std::string& text) {
  RowBlock block;
  const CriteoLayout layout(kBits);
  // A copy of exactly this size, so that a sanitizer sees a read past the end.
  const std::vector<char> exact(text.begin(), text.end());
  const Status status = parse_criteo({exact.data(), exact.size()}, 1, "log", layout, &block);
  EXPECT_TRUE(status.ok()) << status.text();
  return block;
}

std::string complaint(const std::string& text) {
  RowBlock block;
  return parse_criteo(text, 1, "log", CriteoLayout(kBits), &block).message();
}

uint32_t name_key(size_t column, std::string_view name) {
  return FeatureHash(kBits).key(FeatureHash::seed_of(column), name);
}
uint32_t count_key(size_t column, int64_t bucket) {
  return FeatureHash(kBits).key_of_number(FeatureHash::seed_of(column), bucket);
}

TEST(Criteo, a_row_has_one_key_for_each_field_that_is_there) {
  const RowBlock block = parsed(line_of("1", {"0", "", "-2", "9"}, {"68fd1e64", "", "x", "longer than a word"}) + "\n" +
                                line_of("0", {}, {}) + "\r\n\n" + line_of("0.5", {"123456789"}, {}));
  ASSERT_EQ(block.rows(), 3u);
  EXPECT_EQ(std::vector<float>(block.labels.span().begin(), block.labels.span().end()),
            (std::vector<float>{1, 0, 0.5f}));
  EXPECT_EQ(std::vector<uint64_t>(block.row_ends.span().begin(), block.row_ends.span().end()),
            (std::vector<uint64_t>{6, 6, 7}));
  EXPECT_EQ(keys_of(block),
            (std::vector<uint32_t>{count_key(2, 0), count_key(4, -2), count_key(5, 2 + 4), name_key(15, "68fd1e64"),
                                   name_key(17, "x"), name_key(18, "longer than a word"), count_key(2, 2 + 347)}));
  EXPECT_FALSE(block.has_values);
  EXPECT_EQ(block.max_key, *std::max_element(block.keys32.span().begin(), block.keys32.span().end()));
}

TEST(Criteo, the_last_field_counts_with_and_without_a_line_end) {
  std::vector<std::string> names(26);
  for (const std::string last : {"", "a", "1234567", "12345678", "123456789", "a text of some length"}) {
    names[25] = last;
    const std::string line = line_of("1", {}, names);
    const auto expected = last.empty() ? std::vector<uint32_t>{} : std::vector<uint32_t>{name_key(40, last)};
    EXPECT_EQ(keys_of(parsed(line)), expected) << last;
    EXPECT_EQ(keys_of(parsed(line + "\n")), expected) << last;
    EXPECT_EQ(keys_of(parsed(line + "\r\n" + line_of("1", {}, {}))), expected) << last;
  }
}

TEST(Criteo, buckets_are_the_floor_of_the_squared_logarithm) {
  const CriteoLayout layout(kBits);
  EXPECT_EQ(layout.bucket(-3), -3);
  EXPECT_EQ(layout.bucket(0), 0);
  EXPECT_EQ(layout.bucket(1), 1);
  EXPECT_EQ(layout.bucket(2), 2);
  EXPECT_EQ(layout.bucket(3), 3);
  for (int64_t count = 2; count < 200'000; ++count) {
    const double log = std::log(static_cast<double>(count));
    ASSERT_EQ(layout.bucket(count), 2 + static_cast<int64_t>(log * log)) << count;
  }
  EXPECT_EQ(layout.bucket(std::numeric_limits<int64_t>::max()), 2 + 1906);
}

TEST(Criteo, a_bad_row_names_line_column_and_token) {
  const std::string good = line_of("1", {}, {}) + "\n";
  EXPECT_EQ(complaint(good + "1\t2\n"), "log:2: 2 columns found, 40 expected");
  EXPECT_EQ(complaint(good + line_of("1", {}, {}) + "\t\n"), "log:2: 41 columns found, 40 expected");
  EXPECT_EQ(complaint("x\n"), "log:1: 1 columns found, 40 expected");
  EXPECT_EQ(complaint(line_of("click", {}, {})), "log:1: column 1: 'click' is not a label: it must be a finite number");
  EXPECT_EQ(complaint(line_of("", {}, {})), "log:1: column 1: '' is not a label: it must be a finite number");
  for (const std::string bad : {"1.5", "x", "1x", "+1", " 1", "12345678x", "99999999999999999999", "-"}) {
    EXPECT_EQ(complaint(line_of("1", {"5", bad}, {})), "log:1: column 3: '" + bad + "' is not a whole number");
  }
}

TEST(Criteo, bad_rows_are_skipped_whole) {
  RowBlock block;
  BadRows bad;
  bad.most = 2;
  const std::string text = line_of("1", {"7"}, {"a"}) + "\n" + line_of("1", {"7", "x"}, {"a"}) + "\n" +
                           line_of("0", {"8"}, {}) + "\nshort\n";
  ASSERT_TRUE(parse_criteo(text, 1, "log", CriteoLayout(kBits), &block, &bad).ok());
  EXPECT_EQ(bad.count, 2u);
  EXPECT_EQ(block.rows(), 2u);
  EXPECT_EQ(keys_of(block), (std::vector<uint32_t>{count_key(2, 2 + 3), name_key(15, "a"), count_key(2, 2 + 4)}));
}

TEST(Criteo, fewer_bits_give_smaller_keys) {
  RowBlock block;
  ASSERT_TRUE(parse_criteo(line_of("1", {"1", "2"}, {"a", "b", "c"}), 1, "log", CriteoLayout(3), &block).ok());
  for (const uint32_t key : block.keys32.span()) EXPECT_LT(key, 8u);
}

TEST(Criteo, rows_join_a_block_that_has_large_keys_and_values) {
  RowBlock block;
  block.add(uint64_t{1} << 40, 2.5f);
  block.end_row(0);
  ASSERT_TRUE(parse_criteo(line_of("1", {"1"}, {}), 1, "log", CriteoLayout(kBits), &block).ok());
  EXPECT_EQ(block.keys64.span()[1], count_key(2, 1));
  EXPECT_EQ(block.values.span()[1], 1.0f);
  EXPECT_EQ(block.rows(), 2u);
}

}  // namespace
}  // namespace talweg
