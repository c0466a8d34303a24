// The ring: a stream that wraps, in pieces, between threads, with a partner that cannot be trusted.
#include "io/ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/rng.h"

namespace talweg {
namespace {

std::byte stream_byte(uint64_t at) { return static_cast<std::byte>(mix64(at / 8) >> (8 * (at % 8))); }

std::vector<std::byte> stream_bytes(uint64_t from, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = stream_byte(from + i);
  return bytes;
}

std::optional<size_t> write(RingWriter& writer, Bytes bytes) {
  const auto n = writer.write(bytes);
  writer.publish();
  return n;
}

// docs/formats.md has these numbers.
TEST(Ring, the_layout_is_the_documented_one) {
  EXPECT_EQ(offsetof(Ring, written), 0u);
  EXPECT_EQ(offsetof(Ring, read), 128u);
  EXPECT_EQ(offsetof(Ring, writer_waits), 256u);
  EXPECT_EQ(offsetof(Ring, closed), 260u);
  EXPECT_EQ(offsetof(Ring, data), 384u);
  EXPECT_EQ(sizeof(Ring), 4'194'688u);
}

TEST(Ring, bytes_come_out_in_order_across_many_wraps) {
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  const size_t piece = limits::kRingBytes / 3 + 7;
  std::vector<std::byte> got(piece);
  for (uint64_t at = 0; at < 10 * limits::kRingBytes; at += piece) {
    const auto bytes = stream_bytes(at, piece);
    ASSERT_EQ(write(writer, bytes), piece);
    EXPECT_FALSE(reader.empty());
    ASSERT_EQ(reader.read(got), piece);
    ASSERT_EQ(got, bytes);
    EXPECT_TRUE(reader.empty());
  }
}

TEST(Ring, a_full_ring_takes_no_more_and_a_little_room_is_used) {
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  const auto bytes = stream_bytes(0, limits::kRingBytes + 100);
  EXPECT_EQ(write(writer, bytes), limits::kRingBytes);
  EXPECT_FALSE(writer.has_room());
  EXPECT_EQ(write(writer, bytes), 0u);
  std::vector<std::byte> got(33);
  EXPECT_EQ(reader.read(got), 33u);
  EXPECT_TRUE(writer.has_room());
  EXPECT_EQ(write(writer, Bytes(bytes).subspan(limits::kRingBytes)), 33u);
}

TEST(Ring, a_read_of_more_than_there_is_takes_what_there_is) {
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  std::vector<std::byte> got(100);
  EXPECT_EQ(reader.read(got), 0u);
  ASSERT_EQ(write(writer, stream_bytes(0, 10)), 10u);
  EXPECT_EQ(reader.read(got), 10u);
  EXPECT_EQ(got[9], stream_byte(9));
}

TEST(Ring, a_writer_that_asked_for_room_is_rung_once_half_of_it_is_free) {
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  ASSERT_EQ(write(writer, stream_bytes(0, limits::kRingBytes)), limits::kRingBytes);
  std::vector<std::byte> got(limits::kRingBytes / 2 - 1);
  EXPECT_FALSE(reader.writer_wants_room());
  writer.ask_for_room();
  ASSERT_EQ(reader.read(got), got.size());
  EXPECT_FALSE(reader.writer_wants_room());
  ASSERT_EQ(reader.read(MutableBytes(got).first(1)), 1u);
  EXPECT_TRUE(reader.writer_wants_room());
  EXPECT_FALSE(reader.writer_wants_room());
}

TEST(Ring, two_threads_stream_pieces_of_random_sizes) {
  const auto ring = std::make_unique<Ring>();
  constexpr uint64_t kTotal = 8 << 20;
  std::thread sender([&ring] {
    RingWriter writer(*ring);
    Rng rng(7, 0);
    for (uint64_t at = 0; at < kTotal;) {
      const auto bytes = stream_bytes(at, std::min(kTotal - at, 1 + rng.below(60'000)));
      for (size_t done = 0; done < bytes.size();) {
        const auto n = write(writer, Bytes(bytes).subspan(done));
        ASSERT_TRUE(n.has_value());
        done += *n;
        if (*n == 0) std::this_thread::yield();
      }
      at += bytes.size();
    }
  });
  RingReader reader(*ring);
  Rng rng(7, 1);
  std::vector<std::byte> got(60'000);
  uint64_t wrong = 0;
  for (uint64_t at = 0; at < kTotal;) {
    const auto n = reader.read(MutableBytes(got).first(1 + rng.below(got.size())));
    if (!n) {
      ADD_FAILURE() << "the positions made no sense at " << at;
      break;
    }
    for (size_t i = 0; i < *n; ++i) wrong += got[i] != stream_byte(at + i);
    at += *n;
    if (*n == 0) std::this_thread::yield();
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(Ring, a_reader_refuses_positions_that_make_no_sense) {
  for (const uint64_t nonsense : {uint64_t{limits::kRingBytes} + 11, ~uint64_t{0}, uint64_t{9}}) {
    const auto ring = std::make_unique<Ring>();
    RingWriter writer(*ring);
    RingReader reader(*ring);
    std::vector<std::byte> got(10);
    ASSERT_EQ(write(writer, stream_bytes(0, 10)), 10u);
    ASSERT_EQ(reader.read(got), 10u);
    ring->written = nonsense;
    EXPECT_FALSE(reader.empty());
    EXPECT_EQ(reader.read(got), std::nullopt) << nonsense;
  }
}

TEST(Ring, a_writer_refuses_positions_that_make_no_sense_and_does_not_wait_for_room_instead) {
  for (const uint64_t nonsense : {uint64_t{limits::kRingBytes} + 1, ~uint64_t{0} - limits::kRingBytes}) {
    const auto ring = std::make_unique<Ring>();
    RingWriter writer(*ring);
    ASSERT_EQ(write(writer, stream_bytes(0, limits::kRingBytes)), limits::kRingBytes);
    ring->read = nonsense;
    EXPECT_TRUE(writer.has_room());
    EXPECT_EQ(write(writer, stream_bytes(0, 10)), std::nullopt) << nonsense;
  }
}

}  // namespace
}  // namespace talweg
