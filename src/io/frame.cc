#include "io/frame.h"

#include "base/crc32c.h"
#include "base/limits.h"

namespace talweg {
namespace {

constexpr uint32_t kMagic = 0x47574c54;  // "TLWG"

struct Wire {
  uint32_t magic;
  uint16_t version;
  uint8_t kind;
  uint8_t code;
  uint64_t tag;
  uint64_t id;
  uint64_t incarnation;
  uint64_t body_bytes;
  uint32_t head_bytes;
  uint32_t from;
  uint32_t sequence;
  uint32_t routing_version;
  uint32_t head_crc;
  uint32_t header_crc;
};
static_assert(sizeof(Wire) == kFrameHeaderBytes);

constexpr size_t kCheckedBytes = offsetof(Wire, header_crc);

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out) {
  Wire wire{.magic = kMagic,
            .version = kFrameVersion,
            .kind = static_cast<uint8_t>(header.kind),
            .code = static_cast<uint8_t>(header.code),
            .tag = header.tag,
            .id = header.id,
            .incarnation = header.incarnation,
            .body_bytes = header.body_bytes,
            .head_bytes = header.head_bytes,
            .from = header.from,
            .sequence = header.sequence,
            .routing_version = header.routing_version,
            .head_crc = header.head_crc,
            .header_crc = 0};
  wire.header_crc = crc32c(std::as_bytes(std::span(&wire, 1)).first(kCheckedBytes));
  std::memcpy(out.data(), &wire, sizeof wire);
}

Result<FrameHeader> decode_frame(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic) return error(Code::kCorrupt, "not a Talweg frame (magic {:#010x})", wire.magic);
  if (wire.version != kFrameVersion) {
    return error(Code::kInvalid, "frame version {}, this node speaks {}: run the same release on all nodes",
                 wire.version, kFrameVersion);
  }
  if (wire.header_crc != crc32c(bytes.first(kCheckedBytes)))
    return Status(Code::kCorrupt, "frame header checksum is wrong");
  if (wire.kind < 1 || wire.kind > 3) return error(Code::kCorrupt, "unknown frame kind {}", wire.kind);
  if (wire.code > static_cast<uint8_t>(Code::kIo)) return error(Code::kCorrupt, "unknown status code {}", wire.code);
  if (wire.head_bytes > limits::kMaxHeadBytes) {
    return error(Code::kCorrupt, "frame head of {} bytes, at most {} are allowed", wire.head_bytes,
                 limits::kMaxHeadBytes);
  }
  if (wire.body_bytes > limits::kMaxBodyBytes) {
    return error(Code::kCorrupt, "frame body of {} bytes, at most {} are allowed", wire.body_bytes,
                 limits::kMaxBodyBytes);
  }
  return FrameHeader{.kind = static_cast<FrameKind>(wire.kind),
                     .code = static_cast<Code>(wire.code),
                     .tag = wire.tag,
                     .id = wire.id,
                     .incarnation = wire.incarnation,
                     .from = wire.from,
                     .sequence = wire.sequence,
                     .routing_version = wire.routing_version,
                     .head_bytes = wire.head_bytes,
                     .head_crc = wire.head_crc,
                     .body_bytes = wire.body_bytes};
}

Status check_head(const FrameHeader& header, Bytes head) {
  if (crc32c(head) != header.head_crc) return Status(Code::kCorrupt, "frame head checksum is wrong");
  return {};
}

}  // namespace talweg
