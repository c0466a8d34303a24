#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace talweg {
namespace {

std::vector<std::byte> run_of(size_t count, int first, int step) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i) * step);
  return bytes;
}

// The vectors of RFC 3720, B.4, and the check value of the CRC catalogues.
TEST(Crc32c, gives_the_published_values) {
  for (const auto& crc : {&crc32c, &crc32c_portable}) {
    EXPECT_EQ(crc({}, 0), 0u);
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xe3069283u);
    EXPECT_EQ(crc(run_of(32, 0, 0), 0), 0x8a9136aau);
    EXPECT_EQ(crc(run_of(32, 0xff, 0), 0), 0x62a8ab43u);
    EXPECT_EQ(crc(run_of(32, 0, 1), 0), 0x46dd794eu);
    EXPECT_EQ(crc(run_of(32, 31, -1), 0), 0x113fdb5cu);
  }
}

TEST(Crc32c, the_hardware_and_the_table_agree_at_every_length_and_offset) {
  std::vector<std::byte> bytes(256);
  Rng rng(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next());
  for (size_t offset = 0; offset < 16; ++offset) {
    for (size_t length = 0; length + offset <= bytes.size(); ++length) {
      const Bytes part = Bytes(bytes).subspan(offset, length);
      ASSERT_EQ(crc32c(part), crc32c_portable(part)) << offset << " " << length;
      ASSERT_EQ(crc32c(part, 0xdeadbeef), crc32c_portable(part, 0xdeadbeef)) << offset << " " << length;
    }
  }
}

TEST(Crc32c, of_parts_one_after_the_other_is_that_of_the_whole) {
  const std::vector<std::byte> bytes = run_of(100, 3, 7);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const Bytes all(bytes);
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
  }
}

TEST(Crc32c, sees_every_single_changed_bit) {
  std::vector<std::byte> bytes = run_of(64, 5, 11);
  const uint32_t good = crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    EXPECT_NE(crc32c(bytes), good);
    bytes[bit / 8] ^= mask;
  }
}

}  // namespace
}  // namespace talweg
