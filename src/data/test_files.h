// Files as other programs write them, made byte by byte for tests: compressed text, NumPy arrays and archives, IDX.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace talweg::test {

// zlib's `window_bits`: 31 makes a gzip member, -15 a bare deflate stream.
inline std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  CHECK(::deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}
inline std::string gzip(std::string_view text) { return deflated(text, 31); }

// With a checksum, as the command line tool writes it.
inline std::string zstd(std::string_view text) {
  ZSTD_CCtx* const context = ::ZSTD_createCCtx();
  CHECK(context != nullptr && ::ZSTD_isError(::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) == 0);
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const size_t bytes = ::ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  CHECK(::ZSTD_isError(bytes) == 0);
  ::ZSTD_freeCCtx(context);
  out.resize(bytes);
  return out;
}

template <class T>
std::string number(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}
template <class T>
std::string numbers(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) out += number(value);
  return out;
}

inline std::string npy_with_header(const std::string& header, const std::string& data) {
  return "\x93NUMPY\x01" + std::string(1, '\0') + number(static_cast<uint16_t>(header.size())) + header + data;
}
// `shape` as Python writes it: (2, 3).
inline std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  return npy_with_header("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }  \n", data);
}

struct ZipEntry {
  std::string name, content;
  bool deflate = false;
};
// As NumPy does: the header before a member leaves its sizes to zip64's field, the directory tells them.
inline std::string zip(const std::vector<ZipEntry>& entries) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    const std::string stored = entry.deflate ? deflated(entry.content, -15) : entry.content;
    const auto crc = static_cast<uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    const std::string method = number<uint16_t>(entry.deflate ? 8 : 0);
    const auto size = [](const std::string& text) { return number(static_cast<uint32_t>(text.size())); };
    const std::string name_size = number(static_cast<uint16_t>(entry.name.size()));
    const std::string extra = number<uint16_t>(1) + number<uint16_t>(16) + number<uint64_t>(entry.content.size()) +
                              number<uint64_t>(stored.size());
    const std::string at = size(out);
    out += number<uint32_t>(0x04034b50) + number<uint16_t>(45) + number<uint16_t>(0) + method + number<uint32_t>(0) +
           number(crc) + number(~uint32_t{0}) + number(~uint32_t{0}) + name_size +
           number(static_cast<uint16_t>(extra.size())) + entry.name + extra + stored;
    directory += number<uint32_t>(0x02014b50) + number<uint16_t>(45) + number<uint16_t>(45) + number<uint16_t>(0) +
                 method + number<uint32_t>(0) + number(crc) + size(stored) + size(entry.content) + name_size +
                 number<uint16_t>(0) + number<uint16_t>(0) + number<uint16_t>(0) + number<uint16_t>(0) +
                 number<uint32_t>(0) + at + entry.name;
  }
  const std::string count = number(static_cast<uint16_t>(entries.size()));
  return out + directory + number<uint32_t>(0x06054b50) + number<uint32_t>(0) + count + count +
         number(static_cast<uint32_t>(directory.size())) + number(static_cast<uint32_t>(out.size())) +
         number<uint16_t>(0);
}

inline std::string idx(std::initializer_list<uint32_t> shape, const std::string& data) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t length : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift);
  }
  return out + data;
}

}  // namespace talweg::test
