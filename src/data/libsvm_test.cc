#include "data/libsvm.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "data/sections.h"

namespace talweg {
namespace {

using Entries = std::vector<std::pair<uint64_t, float>>;

Result<Dataset> parse(std::string_view text, BadRows* bad = nullptr) {
  ParsedRows rows;
  RowBlock& block = rows.blocks.emplace_back();
  TRY(parse_libsvm(text, 1, "clicks.svm", &block, bad));
  rows.shape.rows = block.rows();
  rows.shape.nonzeros = block.nonzeros();
  rows.shape.max_key = block.max_key;
  rows.shape.has_values = block.has_values;
  return to_dataset(rows);
}

Entries entries_of(const Dataset& data, size_t row) {
  Entries out;
  for (size_t i = 0; i < data.row_size(row); ++i) out.push_back(data.entry(row, i));
  return out;
}

std::string complaint(std::string_view text) { return parse(text).status().message(); }

TEST(LibSvm, labels_keys_and_values_are_kept_as_written) {
  const auto data = parse("+1 3:0.5 7:1\n-1 2:-2e1\n0 1 5:1\n2.5\n");
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->rows(), 4u);
  EXPECT_EQ(data->label(0), 1.0f);
  EXPECT_EQ(data->label(1), -1.0f);
  EXPECT_EQ(data->label(2), 0.0f);
  EXPECT_EQ(data->label(3), 2.5f);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{3, 0.5f}, {7, 1}}));
  EXPECT_EQ(entries_of(*data, 1), (Entries{{2, -20}}));
  EXPECT_EQ(entries_of(*data, 2), (Entries{{1, 1}, {5, 1}}));
  EXPECT_EQ(entries_of(*data, 3), Entries{});
  EXPECT_EQ(data->max_key(), 7u);
}

TEST(LibSvm, blank_lines_comments_crlf_tabs_and_query_ids_are_accepted) {
  const auto data = parse("# a comment\r\n\r\n  1 qid:7 3:1 # note 4:x\r\n\n0\t8:1\t9\t\r\n1 5:1#c");
  ASSERT_TRUE(data.ok()) << data.status().text();
  ASSERT_EQ(data->rows(), 3u);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{3, 1}}));
  EXPECT_EQ(entries_of(*data, 1), (Entries{{8, 1}, {9, 1}}));
  EXPECT_EQ(entries_of(*data, 2), (Entries{{5, 1}}));
}

TEST(LibSvm, the_last_line_needs_no_newline) {
  for (const char* text : {"1 5:1", "1 5", "1 5:1 ", "1 5:1\r", "1 5:1.0"}) {
    const auto data = parse(text);
    ASSERT_TRUE(data.ok()) << text;
    EXPECT_EQ(entries_of(*data, 0), (Entries{{5, 1}})) << text;
  }
}

TEST(LibSvm, values_are_stored_only_when_one_is_not_1) {
  EXPECT_FALSE(parse("1 5:1 6:1.0 7\n")->has_values());
  const auto data = parse("1 5:1 6\n0 7:2 8:1\n");
  EXPECT_TRUE(data->has_values());
  EXPECT_EQ(entries_of(*data, 0), (Entries{{5, 1}, {6, 1}}));
  EXPECT_EQ(entries_of(*data, 1), (Entries{{7, 2}, {8, 1}}));
}

TEST(LibSvm, keys_go_up_to_2_to_the_64_and_are_wide_only_when_needed) {
  EXPECT_FALSE(parse("1 4294967295:1\n")->has_wide_keys());
  const auto data = parse("1 3:1 12345678:1\n0 4294967296:1 18446744073709551615:2\n");
  ASSERT_TRUE(data.ok());
  EXPECT_TRUE(data->has_wide_keys());
  EXPECT_EQ(entries_of(*data, 0), (Entries{{3, 1}, {12345678, 1}}));
  EXPECT_EQ(entries_of(*data, 1), (Entries{{4294967296, 1}, {~uint64_t{0}, 2}}));
  EXPECT_EQ(data->max_key(), ~uint64_t{0});
}

TEST(LibSvm, an_index_of_any_length_is_read_at_any_distance_from_the_end) {
  for (size_t digits = 1; digits <= 19; ++digits) {
    const std::string index = std::string("9876543210123456789").substr(0, digits);
    for (const char* after : {"", "\n", ":1", " 5:1\n", " 1234567 1234567\n0\n"}) {
      const auto data = parse("1 " + index + after);
      ASSERT_TRUE(data.ok()) << index << after;
      EXPECT_EQ(data->entry(0, 0).first, std::stoull(index)) << after;
    }
  }
}

