// Reads gzip and Zstandard files as a stream, whatever their size: several members or frames one after the other are
// one text, as the tools that write them have it. Input that is damaged or cut short is an error that names the file
// and the byte where it was noticed. Checksums are checked.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace talweg {

enum class Compression { kNone, kGzip, kZstd };

// By the first bytes, which no text starts with.
Compression compression_of(Bytes start);

// Not thread-safe.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  // Fills `out`; only the end of the input makes it fewer bytes.
  virtual Result<size_t> read(MutableBytes out) = 0;
};

// `input` must outlive it; `file` is its name in messages. Not for kNone.
std::unique_ptr<Decompressor> make_decompressor(Compression compression, Bytes input, std::string file);

// The whole of it, at most `most` bytes. Memory grows with what really comes, not with what a header claims.
Result<std::shared_ptr<const Buffer>> decompress_all(Compression compression, Bytes input, const std::string& file,
                                                     uint64_t most);

}  // namespace talweg
