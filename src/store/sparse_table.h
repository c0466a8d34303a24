// A sparse table: rows of 64-bit keys, made on first touch or when a key is admitted, freed when they were not touched
// for long. Memory grows with the keys that have rows; the gradients of a step are summed in a scratch that grows with
// the rows of one step. Memory of freed rows is used again and never given back to the system, so the table stays at
// what the most rows of one time needed.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "store/admission.h"
#include "store/hot_keys.h"
#include "store/row_storage.h"
#include "store/sparse_index.h"
#include "store/table.h"
#include "store/zeroed_array.h"

namespace talweg {

template <class Real>
class SparseTableOf final : public SparseTable {
 public:
  SparseTableOf(TableSpec spec, std::unique_ptr<Optimizer<Real>> optimizer);

  Status touch(std::span<const uint64_t> keys, Time now, std::vector<uint32_t>& rows) override;
  void find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const override;
  void gather(std::span<const uint32_t> rows, MutableBytes out) const override;
  std::optional<uint64_t> key_of(uint32_t row) const override { return index_.key_of(row); }
  uint32_t rows() const override { return index_.size(); }
  Time freed_up_to() const override { return freed_up_to_; }
  const RowCounters& row_counters() const override { return counters_; }
  std::vector<std::pair<uint64_t, uint64_t>> hottest(size_t n) const override { return hot_keys_.hottest(n); }

  void accumulate(const Contribution& contribution) override;
  void apply(double rate) override;
  void apply_one(Contribution& contribution, double rate) override;
  ExportPiece export_from(uint64_t cursor, size_t max_bytes) override;
  size_t bytes() const override;

 private:
  double try_apply(double rate, uint64_t number) override;
  void keep_tried() override;
  void undo_tried() override;

  Status touch_rows(std::span<const uint64_t> keys, Time now, std::vector<uint32_t>& rows);
  Status make_rows(std::span<const uint64_t> keys, std::span<const uint32_t> missing, uint32_t stamp, uint32_t* rows);
  std::span<const uint32_t> admitted_of(std::span<const uint64_t> keys, std::span<const uint32_t> missing);
  void find_again(std::span<const uint64_t> keys, std::span<const uint32_t> missing, uint32_t* rows) const;
  void start_rows(std::span<const uint64_t> keys, const uint32_t* rows);
  bool has_room(size_t count) const;
  Status make_room(std::span<const uint64_t> keys, std::span<const uint32_t> at);
  Status check_limits(size_t count) const;
  size_t growth_bytes(size_t count) const;

  bool expires() const { return spec().rows.expire_after > Duration(); }
  uint64_t stamp_of(Time now) const { return static_cast<uint64_t>(now.time_since_epoch() / stamp_unit_); }
  void sweep(size_t slots, uint64_t now);

  template <size_t kWidth>
  void accumulate_rows(std::span<const uint32_t> rows, const Real* gradients);
  template <size_t kWidth>
  void gather_rows(std::span<const uint32_t> rows, Real* out) const;
  std::span<const uint32_t> sum_repeated(std::span<const uint32_t> rows, Real* gradients);
  bool in_sum(uint32_t row) const { return slot_of_[row] < touched_.size() && touched_[slot_of_[row]] == row; }
  void apply_to(std::span<const uint32_t> rows, const Real* gradients, double rate, uint64_t number);
  void values_changed();

  std::unique_ptr<Optimizer<Real>> optimizer_;
  SparseIndex index_;
  RowStorage<Real> storage_;
  Admission admission_;
  HotKeys hot_keys_;
  RowCounters counters_;

  // The time of a row's last touch is kept in 32 bits, in units that divide the time it may stay untouched finely.
  Duration stamp_unit_;
  Time freed_up_to_ = Time::min();

  // The sum of the step: row touched_[slot] has its sum at sums_[slot * width]. slot_of_[row] may be left over from an
  // earlier step; it holds only if touched_ says so too, and so it never needs clearing (Briggs and Torczon, "An
  // efficient representation for sparse sets", 1993). It grows with the index: freed rows are used first, so there are
  // never more rows than keys fit the index.
  ZeroedArray<uint32_t> slot_of_;
  std::vector<uint32_t> touched_;
  std::vector<Real> sums_;   // what is behind the touched rows is left over
  std::vector<Real> tried_;  // the rows of the sum as they were before it was tried

  // Scratch of a touch: places in its list of keys.
  std::vector<uint32_t> missing_, admitted_, fresh_;
  std::vector<uint32_t> distinct_;  // the rows of a contribution that names some of them twice

  // The keys, rising, from the first piece of an export until the table changes after the last one.
  std::vector<uint64_t> exported_;
  bool export_done_ = false;
};

}  // namespace talweg
