#include "train/downpour_exchange.h"

#include <algorithm>
#include <numeric>

#include "math/kernels.h"
#include "train/store_exchange.h"

namespace talweg {

template <class Real>
DownpourExchange<Real>::DownpourExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model,
                                         const OptimizerRegistry& optimizers)
    : io_(io),
      model_(model),
      job_(job),
      optimizers_(optimizers),
      client_(io, shard_nodes(job.distribute.layout()), store_job(job), rank, job.store) {}

template <class Real>
Task<Status> DownpourExchange<Real>::prepare() {
  for (const TableSpec& spec : tables_of(model_, job_)) {
    CO_TRY(co_await client_.create(spec));
    auto optimizer = optimizers_.make<Real>(spec.optimizer);
    if (!optimizer.ok()) co_return optimizer.status().within("train.optimizer");
    RowStorage<Real> weights(spec.width, **optimizer);
    tables_.push_back({.spec = spec,
                       .optimizer = std::move(*optimizer),
                       .weights = std::move(weights),
                       .anchor = {},
                       .accrued = {},
                       .pending = {},
                       .unpushed = {}});
    if (!spec.sparse) grow(tables_.back(), static_cast<uint32_t>(spec.size));
    if (!spec.sparse && dense_rows_.size() < spec.size) {
      dense_rows_.resize(spec.size);
      std::iota(dense_rows_.begin(), dense_rows_.end(), 0);
    }
  }
  co_return Status();
}

template <class Real>
void DownpourExchange<Real>::grow(Replica& replica, uint32_t rows) {
  replica.weights.grow_to(rows);
  replica.anchor.resize(rows * replica.spec.width);
  replica.accrued.resize(rows * replica.spec.width);
  replica.pending.resize(rows);
}

template <class Real>
void DownpourExchange<Real>::rebase(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> fetched) {
  const size_t width = replica.spec.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    Real* const weights = replica.weights.row(rows[i]);
    Real* const anchor = &replica.anchor[rows[i] * width];
    const Real* const fresh = &fetched[i * width];
    if (replica.pending[rows[i]] != 0) {
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
  std::vector<uint64_t> keys;
  for (const uint32_t row : stale) keys.push_back(keys_[row]);
  KeyRoute route(client_.shards(), client_.key_order());
  route.build(keys);
  std::vector<std::vector<Real>> fetched(tables_.size());
  std::vector<Task<Status>> pulls;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const TableSpec& spec = tables_[t].spec;
    fetched[t].resize(spec.sparse ? keys.size() * spec.width : dense_fetched_in_ < fetch_ ? spec.size : 0);
    if (spec.sparse)
      pulls.push_back(client_.pull<Real>(spec.id, round_, route, std::span(fetched[t])));
    else
      pulls.push_back(client_.pull_range<Real>(spec.id, round_, 0, std::span(fetched[t])));
  }
  CO_TRY(co_await all(io_, std::move(pulls)));
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto rows = tables_[t].spec.sparse ? stale : std::span<const uint32_t>(dense_rows_).first(fetched[t].size());
    rebase(tables_[t], rows, fetched[t]);
  }
  dense_fetched_in_ = fetch_;
  for (const uint32_t row : stale) fetched_in_[row] = fetch_;
  round_begun_ = true;
  co_return Status();
}

