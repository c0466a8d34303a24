// Any bytes as gzip or Zstandard data: reading ends, in an error or in a text that does not depend on the sizes of the
// reads, and whose pieces end at line ends.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/compressed.h"
#include "data/line_source.h"

namespace {

using talweg::Bytes;
using talweg::Compression;

// What a few bytes expand to can be large; beyond this nothing new comes.
constexpr size_t kMostBytes = size_t{1} << 20;

// Whether it ended well, and the text up to there.
bool read_all(Compression compression, Bytes input, size_t at_once, std::string* out) {
  const auto decompressor = talweg::make_decompressor(compression, input, "fuzz");
  std::string part(at_once, '\0');
  while (out->size() < kMostBytes) {
    const auto read = decompressor->read(std::as_writable_bytes(std::span(part)));
    if (!read.ok()) return false;
    out->append(part, 0, *read);
    if (*read < at_once) break;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a read past the end is caught.
  const std::vector<uint8_t> exact(data, data + size);
  const Bytes input = std::as_bytes(std::span(exact));
  const Compression compression = talweg::compression_of(input);
  if (compression == Compression::kNone) return 0;
  std::string coarse, fine;
  const bool ended = read_all(compression, input, size_t{1} << 16, &coarse);
  const bool ended_too = read_all(compression, input, 100, &fine);
  if (coarse.size() >= kMostBytes) return 0;
  CHECK(ended == ended_too);
  if (!ended) return 0;
  CHECK(coarse == fine);

  talweg::LineSource source(talweg::make_decompressor(compression, input, "fuzz"), "fuzz", 100);
  std::string joined;
  std::vector<talweg::TextPiece> pieces;
  do {
    CHECK(source.take(3, &pieces).ok());
    for (const talweg::TextPiece& piece : pieces) {
      joined += piece.text;
      CHECK(piece.text.ends_with('\n') || joined.size() == coarse.size());
    }
  } while (!pieces.empty());
  CHECK(joined == coarse);
  return 0;
}
