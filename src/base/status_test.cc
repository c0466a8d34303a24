#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace talweg {
namespace {

Status refuse(int value) {
  if (value < 0) return error(Code::kInvalid, "{} is negative", value);
  return {};
}
Result<int> half(int value) {
  TRY(refuse(value));
  if (value % 2 != 0) return error(Code::kInvalid, "{} is odd", value);
  return value / 2;
}
Result<int> quarter(int value) {
  ASSIGN(const int once, half(value));
  ASSIGN(const int twice, half(once));
  return twice;
}

TEST(Status, is_ok_until_told_otherwise) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().text(), "ok");
  const Status bad = error(Code::kDeadline, "node {} is silent", 3);
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.code(), Code::kDeadline);
  EXPECT_EQ(bad.message(), "node 3 is silent");
  EXPECT_EQ(bad.text(), "deadline passed: node 3 is silent");
}

TEST(Status, told_from_further_up_keeps_its_code) {
  const Status bad = Status(Code::kFull, "no space").within("writing the cache");
  EXPECT_EQ(bad.code(), Code::kFull);
  EXPECT_EQ(bad.message(), "writing the cache: no space");
  EXPECT_TRUE(Status().within("writing the cache").ok());
}

// They travel in frames: a changed number would be another meaning on another node.
TEST(Status, codes_keep_their_numbers_and_have_names) {
  const std::string_view names[] = {"ok",        "invalid", "not found", "deadline passed", "unavailable", "overloaded",
                                    "cancelled", "corrupt", "full",      "system error"};
  for (uint8_t i = 0; i < std::size(names); ++i) EXPECT_EQ(name_of(static_cast<Code>(i)), names[i]);
  EXPECT_EQ(name_of(static_cast<Code>(200)), "unknown code");
}

TEST(Status, of_the_operating_system_says_what_it_refused) {
  EXPECT_EQ(errno_error(ENOENT, "cannot open a").text(), "not found: cannot open a: No such file or directory");
  EXPECT_EQ(errno_error(ENOSPC, "a").code(), Code::kFull);
  EXPECT_EQ(errno_error(EDQUOT, "a").code(), Code::kFull);
  EXPECT_EQ(errno_error(EFBIG, "a").code(), Code::kFull);
  EXPECT_EQ(errno_error(EACCES, "a").code(), Code::kIo);
}

TEST(Result, holds_a_value_or_a_failure) {
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(5);
  ASSERT_TRUE(owner.ok());
  EXPECT_TRUE(owner.status().ok());
  EXPECT_EQ(**owner, 5);
  const std::unique_ptr<int> taken = std::move(owner).value();
  EXPECT_EQ(*taken, 5);
  const Result<std::string> bad = Status(Code::kNotFound, "no table");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().text(), "not found: no table");
}

TEST(Result, a_failure_leaves_the_function_through_try_and_assign) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(7).status().message(), "7 is odd");
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(quarter(-4).status().message(), "-4 is negative");
}

TEST(ResultDeathTest, taking_the_value_of_a_failure_is_a_broken_invariant) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Result<int> bad = Status(Code::kNotFound, "no table");
  EXPECT_DEATH(static_cast<void>(*bad), "broken invariant: ok\\(\\) at .*status.h:[0-9]+");
  EXPECT_DEATH(static_cast<void>(Status(Code::kOk, "fine")), "broken invariant");
}

}  // namespace
}  // namespace talweg
