#include "store/admission.h"

#include <algorithm>

#include "base/rng.h"

namespace talweg {

Admission::Admission(const RowPolicy& policy) : count_(policy.admit_count), probability_(policy.admit_probability) {
  if (count_ > 1) {
    blocks_ = ZeroedArray<Block>(std::max<size_t>(1, policy.admit_memory / sizeof(Block)), Pages::kSmall);
  }
}

// Neither the index nor the choice of the shard uses this one, so that their likes do not share counters too.
uint64_t Admission::hash(uint64_t key) { return mix64(mix64(key) ^ 0x6a09e667f3bcc909); }

void Admission::prefetch(uint64_t key) const {
  if (blocks_.size() > 0) __builtin_prefetch(&blocks_[scale_to(hash(key), blocks_.size())], 1);
}

bool Admission::admit(uint64_t key) {
  ++touches_;
  return count(key) && draw(key);
}

bool Admission::count(uint64_t key) {
  if (count_ == 1) return true;
  const uint64_t bits = hash(key);
  // The block is chosen by the upper bits of the hash, the counters in it by the lower ones.
  Block& block = blocks_[scale_to(bits, blocks_.size())];
  std::array<uint8_t*, kCountersPerKey> counters;
  uint8_t least = UINT8_MAX;
  for (size_t i = 0; i < kCountersPerKey; ++i) {
    counters[i] = &block.counters[bits >> 6 * i & 63];
    least = std::min(least, *counters[i]);
  }
  if (least + 1u >= count_) return true;
  for (uint8_t* const counter : counters) *counter = std::max<uint8_t>(*counter, least + 1);
  if (touches_ % kTouchesPerHalving == 0) halve_next_block();
  return false;
}

void Admission::halve_next_block() {
  for (uint8_t& counter : blocks_[hand_].counters) counter /= 2;
  if (++hand_ == blocks_.size()) hand_ = 0;
}

bool Admission::draw(uint64_t key) {
  if (probability_ >= 1) return true;
  const uint64_t drawn = mix64(hash(key) + touches_);
  return static_cast<double>(drawn >> 11) * 0x1.0p-53 < probability_;
}

}  // namespace talweg
