#include "store/sparse_table.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/rng.h"
#include "store/change_norm.h"
#include "store/limits.h"

namespace talweg {
namespace {

constexpr size_t kPrefetchRows = 16;
constexpr size_t kPrefetchCounters = 8;
// Units in the time after which a row expires.
constexpr uint32_t kStampsToExpiry = 1024;
// How many slots of the index a touch looks at for rows that expired: few for each key, more for each new row. An index
// has at most 3.4 slots for a row, so a round is over before the new rows are a quarter of all, and rows that expired
// are at most half of the table.
constexpr size_t kSweptPerKey = 1;
constexpr size_t kSweptPerNewRow = 16;

template <class Real>
void add_row(Real* __restrict sum, const Real* __restrict gradient, size_t width) {
  for (size_t j = 0; j < width; ++j) sum[j] += gradient[j];
}

size_t count_distinct(std::span<const uint64_t> keys, std::span<const uint32_t> at) {
  std::vector<uint32_t> seen(std::bit_ceil(2 * at.size()));  // places in `at` + 1, by hash
  const size_t mask = seen.size() - 1;
  size_t count = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    size_t slot = mix64(keys[at[i]]) & mask;
    while (seen[slot] != 0 && keys[at[seen[slot] - 1]] != keys[at[i]]) slot = (slot + 1) & mask;
    count += seen[slot] == 0;
    seen[slot] = static_cast<uint32_t>(i + 1);
  }
  return count;
}

}  // namespace

template <class Real>
SparseTableOf<Real>::SparseTableOf(TableSpec spec, std::unique_ptr<Optimizer<Real>> optimizer)
    : SparseTable(std::move(spec)),
      optimizer_(std::move(optimizer)),
      storage_(this->spec().width, *optimizer_),
      admission_(this->spec().rows),
      stamp_unit_(std::max(Duration(1), (this->spec().rows.expire_after + Duration(kStampsToExpiry - 1)) /
                                            static_cast<Duration::rep>(kStampsToExpiry))),
      slot_of_(index_.capacity(), Pages::kHuge) {}

// --- rows of keys

template <class Real>
Status SparseTableOf<Real>::touch(std::span<const uint64_t> keys, Time now, std::vector<uint32_t>& rows) {
  Status outcome;
  try {
    outcome = touch_rows(keys, now, rows);
  } catch (const std::bad_alloc&) {
    outcome = error(Code::kFull, "{} has {} rows in {} bytes on this shard; the system gives no memory for more",
                    spec().label(), index_.size(), bytes());
  }
  charge();
  return outcome;
}

template <class Real>
Status SparseTableOf<Real>::touch_rows(std::span<const uint64_t> keys, Time now, std::vector<uint32_t>& rows) {
  rows.resize(keys.size());
  if (missing_.size() < keys.size()) missing_.resize(keys.size());
  const uint64_t stamp = expires() ? stamp_of(now) : 0;
  const auto short_stamp = static_cast<uint32_t>(stamp);
  const size_t missing =
      index_.touch(keys, expires() ? std::optional(short_stamp) : std::nullopt, rows.data(), missing_.data());
  hot_keys_.sample(keys);
  // What is in the list has been stamped, so this frees none of it.
  if (expires()) sweep(kSweptPerKey * keys.size() + kSweptPerNewRow * missing, stamp);
  if (missing == 0) return {};
  return make_rows(keys, std::span(missing_).first(missing), short_stamp, rows.data());
}

template <class Real>
Status SparseTableOf<Real>::make_rows(std::span<const uint64_t> keys, std::span<const uint32_t> missing, uint32_t stamp,
                                      uint32_t* rows) {
  const std::span<const uint32_t> admitted = admission_.open() ? missing : admitted_of(keys, missing);
  if (admitted.empty()) return {};
  TRY(make_room(keys, admitted));
  index_.insert(keys, admitted, stamp, rows, fresh_);
  start_rows(keys, rows);
  // A key that was admitted late in the list has its row from the beginning of it.
  if (!admission_.open()) find_again(keys, missing, rows);
  return {};
}

