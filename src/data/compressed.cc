#include "data/compressed.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace talweg {
namespace {

// zlib counts in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;
constexpr int kGzipWindowBits = 15 + 16;  // the largest window; 16: with gzip's header and checksum
constexpr size_t kFirstBytes = size_t{1} << 16;

bool starts_with(Bytes bytes, std::string_view start) { return text_of(bytes).starts_with(start); }
bool is_gzip(Bytes bytes) { return starts_with(bytes, "\x1f\x8b"); }

bool is_zstd(Bytes bytes) {
  if (starts_with(bytes, "\x28\xb5\x2f\xfd")) return true;
  // A frame to be skipped: 0x184D2A5?, little-endian.
  return bytes.size() >= 4 && (static_cast<uint8_t>(bytes[0]) & 0xf0) == 0x50 &&
         starts_with(bytes.subspan(1), "\x2a\x4d\x18");
}

Status cut_short(const std::string& file, size_t at) {
  return error(Code::kCorrupt, "{} is cut short: its compressed data has no end at byte {}", file, at);
}
Status damaged(const std::string& file, size_t at, std::string_view why) {
  return error(Code::kCorrupt, "{} is damaged: its compressed data cannot be read at byte {}: {}", file, at, why);
}

class GzipReader final : public Decompressor {
 public:
  GzipReader(Bytes input, std::string file) : input_(input), file_(std::move(file)) {
    CHECK(::inflateInit2(&stream_, kGzipWindowBits) == Z_OK);
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader() override { ::inflateEnd(&stream_); }

  Result<size_t> read(MutableBytes out) override {
    size_t filled = 0;
    while (filled < out.size() && !at_end_) TRY(step(out, &filled));
    return filled;
  }

 private:
  Status step(MutableBytes out, size_t* filled) {
    const size_t in_bytes = std::min(input_.size() - used_, kMostAtOnce);
    const size_t out_bytes = std::min(out.size() - *filled, kMostAtOnce);
    // zlib does not write to its input, but says so only since version 1.2.5 and on request.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input_.data() + used_));
    stream_.avail_in = static_cast<uInt>(in_bytes);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + *filled);
    stream_.avail_out = static_cast<uInt>(out_bytes);
    const int outcome = ::inflate(&stream_, Z_NO_FLUSH);
    used_ += in_bytes - stream_.avail_in;
    *filled += out_bytes - stream_.avail_out;
    if (outcome == Z_STREAM_END) return end_member();
    if (outcome == Z_BUF_ERROR) return cut_short(file_, used_);
    if (outcome != Z_OK) return damaged(file_, used_, stream_.msg != nullptr ? stream_.msg : "not gzip");
    return {};
  }

  // Another member may follow; so may zeros, which tapes and disks pad with.
  Status end_member() {
    const Bytes rest = input_.subspan(used_);
    if (is_gzip(rest)) {
      CHECK(::inflateReset(&stream_) == Z_OK);
      return {};
    }
    at_end_ = std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
    return at_end_ ? Status() : damaged(file_, used_, "what follows is not gzip");
  }

  const Bytes input_;
  const std::string file_;
  z_stream stream_{};
  size_t used_ = 0;
  bool at_end_ = false;
};

class ZstdReader final : public Decompressor {
 public:
  ZstdReader(Bytes input, std::string file)
      : input_{input.data(), input.size(), 0}, file_(std::move(file)), stream_(::ZSTD_createDStream()) {
    CHECK(stream_ != nullptr);
  }

  Result<size_t> read(MutableBytes out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size && !(frame_ended_ && input_.pos == input_.size)) {
      const size_t read_before = input_.pos, written_before = output.pos;
      const size_t outcome = ::ZSTD_decompressStream(stream_.get(), &output, &input_);
      if (::ZSTD_isError(outcome) != 0) return damaged(file_, input_.pos, ::ZSTD_getErrorName(outcome));
      frame_ended_ = outcome == 0;
      const bool stuck = input_.pos == read_before && output.pos == written_before;
      if (stuck && !frame_ended_) return cut_short(file_, input_.pos);
    }
    return output.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  ZSTD_inBuffer input_;
  const std::string file_;
  // Refuses windows above 128 MiB by default, so its memory is bounded.
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool frame_ended_ = false;
};

}  // namespace

Compression compression_of(Bytes start) {
  if (is_gzip(start)) return Compression::kGzip;
  return is_zstd(start) ? Compression::kZstd : Compression::kNone;
}

std::unique_ptr<Decompressor> make_decompressor(Compression compression, Bytes input, std::string file) {
  CHECK(compression != Compression::kNone);
  if (compression == Compression::kGzip) return std::make_unique<GzipReader>(input, std::move(file));
  return std::make_unique<ZstdReader>(input, std::move(file));
}

Result<std::shared_ptr<const Buffer>> decompress_all(Compression compression, Bytes input, const std::string& file,
                                                     uint64_t most) {
  const auto decompressor = make_decompressor(compression, input, file);
  Buffer buffer(kFirstBytes);
  size_t filled = 0;
  for (;;) {
    ASSIGN(const size_t more, decompressor->read(buffer.bytes().subspan(filled)));
    filled += more;
    if (filled < buffer.size()) break;
    if (filled > most) return error(Code::kInvalid, "{} holds more than {} bytes", file, most);
    Buffer larger(buffer.size() * 2);
    std::memcpy(larger.data(), buffer.data(), filled);
    buffer = std::move(larger);
  }
  auto exact = std::make_shared<Buffer>(filled);
  if (filled > 0) std::memcpy(exact->data(), buffer.data(), filled);
  return std::shared_ptr<const Buffer>(exact);
}

}  // namespace talweg
