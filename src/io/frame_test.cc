// The frame's header: what goes in comes out, and nothing else is let in.
#include "io/frame.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace talweg {
namespace {

using Encoded = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader sample() {
  return {.kind = FrameKind::kRequest,
          .code = Code::kOverloaded,
          .tag = 0x1122334455667788,
          .id = 0x99aabbccddeeff00,
          .incarnation = 1'700'000'000'000'000,
          .from = 77,
          .sequence = 12345,
          .routing_version = 9,
          .head_bytes = limits::kMaxHeadBytes,
          .head_crc = 0xdeadbeef,
          .body_bytes = limits::kMaxBodyBytes};
}

Encoded encoded(const FrameHeader& header) {
  Encoded bytes;
  encode(header, bytes);
  return bytes;
}

// Changes bytes and makes the checksum fit again, as someone who knows the format would.
Encoded forged(size_t offset, std::vector<uint8_t> bytes) {
  Encoded frame = encoded(sample());
  std::memcpy(frame.data() + offset, bytes.data(), bytes.size());
  const uint32_t crc = crc32c(Bytes(frame).first(kFrameHeaderBytes - 4));
  std::memcpy(frame.data() + kFrameHeaderBytes - 4, &crc, 4);
  return frame;
}

void expect_refused(const Encoded& frame, Code code, std::string_view reason) {
  const auto decoded = decode_frame(frame);
  ASSERT_FALSE(decoded.ok()) << reason;
  EXPECT_EQ(decoded.status().code(), code) << decoded.status().text();
  EXPECT_NE(decoded.status().message().find(reason), std::string::npos) << decoded.status().text();
}

TEST(Frame, a_header_comes_back_as_it_was) {
  const FrameHeader header = sample();
  const auto decoded = decode_frame(encoded(header));
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_EQ(decoded->kind, header.kind);
  EXPECT_EQ(decoded->code, header.code);
  EXPECT_EQ(decoded->tag, header.tag);
  EXPECT_EQ(decoded->id, header.id);
  EXPECT_EQ(decoded->incarnation, header.incarnation);
  EXPECT_EQ(decoded->from, header.from);
  EXPECT_EQ(decoded->sequence, header.sequence);
  EXPECT_EQ(decoded->routing_version, header.routing_version);
  EXPECT_EQ(decoded->head_bytes, header.head_bytes);
  EXPECT_EQ(decoded->head_crc, header.head_crc);
  EXPECT_EQ(decoded->body_bytes, header.body_bytes);
}

TEST(Frame, the_layout_is_the_documented_one) {
  const Encoded frame = encoded(sample());
  const auto at = [&frame]<class T>(size_t offset, T) {
    T value;
    std::memcpy(&value, frame.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(text_of(Bytes(frame).first(4)), "TLWG");
  EXPECT_EQ(at(4, uint16_t{}), kFrameVersion);
  EXPECT_EQ(at(6, uint8_t{}), 3);
  EXPECT_EQ(at(7, uint8_t{}), 5);
  EXPECT_EQ(at(8, uint64_t{}), sample().tag);
  EXPECT_EQ(at(16, uint64_t{}), sample().id);
  EXPECT_EQ(at(24, uint64_t{}), sample().incarnation);
  EXPECT_EQ(at(32, uint64_t{}), sample().body_bytes);
  EXPECT_EQ(at(40, uint32_t{}), sample().head_bytes);
  EXPECT_EQ(at(44, uint32_t{}), sample().from);
  EXPECT_EQ(at(48, uint32_t{}), sample().sequence);
  EXPECT_EQ(at(52, uint32_t{}), sample().routing_version);
  EXPECT_EQ(at(56, uint32_t{}), sample().head_crc);
  EXPECT_EQ(at(60, uint32_t{}), crc32c(Bytes(frame).first(60)));
}

TEST(Frame, every_flipped_bit_is_refused) {
  const Encoded good = encoded(sample());
  for (size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
    Encoded bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_frame(bad).ok()) << "bit " << bit;
  }
}

TEST(Frame, another_version_says_what_to_do) { expect_refused(forged(4, {2, 0}), Code::kInvalid, "same release"); }

TEST(Frame, kinds_and_codes_that_do_not_exist_are_refused) {
  expect_refused(forged(6, {0}), Code::kCorrupt, "frame kind 0");
  expect_refused(forged(6, {4}), Code::kCorrupt, "frame kind 4");
  expect_refused(forged(6, {255}), Code::kCorrupt, "frame kind 255");
  expect_refused(forged(7, {static_cast<uint8_t>(Code::kIo) + 1}), Code::kCorrupt, "status code");
  for (uint8_t kind = 1; kind <= 3; ++kind) EXPECT_TRUE(decode_frame(forged(6, {kind})).ok());
}

TEST(Frame, lengths_past_the_limits_are_refused_though_the_checksum_holds) {
  expect_refused(forged(40, {1, 0, 16, 0}), Code::kCorrupt, "frame head of 1048577 bytes");
  expect_refused(forged(40, {255, 255, 255, 255}), Code::kCorrupt, "frame head");
  expect_refused(forged(32, {1, 0, 0, 64, 0, 0, 0, 0}), Code::kCorrupt, "frame body of 1073741825 bytes");
  expect_refused(forged(32, std::vector<uint8_t>(8, 255)), Code::kCorrupt, "frame body");
}

TEST(Frame, a_head_that_changed_on_the_way_is_refused) {
  std::string head = "a protobuf message";
  FrameHeader header;
  header.head_crc = crc32c(bytes_of(head));
  EXPECT_TRUE(check_head(header, bytes_of(head)).ok());
  for (char& byte : head) {
    byte ^= 4;
    EXPECT_EQ(check_head(header, bytes_of(head)).code(), Code::kCorrupt);
    byte ^= 4;
  }
}

}  // namespace
}  // namespace talweg
