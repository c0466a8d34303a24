#include "store/sparse_table.h"

#include <algorithm>

#include "store/limits.h"

namespace talweg {
namespace {

constexpr size_t kPrefetchRows = 16;

template <class Real>
void add_row(Real* __restrict sum, const Real* __restrict gradient, size_t width) {
  for (size_t j = 0; j < width; ++j) sum[j] += gradient[j];
}

}  // namespace

template <class Real>
SparseTableOf<Real>::SparseTableOf(TableSpec spec, std::unique_ptr<Optimizer<Real>> optimizer)
    : SparseTable(std::move(spec)), optimizer_(std::move(optimizer)), storage_(this->spec().width, *optimizer_) {}

template <class Real>
Status SparseTableOf<Real>::touch(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) {
  if (keys.size() > limits::kMaxRows - index_.size()) {
    return error(Code::kFull, "{} has {} rows on this shard; {} more do not fit", spec().label(), index_.size(),
                 keys.size());
  }
  rows.resize(keys.size());
  index_.find_or_insert(keys, rows.data());
  storage_.grow_to(index_.size());
  return {};
}

template <class Real>
void SparseTableOf<Real>::find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const {
  rows.resize(keys.size());
  index_.find(keys, rows.data());
}

template <class Real>
void SparseTableOf<Real>::gather(std::span<const uint32_t> rows, MutableBytes out) const {
  CHECK(out.size() == rows.size() * spec().row_bytes());
  auto* values = reinterpret_cast<Real*>(out.data());
  if (storage_.width() == 1) return gather_rows<1>(rows, values);
  gather_rows<0>(rows, values);
}

template <class Real>
template <size_t kWidth>
void SparseTableOf<Real>::gather_rows(std::span<const uint32_t> rows, Real* out) const {
  const size_t width = kWidth != 0 ? kWidth : storage_.width();
  const size_t ahead = rows.size() > kPrefetchRows ? rows.size() - kPrefetchRows : 0;
  for (size_t i = 0; i < rows.size(); ++i, out += width) {
    if (i < ahead && rows[i + kPrefetchRows] != SparseIndex::kNoRow) {
      __builtin_prefetch(storage_.row(rows[i + kPrefetchRows]));
    }
    if (rows[i] == SparseIndex::kNoRow) {
      std::fill_n(out, width, Real(0));
    } else {
      std::copy_n(storage_.row(rows[i]), width, out);
    }
  }
}

template <class Real>
void SparseTableOf<Real>::accumulate(const Contribution& contribution) {
  const auto* gradients = reinterpret_cast<const Real*>(contribution.gradients().data());
  if (slot_of_.size() < index_.size()) grow_slots();
  const size_t most = (touched_.size() + contribution.rows.size()) * storage_.width();
  if (sums_.size() < most) sums_.resize(most);
  if (storage_.width() == 1) return accumulate_rows<1>(contribution.rows, gradients);
  accumulate_rows<0>(contribution.rows, gradients);
}

template <class Real>
void SparseTableOf<Real>::grow_slots() {
  ZeroedArray<uint32_t> larger(std::max<size_t>(index_.size(), 2 * slot_of_.size()), Pages::kHuge);
  std::copy_n(slot_of_.data(), slot_of_.size(), larger.data());
  slot_of_ = std::move(larger);
}

template <class Real>
template <size_t kWidth>
void SparseTableOf<Real>::accumulate_rows(std::span<const uint32_t> rows, const Real* gradients) {
  const size_t width = kWidth != 0 ? kWidth : storage_.width();
  const size_t ahead = rows.size() > kPrefetchRows ? rows.size() - kPrefetchRows : 0;
  touched_.reserve(touched_.size() + rows.size());
  for (size_t i = 0; i < rows.size(); ++i, gradients += width) {
    if (i < ahead) __builtin_prefetch(&slot_of_[rows[i + kPrefetchRows]], 1);
    uint32_t& slot = slot_of_[rows[i]];
    if (slot < touched_.size() && touched_[slot] == rows[i]) {
      add_row(&sums_[slot * width], gradients, width);
    } else {
      slot = static_cast<uint32_t>(touched_.size());
      touched_.push_back(rows[i]);
      std::copy_n(gradients, width, &sums_[slot * width]);
    }
  }
}

template <class Real>
void SparseTableOf<Real>::apply() {
  optimizer_->apply(storage_.rows(touched_, sums_.data()));
  touched_.clear();
  if (export_done_) {
    exported_ = {};
    export_done_ = false;
  }
}

template <class Real>
ExportPiece SparseTableOf<Real>::export_from(uint64_t cursor, size_t max_bytes) {
  if (cursor == 0 || exported_.empty()) exported_ = index_.sorted();
  const auto before = [](const auto& entry, uint64_t key) { return entry.first < key; };
  const auto first = std::lower_bound(exported_.begin(), exported_.end(), cursor, before);
  const size_t left = static_cast<size_t>(exported_.end() - first);
  const size_t fit = std::max<size_t>(1, max_bytes / (sizeof(uint64_t) + spec().row_bytes()));

  ExportPiece piece;
  piece.rows = std::min(left, fit);
  std::vector<uint32_t> rows;
  for (auto entry = first; entry != first + static_cast<ptrdiff_t>(piece.rows); ++entry) {
    piece.keys.push_back(entry->first);
    rows.push_back(entry->second);
  }
  piece.values = Buffer(piece.rows * spec().row_bytes());
  gather(rows, piece.values.bytes());
  piece.done = export_done_ = piece.rows == left;
  piece.next = piece.done ? 0 : piece.keys.back() + 1;
  return piece;
}

template <class Real>
size_t SparseTableOf<Real>::bytes() const {
  return index_.bytes() + storage_.bytes() + slot_of_.bytes() + sizeof(uint32_t) * touched_.capacity() +
         sizeof(Real) * sums_.capacity() + sizeof(exported_[0]) * exported_.capacity();
}

template class SparseTableOf<float>;
template class SparseTableOf<double>;

}  // namespace talweg
