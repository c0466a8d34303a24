// Any bytes as the start of a connection: a header, then its head. Decoding must not read out of bounds, must let no
// length past its bound through, and what it accepts must encode to the same bytes again. Checksums stop nearly all
// random bytes, so each input is tried as it came and once more with its checksums set right.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "io/frame.h"

namespace {

using namespace talweg;

// Where the checksums lie in a header: docs/formats.md.
constexpr size_t kHeadCrcAt = 56;
constexpr size_t kHeaderCrcAt = 60;

void put_crc(std::vector<std::byte>& frame, size_t at, Bytes of) {
  const uint32_t crc = crc32c(of);
  std::memcpy(frame.data() + at, &crc, sizeof crc);
}

bool decode(const std::vector<std::byte>& frame) {
  const Bytes bytes(frame);
  const auto header_bytes = bytes.first<kFrameHeaderBytes>();
  const Result<FrameHeader> header = decode_frame(header_bytes);
  if (!header.ok()) {
    CHECK(header.status().code() == Code::kCorrupt || header.status().code() == Code::kInvalid);
    CHECK(!header.status().message().empty());
    return false;
  }
  CHECK(header->head_bytes <= limits::kMaxHeadBytes);
  CHECK(header->body_bytes <= limits::kMaxBodyBytes);

  std::byte again[kFrameHeaderBytes];
  encode(*header, again);
  CHECK(std::memcmp(again, header_bytes.data(), kFrameHeaderBytes) == 0);

  const Bytes rest = bytes.subspan(kFrameHeaderBytes);
  if (header->head_bytes > rest.size()) return true;
  const Bytes head = rest.first(header->head_bytes);
  CHECK(check_head(*header, head).ok() == (crc32c_portable(head) == header->head_crc));
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kFrameHeaderBytes) return 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> frame(bytes, bytes + size);
  const bool accepted = decode(frame);

  put_crc(frame, kHeadCrcAt, Bytes(frame).subspan(kFrameHeaderBytes));
  put_crc(frame, kHeaderCrcAt, Bytes(frame).first(kHeaderCrcAt));
  const bool accepted_with_checksums = decode(frame);
  CHECK(accepted_with_checksums || !accepted);
  return 0;
}
