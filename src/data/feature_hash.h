// Turns words into keys: the hashing trick (Weinberger et al., "Feature hashing for large scale multitask learning",
// ICML 2009). Fixed for good: models and caches depend on it.
//
// The key of a text in a column, with `bits` bits:
//   h = mix64(column) + length * 0x9e3779b97f4a7c15
//   for each 8 bytes of the text, as a little-endian number, the last padded with zero bytes: h = mix64(h ^ number)
//   key = h mod 2^bits
// An empty text counts as eight zero bytes of length 0. A whole number is hashed as its 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"

namespace talweg {

class FeatureHash {
 public:
  // With at most 32 bits, keys stay in their small representation.
  static constexpr unsigned kMostBits = 32;

  explicit FeatureHash(unsigned bits = kMostBits) : mask_((uint64_t{1} << bits) - 1) {
    CHECK(bits >= 1 && bits <= kMostBits);
  }

  // For settings: whether a hash can have so many.
  static Status check_bits(unsigned bits) {
    if (bits >= 1 && bits <= kMostBits) return {};
    return error(Code::kInvalid, "hash_bits is {}: it must be from 1 to {}", bits, kMostBits);
  }

  // What a column adds to its keys; computed once per column.
  static constexpr uint64_t seed_of(uint64_t column) { return mix64(column); }

  uint32_t key(uint64_t seed, std::string_view text) const {
    uint64_t hash = seed + text.size() * kPerByte;
    const char* p = text.data();
    size_t left = text.size();
    for (; left > 8; left -= 8, p += 8) hash = mix64(hash ^ load<uint64_t>(p));
    return finish(mix64(hash ^ load_up_to_8(p, left)));
  }
  // For a text of `length` <= 8 that is already in a word.
  uint32_t key_of_word(uint64_t seed, uint64_t word, size_t length) const {
    return finish(mix64((seed + length * kPerByte) ^ word));
  }
  uint32_t key_of_number(uint64_t seed, int64_t number) const {
    return key_of_word(seed, static_cast<uint64_t>(number), sizeof(number));
  }

 private:
  static constexpr uint64_t kPerByte = 0x9e3779b97f4a7c15;

  uint32_t finish(uint64_t hash) const { return static_cast<uint32_t>(hash & mask_); }

  template <class T>
  static T load(const char* p) {
    T word;
    std::memcpy(&word, p, sizeof(T));
    return word;
  }
  // Without reading beside the text: from four bytes up two loads overlap, below that three bytes do.
  static uint64_t load_up_to_8(const char* p, size_t length) {
    if (length >= 4) return load<uint32_t>(p) | uint64_t{load<uint32_t>(p + length - 4)} << (8 * (length - 4));
    if (length == 0) return 0;
    const auto byte = [p](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])} << (8 * i); };
    return byte(0) | byte(length / 2) | byte(length - 1);
  }

  uint64_t mask_;
};

}  // namespace talweg
