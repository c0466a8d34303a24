#include "data/cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/temp_dir.h"
#include "data/file.h"
#include "data/test_files.h"

namespace talweg {
namespace {

namespace fs = std::filesystem;

const std::string kText = "1 3:1 70000:1\n0 5:2.5\n1 9:1\n";

DatasetOptions options_for(const std::string& path) {
  DatasetOptions options;
  options.path = path;
  options.read.threads = 1;
  return options;
}

ino_t inode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

void expect_rows_of_text(const Result<Dataset>& data) {
  ASSERT_TRUE(data.ok()) << data.status().text();
  ASSERT_EQ(data->rows(), 3u);
  EXPECT_EQ(data->nonzeros(), 4u);
  EXPECT_EQ(data->max_key(), 70000u);
  EXPECT_EQ(data->label(1), 0.0f);
  EXPECT_EQ(data->entry(0, 1), (std::pair<uint64_t, float>(70000, 1.0f)));
  EXPECT_EQ(data->entry(1, 0), (std::pair<uint64_t, float>(5, 2.5f)));
  EXPECT_EQ(data->entry(2, 0), (std::pair<uint64_t, float>(9, 1.0f)));
}

TEST(Cache, the_second_open_maps_what_the_first_stored) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  expect_rows_of_text(open_dataset(options));
  const ino_t made = inode_of(options.path + ".talweg");
  ASSERT_NE(made, 0u);
  expect_rows_of_text(open_dataset(options));
  EXPECT_EQ(inode_of(options.path + ".talweg"), made);
  EXPECT_EQ(folder.files(), 2u) << "the source and its cache, nothing else";
}

TEST(Cache, a_data_set_outlives_the_removal_of_its_cache_and_its_other_copies) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  auto data = open_dataset(options);
  const Result<Dataset> copy = data;
  data = Dataset();
  fs::remove(options.path + ".talweg");
  expect_rows_of_text(copy);
}

TEST(Cache, a_cache_of_wide_keys_without_values_comes_back) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", "1 99999999999:1\n0\n"));
  for (int open = 0; open < 2; ++open) {
    const auto data = open_dataset(options);
    ASSERT_TRUE(data.ok());
    EXPECT_TRUE(data->has_wide_keys());
    EXPECT_FALSE(data->has_values());
    EXPECT_EQ(data->entry(0, 0), (std::pair<uint64_t, float>(99999999999, 1.0f)));
    EXPECT_EQ(data->row_size(1), 0u);
  }
}

TEST(Cache, a_changed_source_is_parsed_again) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  ASSERT_TRUE(open_dataset(options).ok());
  folder.write("a.svm", "1 1:1\n");
  EXPECT_EQ(open_dataset(options)->rows(), 1u);
  // The same size, another time.
  folder.write("a.svm", "0 2:1\n");
  fs::last_write_time(options.path, fs::last_write_time(options.path) + std::chrono::seconds(5));
  EXPECT_EQ(open_dataset(options)->max_key(), 2u);
}

TEST(Cache, other_options_do_not_take_the_cache) {
  TempDir folder;
  DatasetOptions options = options_for(folder.write("a.csv", "y,z\n1,2\n"));
  EXPECT_EQ(open_dataset(options)->label(0), 1.0f);
  options.read.csv.label = "z";
  EXPECT_EQ(open_dataset(options)->label(0), 2.0f);

  DatasetOptions skip = options_for(folder.write("b.svm", "1 1:1\nbad\n"));
  skip.read.bad_rows = BadRowPolicy::kSkip;
  EXPECT_EQ(open_dataset(skip)->skipped_rows(), 1u);
  EXPECT_EQ(open_dataset(skip)->skipped_rows(), 1u) << "remembered by the cache";
  skip.read.bad_rows = BadRowPolicy::kStop;
  EXPECT_FALSE(open_dataset(skip).ok());
}

TEST(Cache, the_options_of_every_format_count) {
  TempDir folder;
  DatasetOptions table = options_for(folder.write("a.csv", "y,z\n1,7\n"));
  EXPECT_TRUE(open_dataset(table)->has_values());
  table.read.csv.categorical = {"z"};
  EXPECT_FALSE(open_dataset(table)->has_values());
  table.read.csv.hash_bits = 1;
  EXPECT_LT(open_dataset(table)->max_key(), 2u);

  DatasetOptions log = options_for(folder.write("a.criteo", "1" + std::string(39, '\t') + "x\n"));
  log.read.csv.hash_bits = 32;
  EXPECT_GT(open_dataset(log)->max_key(), 1u);
  log.read.csv.hash_bits = 1;
  EXPECT_LT(open_dataset(log)->max_key(), 2u);

  DatasetOptions array = options_for(folder.write("a.npy", test::npy("|u1", "(1, 2)", "\x03\x04")));
  EXPECT_EQ(open_dataset(array)->label(0), 3.0f);
  array.read.csv.label = "2";
  EXPECT_EQ(open_dataset(array)->label(0), 4.0f);
  array.read.labels = folder.write("y.npy", test::npy("|u1", "(1,)", "\x05"));
  EXPECT_EQ(open_dataset(array)->label(0), 5.0f);
}