template <class Real>
Task<Status> DownpourExchange<Real>::begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  if (step % job_.distribute.fetch_every == 0) ++fetch_;
  batch_rows_.resize(batch.keys.size());
  const uint32_t known = index_.size();
  std::vector<uint32_t> missing(batch.keys.size()), fresh;
  missing.resize(index_.touch(batch.keys, std::nullopt, batch_rows_.data(), missing.data()));
  index_.reserve(missing.size());
  index_.insert(batch.keys, missing, 0, batch_rows_.data(), fresh);
  keys_.resize(index_.size());
  fetched_in_.resize(index_.size());
  for (size_t i = 0; i < batch.keys.size(); ++i) keys_[batch_rows_[i]] = batch.keys[i];
  if (index_.size() > known) {
    for (Replica& replica : tables_) {
      if (replica.spec.sparse) grow(replica, index_.size());
    }
  }
  std::vector<uint32_t> stale;
  for (const uint32_t row : batch_rows_) {
    if (fetched_in_[row] != fetch_) stale.push_back(row);
  }
  // The store is asked at least once a round: it tells when a round may begin.
  if (!stale.empty() || dense_fetched_in_ < fetch_ || !round_begun_) CO_TRY(co_await fetch(stale));

  shape_for(batch, model_.layout(), parameters);
  for (size_t t = 0; t < tables_.size(); ++t) {
    Replica& replica = tables_[t];
    const size_t width = replica.spec.width;
    const auto rows = replica.spec.sparse ? std::span<const uint32_t>(batch_rows_)
                                          : std::span<const uint32_t>(dense_rows_).first(replica.spec.size);
    Real* out = parameters->tables[t].data();
    for (const uint32_t row : rows) out = std::copy_n(replica.weights.row(row), width, out);
  }
  co_return Status();
}

template <class Real>
void DownpourExchange<Real>::accrue(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> gradients,
                                    double rate) {
  const size_t width = replica.spec.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    Real* const sum = &replica.accrued[rows[i] * width];
    const Real* const gradient = &gradients[i * width];
    if (replica.pending[rows[i]] == 0) {
      replica.pending[rows[i]] = 1;
      replica.unpushed.push_back(rows[i]);
      std::copy_n(gradient, width, sum);
    } else {
      for (size_t j = 0; j < width; ++j) sum[j] += gradient[j];
    }
  }
  Rows<Real> changed = replica.weights.rows(rows, gradients.data());
  changed.rate = rate;
  changed.number = ++replica.updates;
  replica.optimizer->apply(changed);
}

template <class Real>
Task<Result<int64_t>> DownpourExchange<Real>::end(int64_t step, const Batch&, Gradients<Real>* gradients) {
  const double rate = job_.train.optimizer.schedule.rate_at(step);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto rows = tables_[t].spec.sparse ? std::span<const uint32_t>(batch_rows_)
                                             : std::span<const uint32_t>(dense_rows_).first(tables_[t].spec.size);
    accrue(tables_[t], rows, gradients->tables[t], rate);
  }
  ++steps_in_round_;
  if (steps_in_round_ == job_.distribute.push_every) CO_TRY(co_await push_round());
  co_return step + 1;
}

template <class Real>
Task<Status> DownpourExchange<Real>::push_table(Replica& replica) {
  const size_t width = replica.spec.width;
  Result<Pushed> pushed = Pushed();
  if (replica.spec.sparse) {
    std::vector<uint64_t> keys;
    std::vector<Real> gradients;
    for (const uint32_t row : replica.unpushed) {
      keys.push_back(keys_[row]);
      const auto sum = replica.accrued.begin() + static_cast<ptrdiff_t>(row * width);
      gradients.insert(gradients.end(), sum, sum + static_cast<ptrdiff_t>(width));
    }
    KeyRoute route(client_.shards(), client_.key_order());
    route.build(keys);
    pushed = co_await client_.push<Real>(replica.spec.id, round_, route, std::span<const Real>(gradients));
  } else {
    pushed = co_await client_.push_range<Real>(replica.spec.id, round_, 0, std::span<const Real>(replica.accrued));
  }
  if (!pushed.ok()) co_return pushed.status();
  for (const uint32_t row : replica.unpushed) {
    replica.pending[row] = 0;
    std::copy_n(replica.weights.row(row), width, &replica.anchor[row * width]);
  }
  replica.unpushed.clear();
  co_return Status();
}

template <class Real>
Task<Status> DownpourExchange<Real>::push_round() {
  std::vector<Task<Status>> pushes;
  for (Replica& replica : tables_) pushes.push_back(push_table(replica));
  CO_TRY(co_await all(io_, std::move(pushes)));
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
