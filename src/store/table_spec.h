// What a table is. The same spec goes to every shard; creating a table again with the same spec changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/status.h"
#include "optim/initialiser.h"
#include "optim/optimizer.h"
#include "store/routing.h"
#include "store/row_policy.h"
#include "store/sync.h"

namespace talweg::proto {
class TableSpec;
}

namespace talweg {

using TableId = uint32_t;

enum class ValueType { kFloat32, kFloat64 };
template <>
struct Choices<ValueType> {
  static constexpr std::string_view names[] = {"float32", "float64"};
};
template <class Real>
constexpr ValueType kValueType = sizeof(Real) == 4 ? ValueType::kFloat32 : ValueType::kFloat64;

constexpr std::string_view name_of(ValueType type) { return Choices<ValueType>::names[static_cast<size_t>(type)]; }
constexpr size_t size_of(ValueType type) { return type == ValueType::kFloat32 ? 4 : 8; }

// What becomes of a push with a gradient that is not finite.
enum class NonFinite {
  kRefuse,  // it is refused whole, and the error names the key
  kZero,    // such gradients count as zero
};
template <>
struct Choices<NonFinite> {
  static constexpr std::string_view names[] = {"refuse", "zero"};
};

struct TableSpec {
  TableId id = 0;
  std::string name = {};
  bool sparse = true;
  uint32_t width = 1;    // sparse: values in a row
  uint64_t size = 0;     // dense: values in all
  uint64_t columns = 0;  // dense: of a matrix, whose rows lie one after the other; 0: a vector
  ValueType type = ValueType::kFloat32;
  OptimizerConfig optimizer = {};
  Sync sync = {};
  bool rate_by_staleness = false;  // asp, ssp, value: a stale push counts less
  NonFinite non_finite = NonFinite::kRefuse;
  InitConfig init = {};
  RowPolicy rows = {};  // sparse

  size_t row_bytes() const { return width * size_of(type); }
  // Dense: the part that a shard holds. A matrix is cut between its rows.
  Range range_at(uint32_t shard, uint32_t shards) const;
  std::string label() const;  // "table 'w'"
  bool operator==(const TableSpec&) const = default;
};

// Whether `shards` shards can hold it.
Status check(const TableSpec& spec, uint32_t shards);

proto::TableSpec to_proto(const TableSpec& spec);
Result<TableSpec> from_proto(const proto::TableSpec& spec);

}  // namespace talweg
