#include "data/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/temp_dir.h"
#include "data/test_files.h"

namespace talweg {
namespace {

Result<ParsedRows> read(const std::string& path, const ReadOptions& options) {
  ASSIGN(const MappedFile file, MappedFile::open(path));
  return read_rows(file, options);
}

ReadOptions in_pieces(size_t piece_bytes, size_t threads) {
  ReadOptions options;
  options.piece_bytes = piece_bytes;
  options.threads = threads;
  return options;
}

// Rows that all differ; every tenth has a value, so that blocks of both kinds are joined.
std::string numbered_rows(size_t rows) {
  std::string text;
  for (size_t i = 0; i < rows; ++i)
    text += fmt::format("{} {}:1{}\n", i, i, i % 10 == 9 ? fmt::format(" 7:{}.5", i) : "");
  return text;
}

TEST(Reader, the_rows_do_not_depend_on_pieces_and_threads) {
  TempDir folder;
  const std::string path = folder.write("a.svm", numbered_rows(1000));
  for (const size_t piece_bytes : {1, 2, 7, 100, 4096, 1 << 20}) {
    for (const size_t threads : {1, 4}) {
      const auto rows = read(path, in_pieces(piece_bytes, threads));
      ASSERT_TRUE(rows.ok());
      const Dataset data = to_dataset(*rows);
      ASSERT_EQ(data.rows(), 1000u);
      EXPECT_EQ(data.nonzeros(), 1100u);
      EXPECT_EQ(data.max_key(), 999u);
      for (size_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(data.label(i), static_cast<float>(i));
        ASSERT_EQ(data.entry(i, 0), (std::pair<uint64_t, float>(i, 1.0f)));
        if (i % 10 != 9) continue;
        ASSERT_EQ(data.entry(i, 1), (std::pair<uint64_t, float>(7, static_cast<float>(i) + 0.5f)));
      }
    }
  }
}

TEST(Reader, blocks_with_small_and_large_keys_are_joined) {
  TempDir folder;
  const std::string path = folder.write("a.svm", "1 1:1\n0 4294967296:1\n1 2:1\n");
  const auto rows = read(path, in_pieces(1, 2));
  ASSERT_TRUE(rows.ok());
  const Dataset data = to_dataset(*rows);
  EXPECT_TRUE(data.has_wide_keys());
  EXPECT_EQ(data.entry(0, 0).first, 1u);
  EXPECT_EQ(data.entry(1, 0).first, 4294967296u);
  EXPECT_EQ(data.entry(2, 0).first, 2u);
}

TEST(Reader, a_large_key_in_a_skipped_row_does_not_widen_the_rest) {
  TempDir folder;
  ReadOptions options;
  options.bad_rows = BadRowPolicy::kSkip;
  const auto rows = read(folder.write("a.svm", "1 5:1\n0 4294967296:3 x\n1 6:1\n"), options);
  ASSERT_TRUE(rows.ok());
  const Dataset data = to_dataset(*rows);
  EXPECT_FALSE(data.has_wide_keys());
  EXPECT_EQ(data.entry(1, 0), (std::pair<uint64_t, float>(6, 1.0f)));
}

TEST(Reader, the_first_bad_line_of_the_file_is_reported_whatever_the_threads) {
  TempDir folder;
  std::string text = numbered_rows(300);
  text += "1 first\n" + numbered_rows(300) + "1 second\n" + numbered_rows(300);
  const std::string path = folder.write("a.svm", text);
  for (const size_t piece_bytes : {1, 50, 1000, 1 << 20}) {
    for (const size_t threads : {1, 2, 8}) {
      const auto rows = read(path, in_pieces(piece_bytes, threads));
      EXPECT_EQ(rows.status().code(), Code::kInvalid);
      EXPECT_EQ(rows.status().message(), path + ":301: 'first' is not index:value: the index must be a whole number");
    }
  }
}

TEST(Reader, bad_rows_are_skipped_and_counted_over_all_pieces) {
  TempDir folder;
  const std::string path = folder.write("a.svm", numbered_rows(100) + "bad\n" + numbered_rows(100) + "1 worse\n1 3:1");
  ReadOptions options = in_pieces(64, 2);
  options.bad_rows = BadRowPolicy::kSkip;
  options.max_bad_rows = 2;
  const auto rows = read(path, options);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->shape.skipped_rows, 2u);
  EXPECT_EQ(to_dataset(*rows).skipped_rows(), 2u);
  EXPECT_EQ(rows->shape.rows, 201u);
  options.max_bad_rows = 1;
  EXPECT_EQ(
      read(path, options).status().message(),
      "more than 1 bad rows; the first is " + path + ":101: 'bad' is not a label: a line starts with a finite number");
}

TEST(Reader, csv_errors_count_the_header_line) {
  TempDir folder;
  std::string text = "y,a\n";
  for (int i = 0; i < 50; ++i) text += "1,2\n";
  const std::string path = folder.write("a.csv", text + "1,x\n");
  EXPECT_EQ(read(path, in_pieces(10, 2)).status().message(), path + ":52: column 'a': 'x' is not a number");
}

TEST(Reader, compressed_text_gives_the_same_rows_whatever_the_threads_and_pieces) {
  TempDir folder;
  const std::string text = numbered_rows(3000);
  const auto expected = read(folder.write("a.svm", text), in_pieces(1 << 20, 1));
  ASSERT_TRUE(expected.ok());
  const std::string paths[] = {folder.write("a.svm.gz", test::gzip(text)), folder.write("a.svm.zst", test::zstd(text)),
                               folder.write("b.svm", test::gzip(text.substr(0, 777)) + test::gzip(text.substr(777)))};
  for (const std::string& path : paths) {
    for (const size_t piece_bytes : {100, 4096, 1 << 20}) {
      for (const size_t threads : {1, 4}) {
        const auto rows = read(path, in_pieces(piece_bytes, threads));
        ASSERT_TRUE(rows.ok()) << rows.status().text();
        const Dataset data = to_dataset(*rows);
        ASSERT_EQ(data.rows(), 3000u);
        EXPECT_EQ(data.nonzeros(), 3300u);
        for (size_t i = 0; i < 3000; ++i) ASSERT_EQ(data.label(i), static_cast<float>(i));
      }
    }
  }
}

TEST(Reader, errors_in_compressed_text_count_lines_from_the_start) {
  TempDir folder;
  std::string text = "y,a\n";
  for (int i = 0; i < 5000; ++i) text += "1,2\n";
  const std::string path = folder.write("a.csv.gz", test::gzip(text + "1,x\n1,z\n"));
  ReadOptions options = in_pieces(100, 4);
  EXPECT_EQ(read(path, options).status().message(), path + ":5002: column 'a': 'x' is not a number");
  options.bad_rows = BadRowPolicy::kSkip;
  EXPECT_EQ(read(path, options)->shape.skipped_rows, 2u);
  options.max_bad_rows = 1;
  EXPECT_EQ(read(path, options).status().message(),
            "more than 1 bad rows; the first is " + path + ":5002: column 'a': 'x' is not a number");
}

TEST(Reader, compressed_files_that_cannot_be_read_are_told_apart) {
  TempDir folder;
  const ReadOptions options;
  const std::string plain = folder.write("a.svm.gz", "1 2:3\n");
  EXPECT_EQ(read(plain, options).status().message(), plain + " is neither gzip nor Zstandard data, as its name says");
  const std::string empty = folder.write("b.svm.gz", test::gzip(""));
  EXPECT_EQ(read(empty, options).status().message(), empty + " is empty");
  const std::string whole = test::zstd(numbered_rows(1000));
  const std::string cut = folder.write("c.svm.zst", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(read(cut, options).status().message(),
            fmt::format("{} is cut short: its compressed data has no end at byte {}", cut, whole.size() - 1));
}

TEST(Reader, files_that_cannot_be_read_are_told_apart) {
  TempDir folder;
  const ReadOptions options;
  EXPECT_EQ(read(folder.path("none.svm"), options).status().code(), Code::kNotFound);
  EXPECT_NE(read(folder.path("none.svm"), options).status().message().find("none.svm"), std::string::npos);
  EXPECT_EQ(read(folder.path(""), options).status().message(), folder.path("") + " is a directory, not a file");
  EXPECT_EQ(read("/dev/null", options).status().message(), "/dev/null is not a regular file");
  const std::string empty = folder.write("empty.svm", "");
  EXPECT_EQ(read(empty, options).status().message(), empty + " is empty");
  const std::string blank = folder.write("blank.svm", "\n# nothing\n");
  EXPECT_EQ(read(blank, options).status().message(), blank + " holds no rows");
}

TEST(Reader, the_format_goes_by_the_extension_unless_it_is_set) {
  EXPECT_EQ(*format_of("a.svm", Format::kAuto), Format::kLibSvm);
  EXPECT_EQ(*format_of("a.libsvm", Format::kAuto), Format::kLibSvm);
  EXPECT_EQ(*format_of("a.txt", Format::kAuto), Format::kLibSvm);
  EXPECT_EQ(*format_of("a.csv", Format::kAuto), Format::kCsv);
  EXPECT_EQ(*format_of("a.tsv", Format::kAuto), Format::kTsv);
  EXPECT_EQ(*format_of("a.criteo", Format::kAuto), Format::kCriteo);
  EXPECT_EQ(*format_of("a.npy", Format::kAuto), Format::kNpy);
  EXPECT_EQ(*format_of("a.npz", Format::kAuto), Format::kNpz);
  EXPECT_EQ(*format_of("a.idx", Format::kAuto), Format::kIdx);
  EXPECT_EQ(*format_of("train-images-idx3-ubyte", Format::kAuto), Format::kIdx);
  EXPECT_EQ(*format_of("a.csv.gz", Format::kAuto), Format::kCsv);
  EXPECT_EQ(*format_of("a.txt.zst", Format::kAuto), Format::kLibSvm);
  EXPECT_EQ(format_of("a.gz", Format::kAuto).status().code(), Code::kInvalid);
  EXPECT_EQ(*format_of("a.data", Format::kLibSvm), Format::kLibSvm);
  EXPECT_EQ(format_of("a.data", Format::kAuto).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace talweg
