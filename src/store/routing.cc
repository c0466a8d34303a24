#include "store/routing.h"

#include <algorithm>

#include "base/check.h"
#include "store/limits.h"

namespace talweg {

Range shard_range(uint64_t size, uint32_t shard, uint32_t shards) {
  const auto cut = [&](uint64_t i) { return static_cast<uint64_t>(static_cast<unsigned __int128>(size) * i / shards); };
  return {cut(shard), cut(uint64_t{shard} + 1)};
}

Range overlap(Range a, Range b) {
  const uint64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

uint64_t hash_keys(std::span<const uint64_t> keys) {
  // Each position has its own offset, so order counts; the terms do not wait for one another as in a chained hash.
  uint64_t hash = keys.size(), offset = 0;
  for (const uint64_t key : keys) hash += mix64(key ^ (offset += 0x9e3779b97f4a7c15));
  return hash;
}

KeyRoute::KeyRoute(uint32_t shards) : shards_(shards), begin_(shards + 1), next_(shards), hashes_(shards) {
  CHECK(shards >= 1 && shards <= limits::kMaxShards);
}

void KeyRoute::build(std::span<const uint64_t> keys) {
  CHECK(keys.size() <= limits::kMaxRows);
  if (shards_ == 1) {
    grouped_ = keys;
    begin_[1] = keys.size();
    hashes_[0] = hash_keys(keys);
    return;
  }
  shard_of_.resize(keys.size());
  storage_.resize(keys.size());
  order_.resize(keys.size());

  std::fill(begin_.begin(), begin_.end(), 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    shard_of_[i] = talweg::shard_of(keys[i], shards_);
    ++begin_[shard_of_[i] + 1];
  }
  for (uint32_t s = 0; s < shards_; ++s) begin_[s + 1] += begin_[s];
  std::copy(begin_.begin(), begin_.end() - 1, next_.begin());
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t at = next_[shard_of_[i]]++;
    storage_[at] = keys[i];
    order_[at] = static_cast<uint32_t>(i);
  }
  grouped_ = storage_;
  for (uint32_t s = 0; s < shards_; ++s) hashes_[s] = hash_keys(this->keys(s));
}

}  // namespace talweg
