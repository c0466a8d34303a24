// The frame: a fixed header, then the head (a protobuf message), then the raw body. docs/formats.md has the layout.
// Bytes from a socket are decoded here and nowhere else, and every length is checked before memory is touched.
#pragma once

#include <array>

#include "base/bytes.h"
#include "base/status.h"
#include "io/io.h"

namespace talweg {

constexpr uint16_t kFrameVersion = 1;
constexpr size_t kFrameHeaderBytes = 64;

enum class FrameKind : uint8_t { kHello = 1, kMessage = 2, kRequest = 3 };

struct FrameHeader {
  FrameKind kind = FrameKind::kMessage;
  Code code = Code::kOk;
  uint64_t tag = 0;  // a request's service
  uint64_t id = 0;   // a request's id
  Incarnation incarnation = 0;
  Peer from = 0;
  uint32_t sequence = 0;         // counts the frames of one connection and direction: a replayed frame is seen
  uint32_t routing_version = 0;  // 0 until routing can change
  uint32_t head_bytes = 0;
  uint32_t head_crc = 0;
  uint64_t body_bytes = 0;
};

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out);
Result<FrameHeader> decode_frame(std::span<const std::byte, kFrameHeaderBytes> bytes);
Status check_head(const FrameHeader& header, Bytes head);

}  // namespace talweg
