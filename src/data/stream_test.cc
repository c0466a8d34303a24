#include "data/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/temp_dir.h"
#include "data/line_source.h"

namespace talweg {
namespace {

constexpr size_t kAll = 1'000'000;

ReadOptions options_for(Format format) {
  ReadOptions options;
  options.format = format;
  return options;
}

void append(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::app) << text; }

std::unique_ptr<RowStream> open_stream(const std::string& path, const ReadOptions& options = {}) {
  auto stream = RowStream::open(path, options);
  CHECK(stream.ok());
  return std::move(stream).value();
}

std::vector<float> labels_of(const RowBlock& block) { return {block.labels.span().begin(), block.labels.span().end()}; }

// A pipe with a name, and its writing end.
struct Pipe {
  explicit Pipe(const std::string& path) : path(path) { CHECK(::mkfifo(path.c_str(), 0600) == 0); }
  // Only once someone reads.
  void open_writer() { writer = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC)); }
  void close_writer() { const Fd closed = std::move(writer); }
  void write(std::string_view text) const {
    CHECK(::write(writer.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string path;
  Fd writer;
};

TEST(RowStream, a_growing_file_gives_its_lines_as_they_are_completed) {
  TempDir folder;
  const std::string path = folder.write("a.svm", "1 1:1\n2 2:1\n3");
  const auto stream = open_stream(path);
  RowBlock rows;
  auto read = stream->read(kAll, 0, &rows);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->rows, 2u);
  EXPECT_TRUE(read->at_end_for_now);
  EXPECT_FALSE(read->ended);
  append(path, "0 3:1\n40 4:1");
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 1u);
  EXPECT_EQ(labels_of(rows), (std::vector<float>{1, 2, 30}));
  EXPECT_TRUE(stream->read(kAll, 1, &rows)->at_end_for_now);
  stream->take_as_complete();
  read = stream->read(kAll, 0, &rows);
  EXPECT_EQ(read->rows, 1u) << "the last line needs no end any more";
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(labels_of(rows).back(), 40.0f);
}

TEST(RowStream, gives_no_more_rows_than_are_asked_for_and_loses_none) {
  TempDir folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{} 1:1\n{}", i, i % 3 == 0 ? "\n# a comment\n" : "");
  const auto stream = open_stream(folder.write("a.svm", text));
  RowBlock rows;
  for (size_t expected = 0; expected < 1000;) {
    const auto read = stream->read(7, 0, &rows);
    ASSERT_TRUE(read.ok());
    expected += std::min<size_t>(7, 1000 - expected);
    ASSERT_EQ(rows.rows(), expected);
  }
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(rows.labels.span()[i], static_cast<float>(i));
}

TEST(RowStream, a_pipe_ends_when_its_writer_does) {
  TempDir folder;
  Pipe pipe(folder.path("pipe"));
  const auto stream = open_stream(pipe.path, options_for(Format::kLibSvm));
  RowBlock rows;
  EXPECT_TRUE(stream->read(kAll, 1, &rows)->at_end_for_now) << "nobody writes yet";
  pipe.open_writer();
  pipe.write("5 1:1\n6 1:");
  auto read = stream->read(kAll, 0, &rows);
  EXPECT_EQ(read->rows, 1u);
  EXPECT_FALSE(read->ended);
  pipe.write("1");
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 0u);
  pipe.close_writer();
  read = stream->read(kAll, 0, &rows);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rows, 1u) << "the line that was cut off by the end";
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(labels_of(rows), (std::vector<float>{5, 6}));
  EXPECT_TRUE(stream->read(kAll, 0, &rows)->ended);
}

TEST(RowStream, standard_input_is_read_to_its_end) {
  TempDir folder;
  const Fd file(::open(folder.write("in", "y,a\n1,2\n3,4").c_str(), O_RDONLY | O_CLOEXEC));
  const Fd kept(::dup(STDIN_FILENO));
  ASSERT_EQ(::dup2(file.get(), STDIN_FILENO), STDIN_FILENO);
  RowBlock rows;
  const auto read = open_stream("-", options_for(Format::kCsv))->read(kAll, 0, &rows);
  if (kept.valid()) ::dup2(kept.get(), STDIN_FILENO);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(labels_of(rows), (std::vector<float>{1, 3}));
}