template <class Real>
std::span<const uint32_t> SparseTableOf<Real>::admitted_of(std::span<const uint64_t> keys,
                                                           std::span<const uint32_t> missing) {
  admitted_.clear();
  admitted_.reserve(missing.size());
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + kPrefetchCounters < missing.size()) admission_.prefetch(keys[missing[i + kPrefetchCounters]]);
    if (admission_.admit(keys[missing[i]])) admitted_.push_back(missing[i]);
  }
  counters_.not_admitted += missing.size() - admitted_.size();
  return admitted_;
}

template <class Real>
void SparseTableOf<Real>::find_again(std::span<const uint64_t> keys, std::span<const uint32_t> missing,
                                     uint32_t* rows) const {
  for (const uint32_t i : missing) index_.find(keys.subspan(i, 1), &rows[i]);
}

template <class Real>
void SparseTableOf<Real>::start_rows(std::span<const uint64_t> keys, const uint32_t* rows) {
  const uint32_t bound = storage_.size();
  const InitConfig& init = spec().init;
  storage_.grow_to(index_.row_bound());
  counters_.made += fresh_.size();
  for (const uint32_t i : fresh_) {
    if (rows[i] < bound) storage_.reset(rows[i]);
    if (init.type != InitType::kZeros) init.fill(keys[i], std::span(storage_.row(rows[i]), storage_.width()));
  }
}

template <class Real>
bool SparseTableOf<Real>::has_room(size_t count) const {
  const uint64_t rows = index_.row_bound_with(count);
  return index_.has_room(count) && rows <= storage_.capacity() && rows <= limits::kMaxRows;
}

// All memory that new rows need, before anything changes.
template <class Real>
Status SparseTableOf<Real>::make_room(std::span<const uint64_t> keys, std::span<const uint32_t> at) {
  fresh_.clear();
  fresh_.reserve(at.size());
  if (has_room(at.size())) return {};
  const size_t count = count_distinct(keys, at);
  if (has_room(count)) return {};
  TRY(check_limits(count));
  storage_.reserve(index_.row_bound_with(count));
  if (index_.has_room(count)) return {};
  ZeroedArray<uint32_t> slots(index_.capacity_for(count), Pages::kHuge);
  index_.reserve(count);
  std::copy_n(slot_of_.data(), slot_of_.size(), slots.data());
  slot_of_ = std::move(slots);
  return {};
}

template <class Real>
size_t SparseTableOf<Real>::growth_bytes(size_t count) const {
  const size_t slots = index_.has_room(count) ? 0 : index_.capacity_for(count) * sizeof(uint32_t);
  return index_.growth_bytes(count) + storage_.growth_bytes(index_.row_bound_with(count)) + slots;
}

template <class Real>
Status SparseTableOf<Real>::check_limits(size_t count) const {
  if (has_room(count)) return {};
  if (index_.row_bound_with(count) > limits::kMaxRows) {
    return error(Code::kFull, "{} has {} rows on this shard; {} more do not fit: at most {} do", spec().label(),
                 index_.size(), count, limits::kMaxRows);
  }
  constexpr std::string_view kAdvice =
      "raise it, admit fewer keys (rows.admit_count, rows.admit_probability) or let rows expire (rows.expire_after)";
  const size_t growth = growth_bytes(count);
  const uint64_t limit = spec().rows.max_bytes;
  if (limit != 0 && bytes() + growth > limit) {
    return error(Code::kFull,
                 "{} has {} rows in {} bytes on this shard; {} new rows need {} bytes more and its limit is {} "
                 "(rows.max_bytes): {}",
                 spec().label(), index_.size(), bytes(), count, growth, limit, kAdvice);
  }
  if (const MemoryBudget* const budget = exceeded_by(growth)) {
    return error(
        Code::kFull,
        "{} has {} rows in {} bytes on this shard; {} new rows need {} bytes more, and of the {} bytes that may "
        "be taken on a shard ({}) {} are in use: {}",
        spec().label(), index_.size(), bytes(), count, growth, budget->limit, budget->setting, budget->used, kAdvice);
  }
  return {};
}

