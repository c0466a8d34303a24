#include "store/key_lists.h"

namespace talweg {

std::shared_ptr<const KeyList> KeyLists::find(uint64_t hash, uint64_t keys, Time after) {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return nullptr;
  const KeyList& list = **found->second;
  if (list.rows.size() != keys || list.made <= after) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return *found->second;
}

std::shared_ptr<KeyList> KeyLists::make() {
  if (spare_ == nullptr || spare_.use_count() > 1) return std::make_shared<KeyList>();
  return std::move(spare_);
}

void KeyLists::keep(std::shared_ptr<KeyList> list) {
  if (const auto known = by_hash_.find(list->hash); known != by_hash_.end()) forget(known->second);
  bytes_ += bytes_of(*list);
  order_.push_front(std::move(list));
  by_hash_[order_.front()->hash] = order_.begin();
  // The newest stays whatever its size: the push that follows its pull needs it.
  while (bytes_ > max_bytes_ && order_.size() > 1) forget(std::prev(order_.end()));
}

void KeyLists::forget(Order::iterator entry) {
  bytes_ -= bytes_of(**entry);
  by_hash_.erase((*entry)->hash);
  spare_ = std::move(*entry);
  order_.erase(entry);
}

}  // namespace talweg
