#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace talweg {
namespace {

alignas(16) constexpr std::array<uint64_t, 4> kWords = {1, 2, 3, 4};
const Bytes kBytes = bytes_of(std::span<const uint64_t>(kWords));

TEST(ByteCursor, takes_typed_runs_off_the_front) {
  ByteCursor cursor(kBytes);
  const auto words = cursor.take<uint64_t>(2);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[1], 2u);
  EXPECT_EQ(cursor.take<uint32_t>(1)[0], 3u);
  EXPECT_EQ(cursor.left(), 12u);
  EXPECT_EQ(cursor.take<std::byte>(12).size(), 12u);
  EXPECT_EQ(cursor.take<uint64_t>(0).size(), 0u);
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(cursor.left(), 0u);
}

TEST(ByteCursor, more_than_is_left_is_refused_and_nothing_after_it_is_given) {
  ByteCursor cursor(kBytes);
  EXPECT_TRUE(cursor.take<uint64_t>(5).empty());
  EXPECT_FALSE(cursor.ok());
  EXPECT_TRUE(cursor.take<uint64_t>(1).empty());
  EXPECT_FALSE(cursor.ok());
}

TEST(ByteCursor, a_count_whose_bytes_overflow_is_refused) {
  for (const size_t count : {~size_t{0}, (~size_t{0} / 8) + 2, size_t{1} << 61}) {
    ByteCursor cursor(kBytes);
    EXPECT_TRUE(cursor.take<uint64_t>(count).empty());
    EXPECT_FALSE(cursor.ok());
  }
}

TEST(ByteCursor, data_that_is_not_aligned_for_its_type_is_refused) {
  for (size_t offset = 1; offset < 8; ++offset) {
    ByteCursor cursor(kBytes.subspan(offset));
    EXPECT_TRUE(cursor.take<uint64_t>(1).empty());
    EXPECT_FALSE(cursor.ok());
  }
  ByteCursor cursor(kBytes);
  EXPECT_EQ(cursor.take<std::byte>(4).size(), 4u);
  EXPECT_EQ(cursor.take<uint32_t>(1).size(), 1u);
  EXPECT_TRUE(cursor.ok());
}

TEST(ByteCursor, of_nothing_gives_nothing) {
  ByteCursor cursor{Bytes()};
  EXPECT_TRUE(cursor.take<uint64_t>(0).empty());
  EXPECT_TRUE(cursor.ok());
  EXPECT_TRUE(cursor.take<std::byte>(1).empty());
  EXPECT_FALSE(cursor.ok());
}

TEST(Bytes, text_and_bytes_view_the_same_memory) {
  const std::string text = "pull";
  EXPECT_EQ(static_cast<const void*>(bytes_of(text).data()), text.data());
  EXPECT_EQ(text_of(bytes_of(text)), "pull");
  EXPECT_EQ(text_of(Bytes()), "");
}

TEST(Buffer, owns_as_many_bytes_as_asked_for_and_moves_without_copying) {
  EXPECT_TRUE(Buffer().empty());
  Buffer buffer(3);
  buffer.bytes()[2] = std::byte{7};
  const std::byte* const where = buffer.data();
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved.data(), where);
  EXPECT_EQ(moved.bytes()[2], std::byte{7});
}

}  // namespace
}  // namespace talweg
