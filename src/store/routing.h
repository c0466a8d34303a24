// Which shard holds what. A sparse key goes to the shard its hash falls into; a dense table is cut into equal ranges.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace talweg {

// By the high bits of the hash; the index inside a shard uses the low ones, so the two do not interfere.
constexpr uint32_t shard_of(uint64_t key, uint32_t shards) {
  return static_cast<uint32_t>(scale_to(mix64(key), shards));
}

struct Range {
  uint64_t begin = 0, end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};
Range shard_range(uint64_t size, uint32_t shard, uint32_t shards);
// The common part; empty (begin == end) if there is none.
Range overlap(Range a, Range b);

// A fingerprint of a list of keys, their order included.
uint64_t hash_keys(std::span<const uint64_t> keys);

// In which order a shard's keys are sent.
enum class KeyOrder {
  kGiven,   // as given, within a shard; a key given twice is sent twice, and the shard sums its gradients
  kSorted,  // by rising key, which packs well; a key given twice is sent once
};

// Zero bytes that follow packed keys in a push, so that the gradients behind them are aligned.
constexpr size_t padding_of(size_t packed_bytes) { return (8 - packed_bytes % 8) % 8; }

// The keys of one batch, grouped by shard. Made once per batch and used for its pulls and its push; building it again
// reuses its memory. With one shard and kGiven it refers to the given keys instead of copying them, so they must
// outlive its use.
class KeyRoute {
 public:
  explicit KeyRoute(uint32_t shards, KeyOrder order = KeyOrder::kGiven);

  void build(std::span<const uint64_t> keys);

  uint32_t shards() const { return shards_; }
  KeyOrder order() const { return order_; }
  // How many keys were given, and how many are sent.
  size_t given() const { return given_; }
  size_t size() const { return grouped_.size(); }
  // Where the shard's keys begin in grouped order.
  size_t begin(uint32_t shard) const { return begin_[shard]; }
  std::span<const uint64_t> keys(uint32_t shard) const {
    return grouped_.subspan(begin_[shard], begin_[shard + 1] - begin_[shard]);
  }
  uint64_t keys_hash(uint32_t shard) const { return hashes_[shard]; }
  // The key given as number i is number places()[i] in grouped order. Empty when the grouped order is the given one.
  std::span<const uint32_t> places() const { return places_; }
  // Whether several given keys have one place.
  bool merges() const { return size() < given_; }

 private:
  void group();
  void sort_and_merge();

  uint32_t shards_;
  KeyOrder order_;
  size_t given_ = 0;
  std::span<const uint64_t> grouped_;
  std::vector<size_t> begin_;
  std::vector<size_t> next_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> storage_;
  std::vector<uint32_t> places_;
  std::vector<uint32_t> shard_of_;
  std::vector<std::pair<uint64_t, uint32_t>> sorting_;  // a shard's keys, each with the number it was given as
};

}  // namespace talweg
