// A sparse table: rows of 64-bit keys, made on first touch. Memory grows with the keys that were touched; the gradients
// of a step are summed in a scratch that grows with the rows of one step.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "store/row_storage.h"
#include "store/sparse_index.h"
#include "store/table.h"
#include "store/zeroed_array.h"

namespace talweg {

template <class Real>
class SparseTableOf final : public SparseTable {
 public:
  SparseTableOf(TableSpec spec, std::unique_ptr<Optimizer<Real>> optimizer);

  Status touch(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) override;
  void find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const override;
  void gather(std::span<const uint32_t> rows, MutableBytes out) const override;
  uint64_t key_of(uint32_t row) const override { return index_.key_of(row); }
  uint32_t rows() const override { return index_.size(); }
  void accumulate(const Contribution& contribution) override;
  void apply() override;
  ExportPiece export_from(uint64_t cursor, size_t max_bytes) override;
  size_t bytes() const override;

 private:
  void grow_slots();
  template <size_t kWidth>
  void accumulate_rows(std::span<const uint32_t> rows, const Real* gradients);
  template <size_t kWidth>
  void gather_rows(std::span<const uint32_t> rows, Real* out) const;

  std::unique_ptr<Optimizer<Real>> optimizer_;
  SparseIndex index_;
  RowStorage<Real> storage_;

  // The sum of the step: row touched_[slot] has its sum at sums_[slot * width]. slot_of_[row] may be left over from an
  // earlier step; it holds only if touched_ says so too, and so it never needs clearing (Briggs and Torczon, "An
  // efficient representation for sparse sets", 1993).
  ZeroedArray<uint32_t> slot_of_;
  std::vector<uint32_t> touched_;
  std::vector<Real> sums_;  // what is behind the touched rows is left over

  // By key, from the first piece of an export until the table changes after the last one.
  std::vector<std::pair<uint64_t, uint32_t>> exported_;
  bool export_done_ = false;
};

}  // namespace talweg
