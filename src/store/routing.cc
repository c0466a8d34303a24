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

KeyRoute::KeyRoute(uint32_t shards, KeyOrder order)
    : shards_(shards), order_(order), begin_(shards + 1), next_(shards), hashes_(shards) {
  CHECK(shards >= 1 && shards <= limits::kMaxShards);
}

void KeyRoute::build(std::span<const uint64_t> keys) {
  CHECK(keys.size() <= limits::kMaxRows);
  given_ = keys.size();
  grouped_ = keys;
  std::fill(begin_.begin(), begin_.end(), 0);
  begin_[shards_] = keys.size();
  places_.clear();
  if (shards_ > 1) group();
  if (order_ == KeyOrder::kSorted) sort_and_merge();
  for (uint32_t s = 0; s < shards_; ++s) hashes_[s] = hash_keys(this->keys(s));
}

void KeyRoute::group() {
  const std::span<const uint64_t> keys = grouped_;
  shard_of_.resize(keys.size());
  storage_.resize(keys.size());
  places_.resize(keys.size());
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
    places_[i] = static_cast<uint32_t>(at);
  }
  grouped_ = storage_;
}

// Shard by shard, in place: what is merged moves the later shards to the front.
void KeyRoute::sort_and_merge() {
  std::vector<uint32_t> given_as(given_);  // grouped place -> number
  for (size_t i = 0; i < given_; ++i) given_as[places_.empty() ? i : places_[i]] = static_cast<uint32_t>(i);
  std::vector<uint64_t> merged;
  merged.reserve(given_);
  places_.resize(given_);
  for (uint32_t s = 0; s < shards_; ++s) {
    sorting_.clear();
    for (size_t at = begin_[s]; at < begin_[s + 1]; ++at) sorting_.emplace_back(grouped_[at], given_as[at]);
    std::sort(sorting_.begin(), sorting_.end());
    next_[s] = merged.size();
    for (const auto& [key, number] : sorting_) {
      if (merged.size() == next_[s] || merged.back() != key) merged.push_back(key);
      places_[number] = static_cast<uint32_t>(merged.size() - 1);
    }
  }
  std::copy(next_.begin(), next_.end(), begin_.begin());
  begin_[shards_] = merged.size();
  storage_ = std::move(merged);
  grouped_ = storage_;
}

}  // namespace talweg
