#include "store/hot_keys.h"

#include <algorithm>

#include "base/rng.h"

namespace talweg {

uint64_t HotKeys::next_gap() { return 1 + scale_to(mix64(drawn_++), 2 * kMeanGap - 1); }

HotKeys::Counter& HotKeys::find(uint64_t key) {
  size_t at = mix64(key) % kSlots;
  while (counters_[at].count != 0 && counters_[at].key != key) at = (at + 1) % kSlots;
  return counters_[at];
}

void HotKeys::count(uint64_t key) {
  if (counters_.empty()) counters_.resize(kSlots);
  Counter* counter = &find(key);
  if (counter->count == 0) {
    if (used_ == kCounters) {
      make_room();
      counter = &find(key);
    }
    counter->key = key;
    ++used_;
  }
  ++counter->count;
}

// Takes the middle count off all counters: at least half of them are free then.
void HotKeys::make_room() {
  counts_.clear();
  for (const Counter& counter : counters_) {
    if (counter.count != 0) counts_.push_back(counter.count);
  }
  const auto middle = counts_.begin() + static_cast<ptrdiff_t>(counts_.size() / 2);
  std::nth_element(counts_.begin(), middle, counts_.end());
  const uint64_t taken = *middle;
  std::vector<Counter> old(kSlots);
  std::swap(old, counters_);
  used_ = 0;
  for (const Counter& counter : old) {
    if (counter.count <= taken) continue;
    find(counter.key) = {counter.key, counter.count - taken};
    ++used_;
  }
}

std::vector<std::pair<uint64_t, uint64_t>> HotKeys::hottest(size_t n) const {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const Counter& counter : counters_) {
    if (counter.count != 0) all.emplace_back(counter.key, counter.count * kMeanGap);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  all.resize(std::min(n, all.size()));
  return all;
}

}  // namespace talweg
