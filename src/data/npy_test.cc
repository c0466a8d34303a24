#include "data/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/temp_dir.h"
#include "data/cache.h"
#include "data/test_files.h"

namespace talweg {
namespace {

using Entries = std::vector<std::pair<uint64_t, float>>;
using test::number;
using test::numbers;

Result<Dataset> read(const std::string& path, const std::string& label = "1", const std::string& labels = "") {
  DatasetOptions options;
  options.path = path;
  options.cache = false;
  options.read.csv.label = label;
  options.read.labels = labels;
  return open_dataset(options);
}

// Without the folder's name.
std::string complaint(const TempDir& folder, std::string_view name, const std::string& content) {
  const std::string message = read(folder.write(name, content)).status().message();
  const size_t at = message.find(name);
  return at == message.npos ? message : message.substr(at);
}

Entries entries_of(const Dataset& data, size_t row) {
  Entries out;
  for (size_t i = 0; i < data.row_size(row); ++i) out.push_back(data.entry(row, i));
  return out;
}

template <class T>
void expect_read_as(const TempDir& folder, const std::string& type) {
  const auto data = read(folder.write("a.npy", test::npy(type, "(2, 3)", numbers<T>({1, 0, 2, 0, 3, 4}))));
  ASSERT_TRUE(data.ok()) << type << data.status().text();
  ASSERT_EQ(data->rows(), 2u);
  EXPECT_EQ(data->label(0), 1.0f);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{1, 2}})) << type;
  EXPECT_EQ(entries_of(*data, 1), (Entries{{0, 3}, {1, 4}})) << type;
}

TEST(Npy, every_type_of_number_is_read) {
  TempDir folder;
  expect_read_as<float>(folder, "<f4");
  expect_read_as<double>(folder, "<f8");
  expect_read_as<int8_t>(folder, "|i1");
  expect_read_as<uint8_t>(folder, "|u1");
  expect_read_as<uint8_t>(folder, "|b1");
  expect_read_as<int16_t>(folder, "<i2");
  expect_read_as<uint16_t>(folder, "<u2");
  expect_read_as<int32_t>(folder, "<i4");
  expect_read_as<uint32_t>(folder, "<u4");
  expect_read_as<int64_t>(folder, "<i8");
  expect_read_as<uint64_t>(folder, "<u8");
}

TEST(Npy, the_label_is_the_column_that_is_asked_for) {
  TempDir folder;
  const std::string path = folder.write("a.npy", test::npy("<i4", "(2, 3)", numbers<int32_t>({1, -5, 2, 0, 3, 4})));
  const auto data = read(path, "3");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->label(1), 4.0f);
  EXPECT_EQ(entries_of(*data, 0), (Entries{{0, 1}, {1, -5}}));
  EXPECT_EQ(read(path, "4").status().message(), path + ": no label column '4': give a number from 1 to 3");
  EXPECT_EQ(read(path, "y").status().message(), path + ": no label column 'y': give a number from 1 to 3");
}

TEST(Npy, labels_may_have_a_file_of_their_own) {
  TempDir folder;
  const std::string x = folder.write("x.npy", test::npy("<f4", "(2, 2, 1)", numbers<float>({1, 2, 3, 4})));
  const std::string y = folder.write("y.npy", test::npy("<i8", "(2,)", numbers<int64_t>({7, 8})));
  const auto data = read(x, "1", y);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->label(1), 8.0f);
  EXPECT_EQ(entries_of(*data, 1), (Entries{{0, 3}, {1, 4}}));
  const std::string long_y = folder.write("z.npy", test::npy("<i8", "(3,)", numbers<int64_t>({7, 8, 9})));
  EXPECT_EQ(read(x, "1", long_y).status().message(), x + " has 2 rows, but " + long_y + " has 3 labels");
}

