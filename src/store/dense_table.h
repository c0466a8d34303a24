// A dense table: one range of values on each shard, changed in place. A step changes the positions that its pushes
// cover, once each; the others stay as they are, L2 penalty included.
#pragma once

#include <memory>
#include <vector>

#include "store/table.h"

namespace talweg {

template <class Real>
class DenseTableOf final : public DenseTable {
 public:
  DenseTableOf(TableSpec spec, Range range, std::unique_ptr<Optimizer<Real>> optimizer);

  Range range() const override { return range_; }
  Bytes view(Range positions) const override;
  void accumulate(const Contribution& contribution) override;
  void apply(double rate) override;
  void apply_one(Contribution& contribution, double rate) override;
  ExportPiece export_from(uint64_t cursor, size_t max_bytes) override;
  size_t bytes() const override { return sizeof(Real) * (values_.capacity() + sums_.capacity() + tried_.capacity()); }

 private:
  double try_apply(double rate, uint64_t number) override;
  void keep_tried() override { covered_.clear(); }
  void undo_tried() override;

  void apply_run(Range run, const Real* gradients, double rate, uint64_t number);
  // Calls visit(part of values_, its place in tried_) for the weights of each covered run, and then for its state.
  template <class Visit>
  void for_each_tried(Visit visit);
  // Makes [begin, end) part of what is covered: sums that are new there start at zero.
  void cover(Range positions);

  std::unique_ptr<Optimizer<Real>> optimizer_;
  Range range_;
  std::vector<Real> values_;    // the weights, then the optimizer's state
  std::vector<Real> sums_;      // made when there is something to sum
  std::vector<Real> tried_;     // what is covered, as it was before the sum was tried
  std::vector<Range> covered_;  // by this step, in rising order, disjoint and with gaps between
};

}  // namespace talweg
