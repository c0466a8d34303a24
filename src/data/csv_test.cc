#include "data/csv.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/temp_dir.h"
#include "data/cache.h"

namespace talweg {
namespace {

using Entries = std::vector<std::pair<uint64_t, float>>;

Result<Dataset> read(const TempDir& folder, std::string_view text, const CsvOptions& csv = {},
                     std::string_view name = "people.csv") {
  DatasetOptions options;
  options.path = folder.write(name, text);
  options.cache = false;
  options.read.csv = csv;
  return open_dataset(options);
}

// Without the folder's name.
std::string complaint(const TempDir& folder, std::string_view text, const CsvOptions& csv = {}) {
  const std::string message = read(folder, text, csv).status().message();
  const size_t name = message.find("people.csv");
  return name == message.npos ? message : message.substr(name);
}

Entries entries_of(const Dataset& data, size_t row) {
  Entries out;
  for (size_t i = 0; i < data.row_size(row); ++i) out.push_back(data.entry(row, i));
  return out;
}

CsvOptions with_label(std::string label, bool header = true) {
  CsvOptions options;
  options.label = std::move(label);
  options.header = header;
  return options;
}

TEST(Csv, a_key_is_the_position_among_the_features_and_zeros_are_absent) {
  TempDir folder;
  const auto data = read(folder, "age,clicked,height\n30,1,1.5\n,0,0\r\n\n 7 ,1,\n", with_label("clicked"));
  ASSERT_TRUE(data.ok()) << data.status().text();
  ASSERT_EQ(data->rows(), 3u);
  EXPECT_EQ(data->label(0), 1.0f);
  EXPECT_EQ(data->label(1), 0.0f);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{0, 30}, {1, 1.5f}}));
  EXPECT_EQ(entries_of(*data, 1), Entries{});
  EXPECT_EQ(entries_of(*data, 2), (Entries{{0, 7}}));
}

TEST(Csv, the_label_is_found_by_number_too_and_is_the_first_column_by_default) {
  TempDir folder;
  EXPECT_EQ(read(folder, "a,b,c\n1,2,3\n", with_label("3"))->label(0), 3.0f);
  EXPECT_EQ(read(folder, "1,2,3\n", with_label("2", false))->label(0), 2.0f);
  EXPECT_EQ(read(folder, "a,b\n5,6\n")->label(0), 5.0f);
}

TEST(Csv, tabs_separate_in_tsv_and_a_delimiter_may_be_set) {
  TempDir folder;
  EXPECT_EQ(entries_of(*read(folder, "y\ta\tb\n1\t\t3\n", {}, "t.tsv"), 0), (Entries{{1, 3}}));
  CsvOptions semicolons;
  semicolons.delimiter = ';';
  EXPECT_EQ(entries_of(*read(folder, "y;a\n1;4\n", semicolons), 0), (Entries{{0, 4}}));
}

TEST(Csv, quoted_fields_may_hold_delimiters_and_quotes) {
  TempDir folder;
  const auto data =
      read(folder, "\"the \"\"label\"\", quoted\",\"b\"\n\"1\",\"2.5\"\n", with_label("the \"label\", quoted"));
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->label(0), 1.0f);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{0, 2.5f}}));
}

TEST(Csv, a_broken_quote_is_an_error) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,a\n1,\"2\n"), "people.csv:2: a quoted field must end on its line");
  EXPECT_EQ(complaint(folder, "y,a\n1,\"2\"\"\n"), "people.csv:2: a quoted field must end on its line");
  EXPECT_EQ(complaint(folder, "y,a\n1,\"\n"), "people.csv:2: a quoted field must end on its line");
  EXPECT_EQ(complaint(folder, "y,a\n1,\"2\"3\n"), "people.csv:2: a quoted field must be followed by a delimiter");
}