TEST(Npy, rows_do_not_depend_on_threads_and_pieces) {
  TempDir folder;
  std::vector<float> values;
  for (int i = 0; i < 3000; ++i) values.push_back(static_cast<float>(i % 5));
  DatasetOptions options;
  options.cache = false;
  options.path = folder.write("a.npy", test::npy("<f4", "(1000, 3)", numbers(values)));
  for (const size_t threads : {1, 4}) {
    for (const size_t piece_bytes : {1, 100, 1 << 20}) {
      options.read.threads = threads;
      options.read.piece_bytes = piece_bytes;
      const auto data = open_dataset(options);
      ASSERT_TRUE(data.ok());
      ASSERT_EQ(data->rows(), 1000u);
      EXPECT_EQ(data->nonzeros(), 1600u);
      for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(data->label(i), static_cast<float>(i * 3 % 5));
    }
  }
}

TEST(Npy, arrays_that_are_not_supported_are_refused_by_name) {
  TempDir folder;
  const std::string data = numbers<float>({1, 2, 3, 4});
  const std::string fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n";
  EXPECT_EQ(complaint(folder, "a.npy", test::npy_with_header(fortran, data)),
            "a.npy is in Fortran order: save it with numpy.ascontiguousarray");
  EXPECT_EQ(complaint(folder, "a.npy", test::npy(">f4", "(2, 2)", data)),
            "a.npy is big-endian: save it with dtype '<f4'");
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<c8", "(2, 1)", data)),
            "a.npy has elements of type '<c8': whole numbers and 32- or 64-bit floats are read");
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "(4,)", data)),
            "a.npy has one dimension: features need two, rows and columns");
}

TEST(Npy, sizes_that_do_not_fit_are_refused) {
  TempDir folder;
  const std::string data = numbers<float>({1, 2, 3, 4});
  const std::string wrong = "a.npy has 16 bytes of data, which is not what its shape says";
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "(2, 3)", data)), wrong);
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "(1, 2)", data)), wrong);
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "(9223372036854775808, 9223372036854775808)", data)), wrong);
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "()", data)), wrong);
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f4", "(9999999999999999999, 0)", "")), "a.npy holds no rows");
}

TEST(Npy, a_damaged_header_is_an_error) {
  TempDir folder;
  const std::string bad = "a.npy is not a NumPy array: its header cannot be read";
  for (const std::string header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 3, 'shape': (1, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, -1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), 'more': 1}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)} x"}) {
    EXPECT_EQ(complaint(folder, "a.npy", test::npy_with_header(header, "1234")), bad) << header;
  }
  EXPECT_EQ(complaint(folder, "a.npy", "no array"), "a.npy is not a NumPy array: it does not start as one");
  const std::string whole = test::npy("<f4", "(1, 1)", "1234");
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    ASSERT_FALSE(read(folder.write("a.npy", whole.substr(0, bytes))).ok()) << bytes;
  }
}

TEST(Npy, numbers_that_are_not_finite_are_bad_rows) {
  TempDir folder;
  const float nan = std::nanf("");
  const std::string content = test::npy("<f4", "(3, 2)", numbers<float>({1, 2, 3, nan, INFINITY, 4}));
  EXPECT_EQ(complaint(folder, "a.npy", content), "a.npy: row 2, column 2 is not a finite 32-bit number");
  EXPECT_EQ(complaint(folder, "a.npy", test::npy("<f8", "(1, 2)", numbers<double>({1, 1e300}))),
            "a.npy: row 1, column 2 is not a finite 32-bit number");
  DatasetOptions options;
  options.path = folder.write("a.npy", content);
  options.cache = false;
  options.read.bad_rows = BadRowPolicy::kSkip;
  const auto data = open_dataset(options);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->skipped_rows(), 2u);
  EXPECT_EQ(data->rows(), 1u);
}

std::string x_array() { return test::npy("<f8", "(2, 2)", numbers<double>({0.5, 0, 0, 2})); }
std::string y_array() { return test::npy("|u1", "(2,)", std::string("\x01\x02")); }