TEST(RowStream, a_header_that_comes_in_parts_is_waited_for) {
  TempDir folder;
  const std::string path = folder.write("a.csv", "\xEF\xBB\xBFla");
  ReadOptions options;
  options.csv.label = "label";
  const auto stream = open_stream(path, options);
  RowBlock rows;
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 0u);
  append(path, "bel,a\n7,8\n");
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 1u);
  EXPECT_EQ(labels_of(rows), (std::vector<float>{7}));
  append(path, "x,8\n");
  EXPECT_EQ(stream->read(kAll, 0, &rows).status().message(), path + ":3: column 'label': 'x' is not a number");
  EXPECT_FALSE(stream->read(kAll, 0, &rows).ok()) << "it stays failed";
}

TEST(RowStream, bad_rows_are_skipped_up_to_a_limit_over_all_reads) {
  TempDir folder;
  const std::string path = folder.write("a.svm", "1 1:1\nbad\n2 1:1\n");
  ReadOptions options;
  options.bad_rows = BadRowPolicy::kSkip;
  options.max_bad_rows = 1;
  const auto stream = open_stream(path, options);
  RowBlock rows;
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 2u);
  EXPECT_EQ(stream->bad_rows(), 1u);
  append(path, "3 1:1\nworse\n");
  EXPECT_EQ(
      stream->read(kAll, 0, &rows).status().message(),
      "more than 1 bad rows; the first is " + path + ":2: 'bad' is not a label: a line starts with a finite number");
}

TEST(RowStream, a_file_that_shrinks_is_an_error) {
  TempDir folder;
  const std::string path = folder.write("a.svm", "1 1:1\n2 1:1\n");
  const auto stream = open_stream(path);
  RowBlock rows;
  ASSERT_EQ(stream->read(kAll, 0, &rows)->rows, 2u);
  std::filesystem::resize_file(path, 6);
  EXPECT_EQ(stream->read(kAll, 0, &rows).status().message(),
            path + " was cut from 12 bytes to 6 while it was followed");
}

TEST(RowStream, a_line_without_end_is_an_error_and_not_held_forever) {
  TempDir folder;
  const auto stream = open_stream(folder.write("a.svm", "1 1:1\n2" + std::string(kMaxLineBytes + 1, ' ')));
  RowBlock rows;
  Status failure;
  for (int call = 0; call < 10 && failure.ok(); ++call) failure = stream->read(kAll, 0, &rows).status();
  EXPECT_NE(failure.message().find(":2: the line is longer than 16777216 bytes"), std::string::npos)
      << failure.message();
  EXPECT_EQ(rows.rows(), 1u);
}

TEST(RowStream, one_call_takes_a_bounded_amount_even_if_no_row_comes_of_it) {
  TempDir folder;
  const auto stream = open_stream(folder.write("a.svm", std::string(RowStream::kMaxBytesPerRead + 10, '\n') + "1\n"));
  RowBlock rows;
  const auto read = stream->read(kAll, 0, &rows);
  EXPECT_EQ(read->rows, 0u);
  EXPECT_FALSE(read->at_end_for_now);
  EXPECT_EQ(stream->read(kAll, 0, &rows)->rows, 1u);
}

TEST(RowStream, what_cannot_be_followed_is_refused) {
  TempDir folder;
  EXPECT_EQ(RowStream::open("-", {}).status().message(),
            "standard input has no name to tell its format by: set the format");
  EXPECT_EQ(RowStream::open(folder.path("none.svm"), {}).status().code(), Code::kNotFound);
  EXPECT_EQ(RowStream::open("a.npy", {}).status().message(),
            "a.npy cannot be read as it comes: only libsvm, csv, tsv and criteo can");
  const std::string packed = folder.write("a.svm", "\x1f\x8b\x08 and so on");
  RowBlock rows;
  EXPECT_EQ(open_stream(packed)->read(kAll, 0, &rows).status().message(),
            packed + " is compressed: a stream must be plain text, as from zcat or zstdcat");
}

}  // namespace
}  // namespace talweg
