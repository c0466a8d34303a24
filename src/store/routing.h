// Which shard holds what. A sparse key goes to the shard its hash falls into; a dense table is cut into equal ranges.
#pragma once

#include <cstdint>
#include <span>
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

// The keys of one batch, grouped by shard. Made once per batch and used for its pulls and its push; building it again
// reuses its memory. With one shard it refers to the given keys instead of copying them, so they must outlive its use.
// A key given twice is pulled twice, and its gradients are summed.
class KeyRoute {
 public:
  explicit KeyRoute(uint32_t shards);

  void build(std::span<const uint64_t> keys);

  uint32_t shards() const { return shards_; }
  size_t size() const { return grouped_.size(); }
  // Where the shard's keys begin in grouped order.
  size_t begin(uint32_t shard) const { return begin_[shard]; }
  std::span<const uint64_t> keys(uint32_t shard) const {
    return grouped_.subspan(begin_[shard], begin_[shard + 1] - begin_[shard]);
  }
  uint64_t keys_hash(uint32_t shard) const { return hashes_[shard]; }
  // Key i in grouped order was given as number order()[i]. Empty when the grouped order is the given one.
  std::span<const uint32_t> order() const { return order_; }

 private:
  uint32_t shards_;
  std::span<const uint64_t> grouped_;
  std::vector<size_t> begin_;
  std::vector<size_t> next_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> storage_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> shard_of_;
};

}  // namespace talweg
