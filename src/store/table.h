// One shard's part of a table: the values, the optimizer that changes them, and the sum of the gradients of the step
// that is being gathered. Sums are formed in the order of the calls, so whoever fixes that order fixes the bits of the
// result. Requests are checked before they get here; nothing here waits. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "optim/registry.h"
#include "store/routing.h"
#include "store/table_spec.h"

namespace talweg {

// What one worker brings to one step. It keeps the request's body, in which the gradients lie: nothing is copied.
struct Contribution {
  Buffer body;
  size_t gradients_at = 0;               // in the body
  std::span<const uint32_t> rows;        // sparse: one for each row of gradients
  std::shared_ptr<const void> rows_own;  // keeps them
  Range range;                           // dense: positions in the shard

  Bytes gradients() const { return body.bytes().subspan(gradients_at); }
};

// A run of an exported table, as bytes of the values' type.
struct ExportPiece {
  std::vector<uint64_t> keys;  // sparse
  Buffer values;
  uint64_t rows = 0;
  uint64_t next = 0;
  bool done = false;
};

class SparseTable;
class DenseTable;

class Table {
 public:
  static Result<std::unique_ptr<Table>> make(const TableSpec& spec, uint32_t shard, uint32_t shards,
                                             const OptimizerRegistry& optimizers);
  explicit Table(TableSpec spec) : spec_(std::move(spec)) {}
  virtual ~Table() = default;

  const TableSpec& spec() const { return spec_; }
  virtual SparseTable* sparse() { return nullptr; }
  virtual DenseTable* dense() { return nullptr; }

  // Adds to the sum of this step.
  virtual void accumulate(const Contribution& contribution) = 0;
  // Gives the sum to the optimizer, once for all that was accumulated, and starts an empty one.
  virtual void apply() = 0;

  // At most `max_bytes` of keys and values from `cursor` on, at least one row unless none is left. Pieces are of the
  // values as they are now: a table that changes meanwhile is exported with the changes that came in time.
  virtual ExportPiece export_from(uint64_t cursor, size_t max_bytes) = 0;
  virtual size_t bytes() const = 0;

 private:
  TableSpec spec_;
};

class SparseTable : public Table {
 public:
  using Table::Table;
  SparseTable* sparse() override { return this; }

  // The rows of the keys, made where they are missing.
  virtual Status touch(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) = 0;
  // The same, but nothing is made: SparseIndex::kNoRow where one is missing.
  virtual void find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const = 0;
  // The rows' weights, one after the other; zeros for kNoRow. `out` has room for exactly these.
  virtual void gather(std::span<const uint32_t> rows, MutableBytes out) const = 0;
  virtual uint64_t key_of(uint32_t row) const = 0;
  virtual uint32_t rows() const = 0;
};

class DenseTable : public Table {
 public:
  using Table::Table;
  DenseTable* dense() override { return this; }

  // This shard's part of the whole table.
  virtual Range range() const = 0;
  // Weights at positions of the shard, in place.
  virtual Bytes view(Range positions) const = 0;
};

// The place of the first value that is not finite, if there is one. `values` are of `type` and aligned for it.
std::optional<size_t> find_non_finite(Bytes values, ValueType type);

}  // namespace talweg
