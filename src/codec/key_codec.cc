#include "codec/key_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace talweg {
namespace {

constexpr size_t kFirstKeyBytes = sizeof(uint64_t);
constexpr size_t kMaxBits = 64;
// Kernels work on so many differences at a time: whatever the width, these end at a whole byte.
constexpr size_t kGroup = 8;
// A kernel reads words, and so up to this far past a block.
constexpr size_t kReadPast = sizeof(uint64_t);
// Up to here no sum of a block's differences reaches 2^64: a sum that passed the end is below where it began.
constexpr unsigned kMaxUncheckedBits = 58;
static_assert(kKeysPerBlock <= size_t{1} << (64 - kMaxUncheckedBits));

using Block = std::array<uint64_t, kKeysPerBlock>;

size_t block_bytes(size_t keys, size_t bits) { return (keys * bits + 7) / 8; }

uint64_t load_word(const std::byte* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// The kernels know the width when they are compiled, so that every shift and offset is a constant.
template <unsigned kBits>
void pack_block(const uint64_t* differences, std::byte* out) {
  for (size_t g = 0; g < kKeysPerBlock; g += kGroup, out += kBits) {
    uint64_t words[kBits / 8 + 2] = {};
#pragma GCC unroll 8
    for (size_t j = 0; j < kGroup; ++j) {
      const size_t bit = j * kBits, word = bit / 64, shift = bit % 64;
      words[word] |= differences[g + j] << shift;
      if (shift + kBits > 64) words[word + 1] |= differences[g + j] >> (64 - shift) % 64;
    }
    std::memcpy(out, words, kBits);
  }
}

template <unsigned kBits>
void unpack_block(const std::byte* in, uint64_t key, uint64_t* out) {
  constexpr uint64_t kMask = kBits == 64 ? ~uint64_t{0} : (uint64_t{1} << kBits % 64) - 1;
  for (size_t g = 0; g < kKeysPerBlock; g += kGroup, in += kBits) {
#pragma GCC unroll 8
    for (size_t j = 0; j < kGroup; ++j) {
      const size_t bit = j * kBits, shift = bit % 8;
      uint64_t difference = 0;
      if (kBits > 0) difference = load_word(in + bit / 8) >> shift;
      if (shift + kBits > 64) difference |= static_cast<uint64_t>(in[bit / 8 + 8]) << (64 - shift) % 64;
      key += difference & kMask;
      out[g + j] = key;
    }
  }
}

using PackBlock = void (*)(const uint64_t*, std::byte*);
using UnpackBlock = void (*)(const std::byte*, uint64_t, uint64_t*);

template <size_t... kBits>
constexpr std::array<PackBlock, sizeof...(kBits)> packers(std::index_sequence<kBits...>) {
  return {&pack_block<kBits>...};
}
template <size_t... kBits>
constexpr std::array<UnpackBlock, sizeof...(kBits)> unpackers(std::index_sequence<kBits...>) {
  return {&unpack_block<kBits>...};
}
constexpr auto kPackers = packers(std::make_index_sequence<kMaxBits + 1>());
constexpr auto kUnpackers = unpackers(std::make_index_sequence<kMaxBits + 1>());

Status too_short(size_t keys, size_t bytes) {
  return error(Code::kCorrupt, "packed keys: {} bytes are too few for {} keys", bytes, keys);
}
Status left_over(size_t keys, size_t bytes) {
  return error(Code::kCorrupt, "packed keys: {} bytes are left over behind {} keys", bytes, keys);
}
Status bad_width(unsigned bits) {
  return error(Code::kCorrupt, "packed keys: a block has differences of {} bits; at most {} exist", bits, kMaxBits);
}
Status past_the_end() { return error(Code::kCorrupt, "packed keys: a key is larger than 64 bits hold"); }

// The keys of one block, which follow the key `before`. `packed` begins with the block's differences and has all of
// them.
Status unpack_one(Bytes packed, unsigned bits, uint64_t before, std::span<uint64_t> out) {
  const size_t bytes = block_bytes(out.size(), bits);
  if (out.size() == kKeysPerBlock && packed.size() >= bytes + kReadPast) {
    kUnpackers[bits](packed.data(), before, out.data());
  } else {
    std::array<std::byte, kKeysPerBlock * sizeof(uint64_t) + kReadPast> padded = {};
    Block keys;
    std::memcpy(padded.data(), packed.data(), bytes);
    kUnpackers[bits](padded.data(), before, keys.data());
    std::copy_n(keys.begin(), out.size(), out.begin());
  }
  const bool in_order = bits <= kMaxUncheckedBits ? before <= out.back()
                                                  : before <= out.front() && std::is_sorted(out.begin(), out.end());
  return in_order ? Status() : past_the_end();
}

}  // namespace

size_t packed_bound(size_t keys) {
  if (keys == 0) return 0;
  const size_t blocks = (keys - 1 + kKeysPerBlock - 1) / kKeysPerBlock;
  return keys * sizeof(uint64_t) + blocks;
}

size_t unpacked_bound(size_t packed_bytes) {
  if (packed_bytes < kFirstKeyBytes) return 0;
  return 1 + (packed_bytes - kFirstKeyBytes) * kKeysPerBlock;
}

size_t pack_keys(std::span<const uint64_t> sorted, MutableBytes out) {
  CHECK(out.size() >= packed_bound(sorted.size()));
  if (sorted.empty()) return 0;
  std::memcpy(out.data(), sorted.data(), kFirstKeyBytes);
  std::byte* at = out.data() + kFirstKeyBytes;
  for (size_t i = 1; i < sorted.size(); i += kKeysPerBlock) {
    const size_t count = std::min(kKeysPerBlock, sorted.size() - i);
    Block differences = {};
    uint64_t any = 0;
    bool falls = false;
    for (size_t j = 0; j < count; ++j) {
      falls |= sorted[i + j] < sorted[i + j - 1];
      any |= differences[j] = sorted[i + j] - sorted[i + j - 1];
    }
    CHECK(!falls);
    const unsigned bits = static_cast<unsigned>(std::bit_width(any));
    *at++ = static_cast<std::byte>(bits);
    const size_t bytes = block_bytes(count, bits);
    if (count == kKeysPerBlock) {
      kPackers[bits](differences.data(), at);
    } else {
      std::array<std::byte, kKeysPerBlock * sizeof(uint64_t)> whole;
      kPackers[bits](differences.data(), whole.data());
      std::memcpy(at, whole.data(), bytes);
    }
    at += bytes;
  }
  return static_cast<size_t>(at - out.data());
}

Status unpack_keys(Bytes packed, std::span<uint64_t> out) {
  if (out.empty()) return packed.empty() ? Status() : left_over(0, packed.size());
  if (packed.size() < kFirstKeyBytes) return too_short(out.size(), packed.size());
  out[0] = load_word(packed.data());
  Bytes rest = packed.subspan(kFirstKeyBytes);
  for (size_t i = 1; i < out.size(); i += kKeysPerBlock) {
    const size_t count = std::min(kKeysPerBlock, out.size() - i);
    if (rest.empty()) return too_short(out.size(), packed.size());
    const auto bits = static_cast<unsigned>(rest[0]);
    if (bits > kMaxBits) return bad_width(bits);
    rest = rest.subspan(1);
    const size_t bytes = block_bytes(count, bits);
    if (rest.size() < bytes) return too_short(out.size(), packed.size());
    TRY(unpack_one(rest, bits, out[i - 1], out.subspan(i, count)));
    rest = rest.subspan(bytes);
  }
  return rest.empty() ? Status() : left_over(out.size(), rest.size());
}

namespace scalar {

size_t pack_keys(std::span<const uint64_t> sorted, MutableBytes out) {
  if (sorted.empty()) return 0;
  std::memcpy(out.data(), sorted.data(), kFirstKeyBytes);
  size_t at = kFirstKeyBytes;
  for (size_t i = 1; i < sorted.size(); i += kKeysPerBlock) {
    const size_t end = std::min(sorted.size(), i + kKeysPerBlock);
    size_t bits = 0;
    for (size_t k = i; k < end; ++k) {
      bits = std::max<size_t>(bits, static_cast<size_t>(std::bit_width(sorted[k] - sorted[k - 1])));
    }
    out[at++] = static_cast<std::byte>(bits);
    std::fill_n(out.begin() + static_cast<ptrdiff_t>(at), block_bytes(end - i, bits), std::byte{0});
    for (size_t n = 0; n < (end - i) * bits; ++n) {
      const size_t k = i + n / bits;
      const auto bit = static_cast<std::byte>((sorted[k] - sorted[k - 1]) >> n % bits & 1);
      out[at + n / 8] |= bit << n % 8;
    }
    at += block_bytes(end - i, bits);
  }
  return at;
}

Status unpack_keys(Bytes packed, std::span<uint64_t> out) {
  if (out.empty()) return packed.empty() ? Status() : left_over(0, packed.size());
  if (packed.size() < kFirstKeyBytes) return too_short(out.size(), packed.size());
  out[0] = load_word(packed.data());
  size_t at = kFirstKeyBytes;
  for (size_t i = 1; i < out.size(); i += kKeysPerBlock) {
    if (at == packed.size()) return too_short(out.size(), packed.size());
    const auto bits = static_cast<unsigned>(packed[at++]);
    if (bits > kMaxBits) return bad_width(bits);
    const size_t end = std::min(out.size(), i + kKeysPerBlock);
    if (packed.size() - at < block_bytes(end - i, bits)) return too_short(out.size(), packed.size());
    for (size_t k = i; k < end; ++k) {
      uint64_t difference = 0;
      for (size_t b = 0; b < bits; ++b) {
        const size_t n = (k - i) * bits + b;
        difference |= static_cast<uint64_t>(packed[at + n / 8] >> n % 8 & std::byte{1}) << b;
      }
      if (__builtin_add_overflow(out[k - 1], difference, &out[k])) return past_the_end();
    }
    at += block_bytes(end - i, bits);
  }
  return at == packed.size() ? Status() : left_over(out.size(), packed.size() - at);
}

}  // namespace scalar
}  // namespace talweg
