#include "train/store_exchange.h"

namespace talweg {

std::vector<Peer> shard_nodes(const Layout& layout) {
  std::vector<Peer> nodes;
  for (uint32_t i = 0; i < layout.shards; ++i) nodes.push_back(layout.shard(i));
  return nodes;
}

template <class Real>
std::vector<TableSpec> tables_of(const Model<Real>& model, const OptimizerConfig& optimizer) {
  std::vector<TableSpec> tables;
  for (const TableShape& shape : model.layout()) {
    TableSpec spec;
    spec.id = static_cast<TableId>(tables.size());
    spec.name = shape.name;
    spec.sparse = shape.sparse;
    spec.width = shape.width;
    spec.size = shape.size;
    spec.type = kValueType<Real>;
    spec.optimizer = optimizer;
    tables.push_back(std::move(spec));
  }
  return tables;
}

template <class Real>
StoreExchange<Real>::StoreExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model)
    : io_(io),
      model_(model),
      tables_(tables_of(model, job.train.optimizer)),
      client_(io, shard_nodes(job.distribute.layout()), rank, job.store),
      route_(job.distribute.layout().shards) {}

template <class Real>
Task<Status> StoreExchange<Real>::prepare() {
  for (const TableSpec& table : tables_) CO_TRY(co_await client_.create(table));
  co_return Status();
}

template <class Real>
Task<Status> StoreExchange<Real>::begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  shape_for(batch, model_.layout(), parameters);
  route_.build(batch.keys);
  std::vector<Task<Status>> pulls;
  for (const TableSpec& table : tables_) {
    const std::span<Real> into(parameters->tables[table.id]);
    if (table.sparse)
      pulls.push_back(client_.pull<Real>(table.id, step, route_, into));
    else
      pulls.push_back(client_.pull_range<Real>(table.id, step, 0, into));
  }
  co_return co_await all(io_, std::move(pulls));
}

template <class Real>
Task<Status> StoreExchange<Real>::end(int64_t step, const Batch&, const Gradients<Real>& gradients) {
  std::vector<Task<Status>> pushes;
  for (const TableSpec& table : tables_) {
    const std::span<const Real> from(gradients.tables[table.id]);
    if (table.sparse)
      pushes.push_back(client_.push<Real>(table.id, step, route_, from));
    else
      pushes.push_back(client_.push_range<Real>(table.id, step, 0, from));
  }
  co_return co_await all(io_, std::move(pushes));
}

template <class Real>
Task<Status> StoreExchange<Real>::read(int64_t step, const Batch& batch, Parameters<Real>* parameters) {
  shape_for(batch, model_.layout(), parameters);
  route_.build(batch.keys);
  for (const TableSpec& table : tables_) {
    const std::span<Real> into(parameters->tables[table.id]);
    if (table.sparse)
      CO_TRY(co_await client_.read<Real>(table.id, step, route_, into));
    else
      CO_TRY(co_await client_.read_range<Real>(table.id, step, 0, into));
  }
  co_return Status();
}

template class StoreExchange<float>;
template class StoreExchange<double>;
template std::vector<TableSpec> tables_of(const Model<float>&, const OptimizerConfig&);
template std::vector<TableSpec> tables_of(const Model<double>&, const OptimizerConfig&);

}  // namespace talweg
