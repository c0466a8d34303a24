// The key lists that a shard remembers for a table, as row numbers under the hash of the keys: a list that is used
// again, by the push of the same step or by a later pull, travels as a hash. The least recently used go when their
// memory is over the bound; who then asks for one is told to send the keys. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/time.h"

namespace talweg {

struct KeyList {
  uint64_t hash = 0;
  Time made{};           // rows that were freed since may be another key's
  bool complete = true;  // every key has a row; else the keys must be looked at again
  std::vector<uint32_t> rows;
};

class KeyLists {
 public:
  explicit KeyLists(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The list of this hash, if it has this many keys and was made later than `after`.
  std::shared_ptr<const KeyList> find(uint64_t hash, uint64_t keys, Time after);
  // An empty list to be filled and then kept; it has the memory of one that went, if that can be had.
  std::shared_ptr<KeyList> make();
  void keep(std::shared_ptr<KeyList> list);

  size_t bytes() const { return bytes_; }

 private:
  using Order = std::list<std::shared_ptr<KeyList>>;
  static size_t bytes_of(const KeyList& list) { return sizeof(KeyList) + sizeof(uint32_t) * list.rows.capacity(); }
  void forget(Order::iterator entry);

  const size_t max_bytes_;
  size_t bytes_ = 0;
  Order order_;  // the most recently used first
  std::unordered_map<uint64_t, Order::iterator> by_hash_;
  std::shared_ptr<KeyList> spare_;
};

}  // namespace talweg
