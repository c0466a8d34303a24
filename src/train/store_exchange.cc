#include "train/store_exchange.h"

namespace talweg {

std::vector<Peer> shard_nodes(const Layout& layout) {
  std::vector<Peer> nodes;
  for (uint32_t i = 0; i < layout.shards; ++i) nodes.push_back(layout.shard(i));
  return nodes;
}

StoreJob store_job(const JobConfig& job) {
  return {.id = job.distribute.lease ? job.distribute.lease->job : 0,
          .name = job.name,
          .workers = job.distribute.workers,
          .max_bytes = job.tables.quota};
}

ExchangeMeter meter_of(const StoreClient& client, int64_t rounds) {
  const StoreClientCounters& counters = client.counters();
  return {.rounds = rounds,
          .pulls = counters.pulls,
          .pushes = counters.pushes,
          .bytes_pulled = counters.bytes_pulled,
          .bytes_pushed = counters.bytes_pushed,
          .late = counters.late,
          .lists_known = counters.lists_known,
          .lists_resent = counters.lists_resent};
}

template <class Real>
std::vector<TableSpec> tables_of(const Model<Real>& model, const JobConfig& job) {
  std::vector<TableSpec> tables;
  for (const TableShape& shape : model.layout()) {
    TableSpec spec;
    spec.id = static_cast<TableId>(tables.size());
    spec.name = shape.name;
    spec.sparse = shape.sparse;
    spec.width = shape.width;
    spec.size = shape.size;
    spec.columns = shape.columns;
    spec.type = kValueType<Real>;
    spec.optimizer = job.train.optimizer;
    spec.init = shape.init;
    if (shape.sparse) spec.rows = job.tables.rows;
    spec.sync = shape.sparse ? job.distribute.sync : job.distribute.dense_sync.value_or(job.distribute.sync);
    spec.rate_by_staleness = job.distribute.rate_by_staleness;
    spec.non_finite = job.tables.non_finite;
    tables.push_back(std::move(spec));
  }
  return tables;
}

template <class Real>
StoreExchange<Real>::StoreExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model)
    : io_(io),
      model_(model),
      config_(job.store),
      tables_(tables_of(model, job)),
      // Whether a push came late decides which step is next.
      in_flight_(job.distribute.sync.kind == Sync::Kind::kBackup ? 0 : job.distribute.in_flight),
      says_intent_(job.distribute.intent),
      client_(io, shard_nodes(job.distribute.layout()), store_job(job), rank, config_),
      pushes_(io) {
  // One that is computed, one that is expected, and those under way.
  for (int64_t i = 0; i < in_flight_ + 2; ++i) flights_.emplace_back(client_.shards(), client_.key_order());
}

template <class Real>
Task<Status> StoreExchange<Real>::prepare() {
  for (const TableSpec& table : tables_) CO_TRY(co_await client_.create(table));
  co_return Status();
}

template <class Real>
void StoreExchange<Real>::build_route(int64_t step, const Batch& batch) {
  Flight& flight = this->flight(step);
  if (flight.step == step) return;
  flight.route.build(batch.keys);
  flight.step = step;
}

// Waits until the flight's push has ended.
template <class Real>
Task<Status> StoreExchange<Real>::landed(Flight& flight) {
  while (flight.pushing) {
    const Deadline deadline = io_.within(config_.call_timeout, "push under way", flight.step);
    CO_TRY(co_await io_.wait(push_ended_, deadline));
  }
  co_return std::exchange(flight.outcome, Status());
}

template <class Real>
Task<Status> StoreExchange<Real>::expect(int64_t step, const Batch& batch) {
  CO_TRY(co_await landed(flight(step)));
  build_route(step, batch);
  if (!says_intent_) co_return Status();
  for (const TableSpec& table : tables_) {
    if (table.sparse) CO_TRY(co_await client_.intent(table.id, flight(step).route));
  }
  co_return Status();
}

template <class Real>
Task<Status> StoreExchange<Real>::begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  CO_TRY(co_await landed(flight(step)));
  build_route(step, batch);
  shape_for(batch, model_.layout(), parameters);
  std::vector<Task<Status>> pulls;
  for (const TableSpec& table : tables_) {
    const std::span<Real> into(parameters->tables[table.id]);
    if (table.sparse)
      pulls.push_back(client_.pull<Real>(table.id, step, flight(step).route, into));
    else
      pulls.push_back(client_.pull_range<Real>(table.id, step, 0, into));
  }
  co_return co_await all(io_, std::move(pulls));
}

template <class Real>
Task<Status> StoreExchange<Real>::push_table(Flight& flight, const TableSpec& table) {
  const std::span<const Real> from(flight.gradients.tables[table.id]);
  Result<Pushed> pushed = Pushed();
  if (table.sparse) {
    pushed = co_await client_.push<Real>(table.id, flight.step, flight.route, from);
  } else {
    pushed = co_await client_.push_range<Real>(table.id, flight.step, 0, from);
  }
  if (pushed.ok()) flight.store_step = std::max(flight.store_step, pushed->step);
  co_return pushed.status();
}

template <class Real>
Task<> StoreExchange<Real>::push(Flight& flight) {
  std::vector<Task<Status>> pushes;
  for (const TableSpec& table : tables_) pushes.push_back(push_table(flight, table));
  flight.outcome = co_await all(io_, std::move(pushes));
  if (!flight.outcome.ok()) this->on_failure(flight.outcome);
  flight.pushing = false;
  push_ended_.notify();
}

template <class Real>
Task<Result<int64_t>> StoreExchange<Real>::end(int64_t step, const Batch&, Gradients<Real>* gradients) {
  Flight& flight = this->flight(step);
  std::swap(flight.gradients, *gradients);
  flight.pushing = true;
  flight.store_step = 0;
  pushes_.spawn(push(flight));
  // So many may stay under way.
  if (step >= in_flight_) CO_TRY(co_await landed(this->flight(step - in_flight_)));
  co_return std::max(step + 1, flight.store_step);
}

template <class Real>
Task<Status> StoreExchange<Real>::settle() {
  co_await drain();
  for (Flight& flight : flights_) CO_TRY(co_await landed(flight));
  co_return Status();
}

template <class Real>
Task<Status> StoreExchange<Real>::read(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  shape_for(batch, model_.layout(), parameters);
  Flight& flight = flights_.front();
  flight.step = -1;
  flight.route.build(batch.keys);
  for (const TableSpec& table : tables_) {
    const std::span<Real> into(parameters->tables[table.id]);
    if (table.sparse)
      CO_TRY(co_await client_.read<Real>(table.id, step, flight.route, into));
    else
      CO_TRY(co_await client_.read_range<Real>(table.id, step, 0, into));
  }
  co_return Status();
}

template class StoreExchange<float>;
template class StoreExchange<double>;
template std::vector<TableSpec> tables_of(const Model<float>&, const JobConfig&);
template std::vector<TableSpec> tables_of(const Model<double>&, const JobConfig&);

}  // namespace talweg