template <class Real>
void SparseTableOf<Real>::sweep(size_t slots, uint64_t now) {
  uint32_t youngest = ~uint32_t{0};  // age of the freed rows
  const size_t freed = index_.sweep(slots, [&](uint32_t row, uint32_t stamp) {
    const uint32_t age = static_cast<uint32_t>(now) - stamp;
    // Times are cut to whole units: one more makes sure of the whole time.
    if (age <= kStampsToExpiry || in_sum(row)) return false;
    youngest = std::min(youngest, age);
    return true;
  });
  if (freed == 0) return;
  counters_.expired += freed;
  const auto last = static_cast<Duration::rep>(now - youngest);
  freed_up_to_ = std::max(freed_up_to_, Time((last + 1) * stamp_unit_ - Duration(1)));
}

template <class Real>
void SparseTableOf<Real>::find(std::span<const uint64_t> keys, std::vector<uint32_t>& rows) const {
  rows.resize(keys.size());
  index_.find(keys, rows.data());
}

// --- values

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

// --- the sum of a step

template <class Real>
void SparseTableOf<Real>::accumulate(const Contribution& contribution) {
  const auto* gradients = reinterpret_cast<const Real*>(contribution.gradients().data());
  const size_t most = (touched_.size() + contribution.rows.size()) * storage_.width();
  if (sums_.size() < most) {
    sums_.resize(most);
    charge();
  }
  if (storage_.width() == 1) return accumulate_rows<1>(contribution.rows, gradients);
  accumulate_rows<0>(contribution.rows, gradients);
}

