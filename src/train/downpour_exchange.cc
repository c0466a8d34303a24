#include "train/downpour_exchange.h"

#include <algorithm>
#include <numeric>

#include "math/kernels.h"
#include "train/store_exchange.h"

namespace talweg {
namespace {

constexpr size_t kPrefetchRows = 12;

}  // namespace

template <class Real>
DownpourExchange<Real>::DownpourExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model,
                                         const OptimizerRegistry& optimizers)
    : io_(io),
      model_(model),
      job_(job),
      optimizers_(optimizers),
      client_(io, shard_nodes(job.distribute.layout()), store_job(job), rank, job.store),
      fetch_route_(client_.shards(), client_.key_order()),
      push_route_(client_.shards(), client_.key_order()) {}

template <class Real>
Task<Status> DownpourExchange<Real>::prepare() {
  for (const TableSpec& spec : tables_of(model_, job_)) {
    CO_TRY(co_await client_.create(spec));
    auto optimizer = optimizers_.make<Real>(spec.optimizer);
    if (!optimizer.ok()) co_return optimizer.status().within("train.optimizer");
    RowStorage<Real> rows(spec.width, **optimizer, 2 * spec.width);
    if (!spec.sparse) rows.grow_to(static_cast<uint32_t>(spec.size));
    if (!spec.sparse && dense_rows_.size() < spec.size) {
      dense_rows_.resize(spec.size);
      std::iota(dense_rows_.begin(), dense_rows_.end(), 0);
    }
    tables_.push_back({.spec = spec, .optimizer = std::move(*optimizer), .rows = std::move(rows), .moving = {}});
  }
  co_return Status();
}

template <class Real>
void DownpourExchange<Real>::rebase(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> fetched) {
  const size_t width = replica.spec.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchRows < rows.size()) __builtin_prefetch(replica.rows.row(rows[i + kPrefetchRows]), 1);
    Real* const weights = replica.rows.row(rows[i]);
    Real* const anchor = replica.anchor(weights);
    const Real* const fresh = &fetched[i * width];
    if (known(replica, rows[i]).pending) {
      for (size_t j = 0; j < width; ++j) weights[j] = fresh[j] + (weights[j] - anchor[j]);
    } else {
      std::copy_n(fresh, width, weights);
    }
    std::copy_n(fresh, width, anchor);
  }
}

// Pulls these rows of the sparse tables, and the dense tables if they are due. Tables of which nothing is wanted are
// asked for nothing, which still waits for their clock.
template <class Real>
Task<Status> DownpourExchange<Real>::fetch(std::span<const uint32_t> stale) {
  fetch_keys_.clear();
  for (const uint32_t row : stale) fetch_keys_.push_back(known_[row].key);
  fetch_route_.build(fetch_keys_);
  const bool dense_due = dense_.fetched_in != fetch_;
  std::vector<Task<Status>> pulls;
  for (Replica& replica : tables_) {
    const TableSpec& spec = replica.spec;
    replica.moving.resize(spec.sparse ? stale.size() * spec.width : dense_due ? spec.size : 0);
    if (spec.sparse)
      pulls.push_back(client_.pull<Real>(spec.id, round_, fetch_route_, std::span(replica.moving)));
    else
      pulls.push_back(client_.pull_range<Real>(spec.id, round_, 0, std::span(replica.moving)));
  }
  CO_TRY(co_await all(io_, std::move(pulls)));
  for (Replica& replica : tables_) {
    if (replica.spec.sparse || dense_due) rebase(replica, rows_of(replica, stale), replica.moving);
  }
  for (const uint32_t row : stale) known_[row].fetched_in = fetch_;
  dense_.fetched_in = fetch_;
  round_begun_ = true;
  co_return Status();
}

template <class Real>
void DownpourExchange<Real>::find_rows(std::span<const uint64_t> keys) {
  batch_rows_.resize(keys.size());
  missing_.resize(keys.size());
  missing_.resize(index_.touch(keys, std::nullopt, batch_rows_.data(), missing_.data()));
  index_.reserve(missing_.size());
  fresh_.clear();
  index_.insert(keys, missing_, 0, batch_rows_.data(), fresh_);
  known_.resize(index_.size());
  for (const uint32_t i : fresh_) known_[batch_rows_[i]].key = keys[i];
  for (Replica& replica : tables_) {
    if (replica.spec.sparse) replica.rows.grow_to(index_.size());
  }
  stale_.clear();
  for (const uint32_t row : batch_rows_) {
    if (known_[row].fetched_in != fetch_) stale_.push_back(row);
  }
}