TEST(Npz, arrays_are_found_by_their_names_stored_or_deflated) {
  TempDir folder;
  for (const bool deflate : {false, true}) {
    for (const auto& [x, y] : {std::pair("X", "y"), {"x", "labels"}, {"data", "label"}}) {
      const std::string archive = test::zip({{"other.npy", "whatever", deflate},
                                             {std::string(y) + ".npy", y_array(), deflate},
                                             {std::string(x) + ".npy", x_array(), deflate}});
      const auto data = read(folder.write("a.npz", archive));
      ASSERT_TRUE(data.ok()) << data.status().text();
      EXPECT_EQ(data->label(1), 2.0f);
      EXPECT_EQ(entries_of(*data, 0), (Entries{{0, 0.5f}}));
      EXPECT_EQ(entries_of(*data, 1), (Entries{{1, 2}}));
    }
  }
}

TEST(Npz, an_array_that_is_missing_is_named_with_those_that_are_there) {
  TempDir folder;
  EXPECT_EQ(complaint(folder, "a.npz", test::zip({{"X.npy", x_array()}, {"targets.npy", y_array()}})),
            "a.npz holds no labels: they must be named y, labels or label; it holds: X.npy, targets.npy");
}

TEST(Npz, damage_anywhere_is_an_error_or_changes_nothing) {
  TempDir folder;
  for (const bool deflate : {false, true}) {
    const std::string whole = test::zip({{"X.npy", x_array(), deflate}, {"y.npy", y_array(), deflate}});
    const auto expected = read(folder.write("a.npz", whole));
    for (size_t byte = 0; byte < whole.size(); ++byte) {
      ASSERT_FALSE(read(folder.write("a.npz", whole.substr(0, byte))).ok()) << byte;
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
      const auto data = read(folder.write("a.npz", damaged));
      if (!data.ok()) continue;
      ASSERT_EQ(data->rows(), 2u);
      ASSERT_EQ(entries_of(*data, 1), entries_of(*expected, 1)) << byte;
    }
  }
}

TEST(Npz, what_is_not_supported_is_refused_by_name) {
  TempDir folder;
  const std::string whole = test::zip({{"X.npy", x_array()}, {"y.npy", y_array()}});
  const size_t entry = whole.find("PK\x01\x02"), end = whole.find("PK\x05\x06");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = whole;
    changed.replace(at, bytes.size(), bytes);
    return complaint(folder, "a.npz", changed);
  };
  const std::string in_64 = number(~uint32_t{0});
  EXPECT_EQ(with(end + 16, in_64), "a.npz is a zip64 archive, which is not supported: keep it below 4 GiB");
  EXPECT_EQ(with(entry + 24, in_64), "a.npz, member X.npy needs zip64, which is not supported: keep it below 4 GiB");
  EXPECT_EQ(with(entry + 8, number<uint16_t>(1)), "a.npz, member X.npy is encrypted");
  EXPECT_EQ(with(entry + 10, number<uint16_t>(93)),
            "a.npz, member X.npy is compressed by method 93: only stored and deflated (8) are supported");
  EXPECT_EQ(with(entry + 16, number<uint32_t>(1)), "a.npz, member X.npy is damaged: its checksum does not hold");
  EXPECT_EQ(complaint(folder, "a.npz", std::string(100'000, 'x')),
            "a.npz is not a whole zip archive: it has no directory");
  const std::string deflated = test::zip({{"X.npy", x_array(), true}, {"y.npy", y_array(), true}});
  std::string huge = deflated;
  huge.replace(deflated.find("PK\x01\x02") + 24, 4, number<uint32_t>(0xfffffff0));
  EXPECT_EQ(complaint(folder, "a.npz", huge), "a.npz is not a whole zip archive: a member claims an impossible size");
}

}  // namespace
}  // namespace talweg
