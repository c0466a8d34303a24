#include "store/dense_table.h"

#include <algorithm>
#include <cstring>

#include "math/kernels.h"
#include "store/change_norm.h"

namespace talweg {

template <class Real>
DenseTableOf<Real>::DenseTableOf(TableSpec spec, Range range, std::unique_ptr<Optimizer<Real>> optimizer)
    : DenseTable(std::move(spec)),
      optimizer_(std::move(optimizer)),
      range_(range),
      values_(range.size() * (1 + optimizer_->state_per_weight())) {
  const size_t size = range.size();
  if (this->spec().init.type != InitType::kZeros) {
    for (size_t i = 0; i < size; ++i) this->spec().init.fill(range.begin + i, std::span(&values_[i], 1));
  }
  for (size_t k = 0; k < optimizer_->state_per_weight(); ++k) {
    std::fill_n(values_.begin() + static_cast<ptrdiff_t>((k + 1) * size), size, optimizer_->initial_state(k));
  }
}

template <class Real>
Bytes DenseTableOf<Real>::view(Range positions) const {
  CHECK(positions.begin <= positions.end && positions.end <= range_.size());
  return bytes_of(std::span<const Real>(values_).subspan(positions.begin, positions.size()));
}

template <class Real>
void DenseTableOf<Real>::accumulate(const Contribution& contribution) {
  const Range at = contribution.range;
  CHECK(at.begin <= at.end && at.end <= range_.size());
  if (at.size() == 0) return;
  if (sums_.empty()) {
    sums_.resize(range_.size());
    charge();
  }
  const std::span gradients(reinterpret_cast<const Real*>(contribution.gradients().data()), at.size());
  const std::span<Real> sums = std::span(sums_).subspan(at.begin, at.size());
  if (covered_.empty()) {
    covered_.push_back(at);
    std::copy(gradients.begin(), gradients.end(), sums.begin());
    return;
  }
  cover(at);
  add(sums, gradients);
}

template <class Real>
void DenseTableOf<Real>::cover(Range positions) {
  std::vector<Range> merged;
  Range joined = positions;
  uint64_t fresh = positions.begin;  // up to here the positions are covered or cleared
  for (const Range old : covered_) {
    if (old.end < positions.begin || old.begin > positions.end) continue;
    if (fresh < old.begin) std::fill(&sums_[fresh], &sums_[old.begin], Real(0));
    fresh = std::max(fresh, old.end);
    joined = {std::min(joined.begin, old.begin), std::max(joined.end, old.end)};
  }
  if (fresh < positions.end) std::fill_n(&sums_[fresh], positions.end - fresh, Real(0));
  for (const Range old : covered_) {
    if (old.end < joined.begin || old.begin > joined.end) merged.push_back(old);
  }
  merged.push_back(joined);
  std::sort(merged.begin(), merged.end(), [](Range a, Range b) { return a.begin < b.begin; });
  covered_ = std::move(merged);
}

template <class Real>
void DenseTableOf<Real>::apply(double rate) {
  const uint64_t number = next_update();
  if (optimizer_->needs_whole_block() && !covered_.empty()) cover({0, range_.size()});
  for (const Range run : covered_) apply_run(run, &sums_[run.begin], rate, number);
  covered_.clear();
}

template <class Real>
void DenseTableOf<Real>::apply_one(Contribution& contribution, double rate) {
  const Range at = contribution.range;
  CHECK(covered_.empty() && at.begin <= at.end && at.end <= range_.size());
  if (optimizer_->needs_whole_block() && at != Range{0, range_.size()}) {
    accumulate(contribution);
    return apply(rate);
  }
  const uint64_t number = next_update();
  if (at.size() == 0) return;
  apply_run(at, reinterpret_cast<const Real*>(contribution.gradients().data()), rate, number);
}

// To the optimizer, what is covered in one run is one row.
template <class Real>
void DenseTableOf<Real>::apply_run(Range run, const Real* gradients, double rate, uint64_t number) {
  const uint32_t only[] = {0};
  Real* const weights = values_.data() + run.begin;
  optimizer_->apply({.chunks = &weights,
                     .chunk_shift = 0,
                     .stride = 0,
                     .state_offset = range_.size(),
                     .width = run.size(),
                     .rows = only,
                     .gradients = gradients,
                     .rate = rate,
                     .number = number});
}

template <class Real>
template <class Visit>
void DenseTableOf<Real>::for_each_tried(Visit visit) {
  size_t at = 0;
  for (size_t k = 0; k <= optimizer_->state_per_weight(); ++k) {
    for (const Range run : covered_) {
      visit(std::span(values_).subspan(k * range_.size() + run.begin, run.size()), &tried_[at]);
      at += run.size();
    }
  }
}

template <class Real>
double DenseTableOf<Real>::try_apply(double rate, uint64_t number) {
  size_t covered = 0;
  for (const Range run : covered_) covered += run.size();
  tried_.resize(covered * (1 + optimizer_->state_per_weight()));
  for_each_tried([](std::span<const Real> values, Real* saved) { std::copy(values.begin(), values.end(), saved); });
  for (const Range run : covered_) apply_run(run, &sums_[run.begin], rate, number);
  ChangeNorm norm;
  const Real* before = tried_.data();
  for (const Range run : covered_) {
    norm.add(&values_[run.begin], before, run.size());
    before += run.size();
  }
  return norm.value();
}

template <class Real>
void DenseTableOf<Real>::undo_tried() {
  for_each_tried([](std::span<Real> values, const Real* saved) { std::copy_n(saved, values.size(), values.begin()); });
}

template <class Real>
ExportPiece DenseTableOf<Real>::export_from(uint64_t cursor, size_t max_bytes) {
  const uint64_t begin = std::clamp(cursor, range_.begin, range_.end) - range_.begin;
  const uint64_t end = std::min(range_.size(), begin + std::max<uint64_t>(1, max_bytes / sizeof(Real)));
  const Bytes values = view({begin, end});
  ExportPiece piece;
  piece.rows = end - begin;
  piece.values = Buffer(values.size());
  if (!values.empty()) std::memcpy(piece.values.data(), values.data(), values.size());
  piece.done = end == range_.size();
  piece.next = piece.done ? 0 : range_.begin + end;
  return piece;
}

template class DenseTableOf<float>;
template class DenseTableOf<double>;

}  // namespace talweg