template <class Real>
Task<Status> DownpourExchange<Real>::begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  if (step % job_.distribute.fetch_every == 0) ++fetch_;
  find_rows(batch.keys);
  // The store is asked at least once a round: it tells when a round may begin.
  if (!stale_.empty() || dense_.fetched_in != fetch_ || !round_begun_) CO_TRY(co_await fetch(stale_));

  shape_for(batch, model_.layout(), parameters);
  for (size_t t = 0; t < tables_.size(); ++t) {
    Real* out = parameters->tables[t].data();
    const auto rows = rows_of(tables_[t], batch_rows_);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kPrefetchRows < rows.size()) __builtin_prefetch(tables_[t].rows.row(rows[i + kPrefetchRows]));
      out = std::copy_n(tables_[t].rows.row(rows[i]), tables_[t].spec.width, out);
    }
  }
  co_return Status();
}

template <class Real>
void DownpourExchange<Real>::accrue(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> gradients,
                                    double rate) {
  const size_t width = replica.spec.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchRows < rows.size()) __builtin_prefetch(replica.rows.row(rows[i + kPrefetchRows]), 1);
    Real* const sum = replica.accrued(replica.rows.row(rows[i]));
    const Real* const gradient = &gradients[i * width];
    if (known(replica, rows[i]).pending) {
      for (size_t j = 0; j < width; ++j) sum[j] += gradient[j];
    } else {
      std::copy_n(gradient, width, sum);
    }
  }
  Rows<Real> changed = replica.rows.rows(rows, gradients.data());
  changed.rate = rate;
  changed.number = ++replica.updates;
  replica.optimizer->apply(changed);
}

template <class Real>
Task<Result<int64_t>> DownpourExchange<Real>::end(int64_t step, const Batch&, Gradients<Real>* gradients) {
  const double rate = job_.train.optimizer.schedule.rate_at(step);
  for (size_t t = 0; t < tables_.size(); ++t) {
    accrue(tables_[t], rows_of(tables_[t], batch_rows_), gradients->tables[t], rate);
  }
  for (const uint32_t row : batch_rows_) {
    if (!std::exchange(known_[row].pending, true)) unpushed_.push_back(row);
  }
  dense_.pending = true;
  ++steps_in_round_;
  if (steps_in_round_ == job_.distribute.push_every) CO_TRY(co_await push_round());
  co_return step + 1;
}

template <class Real>
Task<Status> DownpourExchange<Real>::push_table(Replica& replica) {
  const size_t width = replica.spec.width;
  const auto rows = rows_of(replica, unpushed_);
  replica.moving.resize(rows.size() * width);
  Real* gradients = replica.moving.data();
  for (const uint32_t row : rows) {
    Real* const weights = replica.rows.row(row);
    gradients = std::copy_n(replica.accrued(weights), width, gradients);
    std::copy_n(weights, width, replica.anchor(weights));
  }
  const std::span<const Real> sums(replica.moving);
  Result<Pushed> pushed = Pushed();
  if (replica.spec.sparse) {
    pushed = co_await client_.push<Real>(replica.spec.id, round_, push_route_, sums);
  } else {
    pushed = co_await client_.push_range<Real>(replica.spec.id, round_, 0, sums);
  }
  co_return pushed.status();
}

template <class Real>
Task<Status> DownpourExchange<Real>::push_round() {
  push_keys_.clear();
  for (const uint32_t row : unpushed_) push_keys_.push_back(known_[row].key);
  push_route_.build(push_keys_);
  std::vector<Task<Status>> pushes;
  for (Replica& replica : tables_) pushes.push_back(push_table(replica));
  CO_TRY(co_await all(io_, std::move(pushes)));
  for (const uint32_t row : unpushed_) known_[row].pending = false;
  unpushed_.clear();
  dense_.pending = false;
  ++round_;
  steps_in_round_ = 0;
  round_begun_ = false;
  co_return Status();
}

template <class Real>
Task<Status> DownpourExchange<Real>::settle() {
  if (steps_in_round_ > 0) CO_TRY(co_await push_round());
  co_return Status();
}

template <class Real>
Task<Status> DownpourExchange<Real>::read(int64_t, const Batch& batch, Parameters<Real>* parameters) {
  shape_for(batch, model_.layout(), parameters);
  KeyRoute route(client_.shards(), client_.key_order());
  route.build(batch.keys);
  for (const Replica& replica : tables_) {
    const std::span<Real> into(parameters->tables[replica.spec.id]);
    if (replica.spec.sparse)
      CO_TRY(co_await client_.read<Real>(replica.spec.id, round_, route, into));
    else
      CO_TRY(co_await client_.read_range<Real>(replica.spec.id, round_, 0, into));
  }
  co_return Status();
}

template class DownpourExchange<float>;
template class DownpourExchange<double>;

}  // namespace talweg
