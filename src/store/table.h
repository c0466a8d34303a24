// One shard's part of a table: the values, the optimizer that changes them, and the sum of the gradients of the step
// that is being gathered. Sums are formed in the order of the calls, so whoever fixes that order fixes the bits of the
// result. Requests are checked before they get here; nothing here waits. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
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
  MutableBytes mutable_gradients() { return body.bytes().subspan(gradients_at); }
};

// A run of an exported table, as bytes of the values' type.
struct ExportPiece {
  std::vector<uint64_t> keys;  // sparse
  Buffer values;
  uint64_t rows = 0;
  uint64_t next = 0;
  bool done = false;
};

// Memory that several tables share. They charge it as they grow, and give it back when they go.
struct MemoryBudget {
  uint64_t limit = 0;  // 0: none
  uint64_t used = 0;
  MemoryBudget* parent = nullptr;  // which this is a part of
  std::string_view setting = {};   // that gave the limit, for who is told that it is reached
};

class SparseTable;
class DenseTable;

class Table {
 public:
  static Result<std::unique_ptr<Table>> make(const TableSpec& spec, uint32_t shard, uint32_t shards,
                                             const OptimizerRegistry& optimizers);
  explicit Table(TableSpec spec) : spec_(std::move(spec)) {}
  virtual ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableSpec& spec() const { return spec_; }
  virtual SparseTable* sparse() { return nullptr; }
  virtual DenseTable* dense() { return nullptr; }

  // From now on the table's memory is part of `budget`, which outlives it. kFull if it does not fit.
  Status share(MemoryBudget& budget);

  // Adds to the sum of this step.
  virtual void accumulate(const Contribution& contribution) = 0;
  // Gives the sum to the optimizer, once for all that was accumulated, and starts an empty one. The learning rate is
  // multiplied by `rate`.
  virtual void apply(double rate) = 0;
  // The same as accumulating this alone and applying it, but the gradients are used where they lie, and used up. There
  // must be no sum.
  virtual void apply_one(Contribution& contribution, double rate) = 0;
  // Applies if that moves the weights by at most `max_norm`: the L2 norm of their change, always added in one order.
  // Otherwise weights, optimizer state and the sum are, bit for bit, what they were. How far they moved or would have
  // moved goes to `norm`. Not for optimizers that keep state outside of the rows.
  bool apply_if(double rate, double max_norm, double* norm);
  // How often the optimizer ran.
  uint64_t updates() const { return updates_; }

  // At most `max_bytes` of keys and values from `cursor` on, at least one row unless none is left. Pieces are of the
  // values as they are now: a table that changes meanwhile is exported with the changes that came in time.
  virtual ExportPiece export_from(uint64_t cursor, size_t max_bytes) = 0;
  virtual size_t bytes() const = 0;

 protected:
  // Saves what the sum is about to change, applies it as update number `number` and returns the norm of the change.
  // Either `keep_tried` or `undo_tried` follows.
  virtual double try_apply(double rate, uint64_t number) = 0;
  virtual void keep_tried() = 0;
  virtual void undo_tried() = 0;

  uint64_t next_update() { return ++updates_; }
  // Whether `bytes` more exceed the budget.
  const MemoryBudget* exceeded_by(size_t bytes) const;
  // Makes the budget say what the table takes.
  void charge();

 private:
  TableSpec spec_;
  uint64_t updates_ = 0;
  MemoryBudget* budget_ = nullptr;
  size_t charged_ = 0;
};

struct RowCounters {
  uint64_t made = 0, expired = 0;
  uint64_t not_admitted = 0;       // touches of keys that got no row
  uint64_t gradients_skipped = 0;  // of keys without a row
};

class SparseTable : public Table {
 public:
  using Table::Table;
  SparseTable* sparse() override { return this; }

  // The rows of the keys, made where they are missing and the key is admitted; SparseIndex::kNoRow where it is not.
  // kFull, with no row made or changed, when the new rows do not fit the table's memory or the budget. Rows that nobody
  // touched for long may go meanwhile: a little of the table is looked at in each call.
  virtual Status touch(std::span<const uint64_t> keys, Time now, std::vector<uint32_t>& rows) = 0;
  // The same, but nothing is made, freed or counted as touched: kNoRow where there is no row.
  virtual void find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const = 0;
  // The rows' weights, one after the other; zeros for kNoRow. `out` has room for exactly these.
  virtual void gather(std::span<const uint32_t> rows, MutableBytes out) const = 0;
  // Nothing for kNoRow and rows that were freed.
  virtual std::optional<uint64_t> key_of(uint32_t row) const = 0;
  virtual uint32_t rows() const = 0;

  // Lists that a touch made later than this have all their rows still. The start of time if none was ever freed.
  virtual Time freed_up_to() const = 0;
  virtual const RowCounters& row_counters() const = 0;
  // The keys that are touched most and estimates of how often.
  virtual std::vector<std::pair<uint64_t, uint64_t>> hottest(size_t n) const = 0;
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
// Makes those zero. Returns how many there were.
size_t zero_non_finite(MutableBytes values, ValueType type);

}  // namespace talweg
