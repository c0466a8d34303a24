// Functions that run where the weights are: a user adds one under a name, and a client calls it on all shards at once.
// It gets the shard's part of a table and an argument, may read and change the table, and gives bytes back. A registry
// is a value: who makes a server decides what its users may call.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "store/table.h"

namespace talweg {

using ServerFunction = std::function<Result<std::vector<std::byte>>(Table& table, Bytes argument)>;

class FunctionRegistry {
 public:
  // sum_of_squares: of the weights, as one double; zeros: how many weights are exactly zero, as one uint64_t.
  static FunctionRegistry standard();

  // Under a name that exists already, the new one takes its place.
  void add(std::string name, ServerFunction function) {
    functions_.insert_or_assign(std::move(name), std::move(function));
  }
  Result<const ServerFunction*> find(const std::string& name) const;

 private:
  std::map<std::string, ServerFunction> functions_;
};

}  // namespace talweg