TEST(Cache, a_cache_cut_short_anywhere_is_made_anew) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  ASSERT_TRUE(open_dataset(options).ok());
  const std::string cache = options.path + ".talweg";
  const std::string whole = TempDir::read(cache);
  for (size_t bytes = 0; bytes < whole.size(); bytes += bytes + 7 < whole.size() ? 7 : 1) {
    folder.write("a.svm.talweg", whole.substr(0, bytes));
    expect_rows_of_text(open_dataset(options));
    ASSERT_EQ(TempDir::read(cache), whole) << bytes;
  }
  folder.write("a.svm.talweg", whole + "x");
  expect_rows_of_text(open_dataset(options));
  EXPECT_EQ(TempDir::read(cache), whole);
}

TEST(Cache, a_flipped_bit_anywhere_is_never_seen_in_the_data) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  ASSERT_TRUE(open_dataset(options).ok());
  const std::string cache = options.path + ".talweg";
  const std::string whole = TempDir::read(cache);
  size_t unnoticed = 0;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
    folder.write("a.svm.talweg", damaged);
    expect_rows_of_text(open_dataset(options));
    unnoticed += TempDir::read(cache) == whole ? 0 : 1;
  }
  EXPECT_EQ(unnoticed, 32u + 52u + 48u) << "the padding after offsets, labels and keys, which nothing reads";
}

TEST(Cache, a_bad_source_leaves_no_cache) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", "1 x\n"));
  EXPECT_FALSE(open_dataset(options).ok());
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Cache, a_folder_for_caches_keeps_files_of_one_name_apart) {
  TempDir folder;
  fs::create_directory(folder.path("x"));
  fs::create_directory(folder.path("y"));
  DatasetOptions first = options_for(folder.write("x/a.svm", "1 1:1\n"));
  DatasetOptions second = options_for(folder.write("y/a.svm", "1 2:1\n"));
  first.cache_dir = second.cache_dir = folder.path("caches/here");
  EXPECT_EQ(open_dataset(first)->max_key(), 1u);
  EXPECT_EQ(open_dataset(second)->max_key(), 2u);
  EXPECT_TRUE(fs::exists(cache_path(first)));
  EXPECT_NE(cache_path(first), cache_path(second));
  EXPECT_FALSE(fs::exists(folder.path("x/a.svm.talweg")));
}

// No file may grow past `bytes` while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    CHECK(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    CHECK(::setrlimit(RLIMIT_FSIZE, &before_) == 0);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(Cache, a_full_disk_is_a_clear_error_and_leaves_nothing_behind) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  Status status;
  {
    const FileSizeLimit limit(300);
    status = open_dataset(options).status();
  }
  EXPECT_EQ(status.code(), Code::kFull);
  EXPECT_NE(status.message().find(options.path + ".talweg"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("needs 464 bytes"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("set data.cache"), std::string::npos) << status.message();
  EXPECT_EQ(folder.files(), 1u);
  expect_rows_of_text(open_dataset(options));
}

TEST(Cache, a_write_that_fails_midway_removes_the_temporary_file) {
  TempDir folder;
  {
    auto file = AtomicFile::create(folder.path("out"));
    ASSERT_TRUE(file.ok());
    const FileSizeLimit limit(10);
    EXPECT_TRUE(file->write(bytes_of(std::string_view("12345678"))).ok());
    EXPECT_EQ(file->write(bytes_of(std::string_view("12345678"))).code(), Code::kFull);
  }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(Cache, leftovers_of_a_killed_process_are_removed) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  folder.write("a.svm.talweg.tmp-1-0", "half");
  ASSERT_TRUE(open_dataset(options).ok());
  EXPECT_EQ(folder.files(), 2u);
}

TEST(Cache, of_processes_that_open_at_once_one_makes_the_cache) {
  TempDir folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "1 1:1 2:1 3:0.5\n";
  const DatasetOptions options = options_for(folder.write("a.svm", text));
  const std::string cache = options.path + ".talweg";
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto data = open_dataset(options);
      const ino_t mapped = inode_of(cache);
      // Had another process made it again after this one, it would be another file by the end.
      ::_exit(data.ok() && data->rows() == 20'000 && mapped != 0 ? static_cast<int>(mapped % 251) + 1 : 0);
    }
    children.push_back(child);
  }
  const auto code_of = [](pid_t child) {
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  };
  std::vector<int> codes;
  for (const pid_t child : children) codes.push_back(code_of(child));
  const int expected = static_cast<int>(inode_of(cache) % 251) + 1;
  EXPECT_EQ(codes, std::vector<int>(children.size(), expected));
  EXPECT_EQ(folder.files(), 2u);
}

TEST(Cache, threads_that_open_at_once_see_the_same_rows) {
  TempDir folder;
  const DatasetOptions options = options_for(folder.write("a.svm", kText));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { expect_rows_of_text(open_dataset(options)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(folder.files(), 2u);
}

TEST(Cache, without_a_cache_nothing_is_written) {
  TempDir folder;
  DatasetOptions options = options_for(folder.write("a.svm", kText));
  options.cache = false;
  expect_rows_of_text(open_dataset(options));
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace talweg