TEST(LibSvm, a_malformed_line_names_file_and_line) {
  EXPECT_EQ(complaint("1 2:1\n\n0 x:1\n"), "clicks.svm:3: 'x:1' is not index:value: the index must be a whole number");
}

TEST(LibSvm, a_complaint_says_what_was_expected) {
  const std::string index = " is not index:value: the index must be a whole number";
  const std::string value = " is not index:value: the value must be a finite number";
  EXPECT_EQ(complaint("1 -3:1"), "clicks.svm:1: '-3:1'" + index);
  EXPECT_EQ(complaint("1 :1"), "clicks.svm:1: ':1'" + index);
  EXPECT_EQ(complaint("1 3x:1"), "clicks.svm:1: '3x:1'" + index);
  EXPECT_EQ(complaint("1 3:"), "clicks.svm:1: '3:'" + value);
  EXPECT_EQ(complaint("1 3:1:1"), "clicks.svm:1: '3:1:1'" + value);
  EXPECT_EQ(complaint("1 3:nan"), "clicks.svm:1: '3:nan'" + value);
  EXPECT_EQ(complaint("1 3:-inf"), "clicks.svm:1: '3:-inf'" + value);
  EXPECT_EQ(complaint("1 3:1e39"), "clicks.svm:1: '3:1e39'" + value);
  EXPECT_EQ(complaint("1 18446744073709551616:1"),
            "clicks.svm:1: '18446744073709551616:1' is not index:value: the index must be below 2^64");
  EXPECT_EQ(complaint("yes 3:1"), "clicks.svm:1: 'yes' is not a label: a line starts with a finite number");
  EXPECT_EQ(complaint("1e99 3:1"), "clicks.svm:1: '1e99' is not a label: a line starts with a finite number");
  EXPECT_EQ(complaint("3:1"), "clicks.svm:1: '3:1' is not a label: a line starts with a finite number");
  EXPECT_EQ(complaint("1 qid:x 3:1"), "clicks.svm:1: 'qid:x': the query id must be a whole number");
}

TEST(LibSvm, a_complaint_shows_at_most_40_bytes_and_no_control_characters) {
  EXPECT_EQ(complaint("1 " + std::string(100, 'x')),
            "clicks.svm:1: '" + std::string(40, 'x') + "...' is not index:value: the index must be a whole number");
  EXPECT_NE(complaint("1 \x1b[31m\n").find("'?[31m'"), std::string::npos);
}

TEST(LibSvm, rows_before_a_bad_one_are_kept_and_nothing_of_it_is) {
  RowBlock block;
  EXPECT_FALSE(parse_libsvm("1 2:1\n0 3:5 99999999999:1 x\n1 4:1\n", 1, "f", &block).ok());
  EXPECT_EQ(block.rows(), 1u);
  EXPECT_EQ(block.nonzeros(), 1u);
  EXPECT_EQ(block.max_key, 2u);
}

TEST(LibSvm, bad_rows_are_skipped_and_counted_up_to_the_bound) {
  BadRows two;
  two.most = 2;
  const auto data = parse("1 2:1\nbad\n0 3:1 x\n1 4:1\n", &two);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->rows(), 2u);
  EXPECT_EQ(entries_of(*data, 1), (Entries{{4, 1}}));
  EXPECT_EQ(two.count, 2u);
  EXPECT_EQ(two.first, "clicks.svm:2: 'bad' is not a label: a line starts with a finite number");
  BadRows one;
  one.most = 1;
  EXPECT_EQ(
      parse("1 2:1\nbad\n0 3:1 x\n", &one).status().message(),
      "more than 1 bad rows; the first is clicks.svm:2: 'bad' is not a label: a line starts with a finite number");
}

TEST(LibSvm, random_rows_come_back_as_they_were_written) {
  Rng rng(5);
  std::string text;
  std::vector<Entries> rows(500);
  for (Entries& row : rows) {
    text += "1";
    for (uint64_t n = rng.below(50); n > 0; --n) {
      const uint64_t key = rng.next() >> rng.below(64);
      const float value = rng.below(2) == 0 ? 1.0f : static_cast<float>(rng.below(1000)) / 8;
      row.push_back({key, value});
      text += fmt::format(" {}:{}", key, value);
    }
    text += '\n';
  }
  const auto data = parse(text);
  ASSERT_TRUE(data.ok());
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(entries_of(*data, i), rows[i]);
}

}  // namespace
}  // namespace talweg
