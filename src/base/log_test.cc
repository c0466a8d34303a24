// The log is the process's own. Files added to it stay, so a test expects nothing of levels below a warning at its
// start.
#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "base/config.h"

namespace talweg {
namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "talweg_log_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    log_to_stderr(Level::kWarning);
  }
  std::string folder_;
};

// What standard error gets while `work` runs.
template <class Work>
std::string shown(Work work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST_F(Log, standard_error_gets_warnings_and_errors_only) {
  const std::string text = shown([] {
    log_info("fine {}", 1);
    log_warning("slow {}", 2);
    log_error("lost {}", 3);
  });
  EXPECT_EQ(text, "talweg warning: slow 2\ntalweg error: lost 3\n");
}

TEST_F(Log, a_file_gets_everything_from_info_up_marked_with_who_wrote_it) {
  const std::string path = folder_ + "/log.txt";
  ASSERT_TRUE(log_to_file(path, "worker 2").ok());
  const std::string text = shown([] {
    log_write(Level::kDebug, "detail");
    log_info("epoch {}", 1);
    log_warning("a {{brace}} is text");
  });
  EXPECT_EQ(text, "talweg warning: a {brace} is text\n");
  const Result<std::string> lines = read_text_file(path);
  ASSERT_TRUE(lines.ok()) << lines.status().text();
  const std::string stamp = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3} ";
  const std::regex expected(stamp + "I worker 2 epoch 1\\n" + stamp + "W worker 2 a \\{brace\\} is text\\n");
  EXPECT_TRUE(std::regex_match(*lines, expected)) << *lines;
}

TEST_F(Log, standard_error_can_be_made_to_show_more) {
  log_to_stderr(Level::kDebug);
  EXPECT_TRUE(log_wanted(Level::kDebug));
  EXPECT_EQ(shown([] { log_write(Level::kDebug, "detail {}"); }), "talweg debug: detail {}\n");
  log_to_stderr(Level::kError);
  EXPECT_EQ(shown([] { log_warning("slow"); }), "");
}

TEST_F(Log, a_file_that_cannot_be_opened_is_told) {
  const Status outcome = log_to_file(folder_, "worker 2");
  EXPECT_EQ(outcome.code(), Code::kIo);
  EXPECT_NE(outcome.message().find("cannot open the log file " + folder_), std::string::npos) << outcome.message();
}

}  // namespace
}  // namespace talweg