template <class Real>
template <size_t kWidth>
void SparseTableOf<Real>::accumulate_rows(std::span<const uint32_t> rows, const Real* gradients) {
  const size_t width = kWidth != 0 ? kWidth : storage_.width();
  const size_t ahead = rows.size() > kPrefetchRows ? rows.size() - kPrefetchRows : 0;
  touched_.reserve(touched_.size() + rows.size());
  for (size_t i = 0; i < rows.size(); ++i, gradients += width) {
    if (i < ahead) __builtin_prefetch(slot_of_.data() + rows[i + kPrefetchRows], 1);
    if (rows[i] == SparseIndex::kNoRow) {
      ++counters_.gradients_skipped;
      continue;
    }
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
void SparseTableOf<Real>::apply(double rate) {
  apply_to(touched_, sums_.data(), rate, next_update());
  touched_.clear();
  values_changed();
}

template <class Real>
void SparseTableOf<Real>::apply_to(std::span<const uint32_t> rows, const Real* gradients, double rate,
                                   uint64_t number) {
  Rows<Real> update = storage_.rows(rows, gradients);
  update.rate = rate;
  update.number = number;
  optimizer_->apply(update);
}

template <class Real>
void SparseTableOf<Real>::values_changed() {
  if (!export_done_) return;
  exported_ = {};
  export_done_ = false;
}

template <class Real>
void SparseTableOf<Real>::apply_one(Contribution& contribution, double rate) {
  CHECK(touched_.empty());
  auto* const gradients = reinterpret_cast<Real*>(contribution.mutable_gradients().data());
  apply_to(sum_repeated(contribution.rows, gradients), gradients, rate, next_update());
  values_changed();
}

// Makes every row stand once, with the sum of its gradients in the order of the list, and takes out kNoRow. The gaps
// that leaves are filled from the end: the optimizer does not mind in which order rows come.
template <class Real>
std::span<const uint32_t> SparseTableOf<Real>::sum_repeated(std::span<const uint32_t> rows, Real* gradients) {
  const size_t width = storage_.width(), count = rows.size();
  const size_t ahead = count > kPrefetchRows ? count - kPrefetchRows : 0;
  fresh_.clear();
  std::vector<uint32_t>& gaps = fresh_;
  for (size_t i = 0; i < count; ++i) {
    if (i < ahead) __builtin_prefetch(slot_of_.data() + rows[i + kPrefetchRows], 1);
    if (rows[i] == SparseIndex::kNoRow) {
      ++counters_.gradients_skipped;
      gaps.push_back(static_cast<uint32_t>(i));
      continue;
    }
    uint32_t& slot = slot_of_[rows[i]];
    if (slot < i && rows[slot] == rows[i]) {
      add_row(gradients + slot * width, gradients + i * width, width);
      gaps.push_back(static_cast<uint32_t>(i));
    } else {
      slot = static_cast<uint32_t>(i);
    }
  }
  if (gaps.empty()) return rows;
  distinct_.assign(rows.begin(), rows.end());
  size_t end = count;
  for (size_t g = 0;; ++g) {
    for (; gaps.size() > g && gaps.back() == end - 1; --end) gaps.pop_back();
    if (g == gaps.size()) return std::span<const uint32_t>(distinct_).first(end);
    --end;
    distinct_[gaps[g]] = distinct_[end];
    std::copy_n(gradients + end * width, width, gradients + gaps[g] * width);
  }
}

// --- trying an update

template <class Real>
double SparseTableOf<Real>::try_apply(double rate, uint64_t number) {
  const size_t stride = storage_.stride();
  tried_.resize(touched_.size() * stride);
  for (size_t i = 0; i < touched_.size(); ++i) std::copy_n(storage_.row(touched_[i]), stride, &tried_[i * stride]);
  apply_to(touched_, sums_.data(), rate, number);
  ChangeNorm norm;
  for (size_t i = 0; i < touched_.size(); ++i)
    norm.add(storage_.row(touched_[i]), &tried_[i * stride], storage_.width());
  return norm.value();
}

template <class Real>
void SparseTableOf<Real>::keep_tried() {
  touched_.clear();
  values_changed();
}

template <class Real>
void SparseTableOf<Real>::undo_tried() {
  const size_t stride = storage_.stride();
  for (size_t i = 0; i < touched_.size(); ++i) std::copy_n(&tried_[i * stride], stride, storage_.row(touched_[i]));
}

// --- export

template <class Real>
ExportPiece SparseTableOf<Real>::export_from(uint64_t cursor, size_t max_bytes) {
  if (cursor == 0 || exported_.empty()) exported_ = index_.sorted_keys();
  auto next = std::lower_bound(exported_.begin(), exported_.end(), cursor);
  const size_t fit = std::max<size_t>(1, max_bytes / (sizeof(uint64_t) + spec().row_bytes()));

  ExportPiece piece;
  std::vector<uint32_t> rows;
  // Of a piece whose rows have all expired since the export began, the next one is sent instead.
  while (piece.keys.empty() && next != exported_.end()) {
    const std::span keys(&*next, std::min(fit, static_cast<size_t>(exported_.end() - next)));
    next += static_cast<ptrdiff_t>(keys.size());
    find(keys, rows);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (rows[i] != SparseIndex::kNoRow) piece.keys.push_back(keys[i]);
    }
    std::erase(rows, SparseIndex::kNoRow);
  }
  piece.rows = piece.keys.size();
  piece.values = Buffer(piece.rows * spec().row_bytes());
  gather(rows, piece.values.bytes());
  piece.done = export_done_ = next == exported_.end();
  piece.next = piece.done ? 0 : piece.keys.back() + 1;
  return piece;
}

template <class Real>
size_t SparseTableOf<Real>::bytes() const {
  const size_t places = missing_.capacity() + admitted_.capacity() + fresh_.capacity() + distinct_.capacity();
  return index_.bytes() + storage_.bytes() + admission_.bytes() + hot_keys_.bytes() + slot_of_.bytes() +
         sizeof(uint32_t) * (touched_.capacity() + places) + sizeof(Real) * (sums_.capacity() + tried_.capacity()) +
         sizeof(uint64_t) * exported_.capacity();
}

template class SparseTableOf<float>;
template class SparseTableOf<double>;

}  // namespace talweg