TEST(Csv, a_field_that_is_no_number_names_line_and_column) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,age\n1,2\n0,abc\n"), "people.csv:3: column 'age': 'abc' is not a number");
  EXPECT_EQ(complaint(folder, "1,2\n0,nan\n", with_label("1", false)), "people.csv:2: column 2: 'nan' is not a number");
  EXPECT_EQ(complaint(folder, "y,age\n,3\n"), "people.csv:2: column 'y': '' is not a number");
  EXPECT_EQ(complaint(folder, "y,age\n1,1e40\n"),
            "people.csv:2: column 'age': '1e40' is too large for a 32-bit number");
}

TEST(Csv, a_ragged_row_names_the_counts) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,a,b\n1,2\n"), "people.csv:2: 2 columns found, 3 expected");
  EXPECT_EQ(complaint(folder, "y,a,b\n1,2,3,4\n"), "people.csv:2: 4 columns found, 3 expected");
}

TEST(Csv, an_unknown_label_column_is_an_error) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,a\n1,2\n", with_label("z")),
            "people.csv:1: no label column 'z': give a column's name or a number from 1 to 2");
  EXPECT_EQ(complaint(folder, "1,2\n", with_label("3", false)),
            "people.csv:1: no label column '3': give a number from 1 to 2");
}

CsvOptions with_categories(std::vector<std::string> columns, unsigned bits = 20) {
  CsvOptions options;
  options.categorical = std::move(columns);
  options.hash_bits = bits;
  return options;
}

TEST(Csv, categories_are_hashed_and_so_are_the_numbers_beside_them) {
  TempDir folder;
  const std::string text = "y,city,age,colour\n1,Oslo,30,red\n0,,0,\"dark, red\"\n1, Oslo ,,\n";
  const FeatureHash hash(20);
  const auto key = [&](size_t column, std::string_view word) { return hash.key(FeatureHash::seed_of(column), word); };
  for (const auto& columns : {std::vector<std::string>{"city", "colour"}, {"2", "4"}}) {
    const auto data = read(folder, text, with_categories(columns));
    ASSERT_TRUE(data.ok()) << data.status().text();
    EXPECT_EQ(entries_of(*data, 0), (Entries{{key(2, "Oslo"), 1}, {key(3, ""), 30}, {key(4, "red"), 1}}));
    EXPECT_EQ(entries_of(*data, 1), (Entries{{key(4, "dark, red"), 1}}));
    EXPECT_EQ(entries_of(*data, 2), (Entries{{key(2, "Oslo"), 1}}));
  }
  const auto all = read(folder, text, with_categories({"all"}));
  EXPECT_EQ(entries_of(*all, 0), (Entries{{key(2, "Oslo"), 1}, {key(3, "30"), 1}, {key(4, "red"), 1}}));
  EXPECT_EQ(entries_of(*all, 1), (Entries{{key(3, "0"), 1}, {key(4, "dark, red"), 1}}));
  EXPECT_FALSE(all->has_values());
}

TEST(Csv, hashed_keys_stay_below_their_bound) {
  TempDir folder;
  const auto data = read(folder, "y,a,b\n1,x,5\n0,z,6\n1,w,7\n", with_categories({"a"}, 2));
  ASSERT_TRUE(data.ok());
  EXPECT_LT(data->max_key(), 4u);
}

TEST(Csv, categories_that_cannot_be_are_errors) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,a\n1,2\n", with_categories({"b"})),
            "people.csv:1: no categorical column 'b': give a column's name or a number from 1 to 2");
  EXPECT_EQ(complaint(folder, "y,a\n1,2\n", with_categories({"y"})),
            "people.csv:1: column 'y' cannot be both the label and categorical");
  EXPECT_EQ(complaint(folder, "y,a\n1,2\n", with_categories({"a"}, 40)), "hash_bits is 40: it must be from 1 to 32");
}

TEST(Csv, a_table_with_a_header_alone_holds_no_rows) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "y,a\n"), "people.csv holds no rows");
  EXPECT_EQ(complaint(folder, "y,a"), "people.csv holds no rows");
}

TEST(Csv, a_byte_order_mark_is_no_part_of_the_first_name) {
  TempDir folder;
  EXPECT_TRUE(read(folder, "\xEF\xBB\xBFy,a\n1,2\n", with_label("y")).ok());
}

}  // namespace
}  // namespace talweg
