#include "codec/key_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace talweg {
namespace {

constexpr uint64_t kLargest = ~uint64_t{0};

std::vector<std::byte> packed(const std::vector<uint64_t>& keys) {
  std::vector<std::byte> bytes(packed_bound(keys.size()));
  bytes.resize(pack_keys(keys, bytes));
  return bytes;
}

// There and back, by the kernels and by their twins, with the same bytes in between.
void expect_lossless(const std::vector<uint64_t>& keys) {
  const std::vector<std::byte> bytes = packed(keys);
  std::vector<std::byte> plain(packed_bound(keys.size()));
  plain.resize(scalar::pack_keys(keys, plain));
  ASSERT_EQ(bytes, plain);
  ASSERT_LE(keys.size(), unpacked_bound(bytes.size()));
  std::vector<uint64_t> again(keys.size(), 1), plain_again(keys.size(), 1);
  const Status outcome = unpack_keys(bytes, again);
  ASSERT_TRUE(outcome.ok()) << outcome.text();
  ASSERT_EQ(again, keys);
  ASSERT_TRUE(scalar::unpack_keys(bytes, plain_again).ok());
  ASSERT_EQ(plain_again, keys);
}

// Differences of at most `bits` bits, the widest among them; fewer keys where 64 bits would not hold their sum.
std::vector<uint64_t> keys_of_width(unsigned bits, size_t count, Rng& rng) {
  const uint64_t widest = bits == 0 ? 0 : kLargest >> (64 - bits);
  std::vector<uint64_t> keys = {rng.below(1000)};
  while (keys.size() < count) {
    const uint64_t difference = keys.size() == 1 ? widest : rng.next() & widest;
    if (difference > kLargest - keys.back()) break;
    keys.push_back(keys.back() + difference);
  }
  return keys;
}

TEST(KeyCodec, every_width_and_length_comes_back_as_it_was) {
  Rng rng(1);
  for (unsigned bits = 0; bits <= 64; ++bits) {
    for (const size_t count : {1, 2, 9, 63, 64, 65, 66, 128, 129, 130, 1000}) {
      ASSERT_NO_FATAL_FAILURE(expect_lossless(keys_of_width(bits, count, rng)))
          << bits << " bits, " << count << " keys";
    }
  }
}

TEST(KeyCodec, the_full_width_comes_back_at_every_place_of_a_block) {
  for (unsigned bits = 50; bits <= 64; ++bits) {
    const uint64_t widest = kLargest >> (64 - bits);
    for (size_t at = 1; at <= 130; ++at) {
      std::vector<uint64_t> keys(200);
      for (size_t i = at; i < keys.size(); ++i) keys[i] = widest;
      ASSERT_NO_FATAL_FAILURE(expect_lossless(keys)) << bits << " bits at " << at;
    }
  }
}

TEST(KeyCodec, no_keys_are_no_bytes) {
  EXPECT_EQ(packed_bound(0), 0u);
  expect_lossless({});
}

TEST(KeyCodec, equal_and_largest_keys_are_allowed) {
  expect_lossless(std::vector<uint64_t>(300, 0));
  expect_lossless(std::vector<uint64_t>(300, kLargest));
  expect_lossless({0, kLargest});
  expect_lossless({kLargest - 1, kLargest, kLargest});
}

TEST(KeyCodec, equal_keys_cost_a_byte_a_block) {
  EXPECT_EQ(packed(std::vector<uint64_t>(1 + 640, 7)).size(), 8u + 10u);
}

TEST(KeyCodec, random_lists_come_back_as_they_were) {
  Rng rng(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> keys(rng.below(2000));
    const uint64_t space = kLargest >> rng.below(64);
    for (uint64_t& key : keys) key = rng.below(space) + rng.below(8) * 1000 * (space >> 12);
    std::sort(keys.begin(), keys.end());
    ASSERT_NO_FATAL_FAILURE(expect_lossless(keys)) << round;
  }
}

TEST(KeyCodec, the_keys_of_a_batch_take_a_fraction_of_their_size) {
  Rng rng(3);
  std::vector<uint64_t> keys(98'304);
  for (uint64_t& key : keys) key = rng.below(5'000'000);
  std::sort(keys.begin(), keys.end());
  EXPECT_LE(packed(keys).size(), keys.size() * 9 / 8);
}

TEST(KeyCodec, bytes_that_are_missing_or_too_many_are_corrupt) {
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 150; ++k) keys.push_back(k * k * k);
  std::vector<std::byte> bytes = packed(keys);
  std::vector<uint64_t> out(keys.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(unpack_keys(Bytes(bytes).first(size), out).code(), Code::kCorrupt) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(unpack_keys(bytes, out).message(), "packed keys: 1 bytes are left over behind 150 keys");
  EXPECT_EQ(unpack_keys(bytes, std::span<uint64_t>()).code(), Code::kCorrupt);
}

TEST(KeyCodec, more_keys_than_there_are_bytes_for_are_corrupt) {
  const std::vector<std::byte> bytes = packed({1, 2, 3});
  std::vector<uint64_t> out(unpacked_bound(bytes.size()) + 1);
  EXPECT_EQ(unpack_keys(bytes, out).code(), Code::kCorrupt);
}

TEST(KeyCodec, a_width_that_does_not_exist_is_corrupt) {
  std::vector<std::byte> bytes = packed({1, 2, 3});
  bytes[8] = std::byte{65};
  bytes.resize(1000);
  std::vector<uint64_t> out(3);
  EXPECT_EQ(unpack_keys(bytes, out).message(), "packed keys: a block has differences of 65 bits; at most 64 exist");
}

TEST(KeyCodec, keys_that_would_pass_the_largest_are_corrupt_at_every_width) {
  for (unsigned bits = 1; bits <= 64; ++bits) {
    for (const size_t count : {10, 65, 70}) {
      // All ones: every difference is the widest.
      std::vector<std::byte> bytes(packed_bound(130), std::byte{0xff});
      bytes[8] = bytes[8 + 1 + (64 * bits + 7) / 8] = static_cast<std::byte>(bits);
      const size_t first = std::min<size_t>(count - 1, 64), second = count - 1 - first;
      bytes.resize(8 + 1 + (first * bits + 7) / 8 + (second > 0 ? 1 + (second * bits + 7) / 8 : 0));
      std::vector<uint64_t> out(count);
      ASSERT_EQ(unpack_keys(bytes, out).message(), "packed keys: a key is larger than 64 bits hold") << bits;
      ASSERT_EQ(scalar::unpack_keys(bytes, out).code(), Code::kCorrupt) << bits;
    }
  }
}

TEST(KeyCodec, changed_bytes_give_the_same_keys_or_error_as_the_plain_twin) {
  Rng rng(4);
  std::vector<uint64_t> keys(200);
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t& key : keys) key = rng.next() >> rng.below(64);
    std::sort(keys.begin(), keys.end());
    std::vector<std::byte> bytes = packed(keys);
    for (int change = 0; change < 3; ++change) bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.next());
    std::vector<uint64_t> fast(keys.size()), plain(keys.size());
    const Status outcome = unpack_keys(bytes, fast), expected = scalar::unpack_keys(bytes, plain);
    ASSERT_EQ(outcome.text(), expected.text());
    if (!outcome.ok()) continue;
    ASSERT_EQ(fast, plain);
    ASSERT_TRUE(std::is_sorted(fast.begin(), fast.end()));
  }
}

}  // namespace
}  // namespace talweg
