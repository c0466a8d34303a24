// The exchange through the parameter store: pull the batch's rows, push their gradients.
#pragma once

#include "store/client.h"
#include "train/exchange.h"
#include "train/job.h"

namespace talweg {

// The tables of a model, in the order of its layout.
template <class Real>
std::vector<TableSpec> tables_of(const Model<Real>& model, const OptimizerConfig& optimizer);

template <class Real>
class StoreExchange final : public Exchange<Real> {
 public:
  StoreExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model);

  Task<Status> prepare() override;
  Task<Status> begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;
  Task<Status> end(int64_t step, const Batch& batch, const Gradients<Real>& gradients) override;
  Task<Status> read(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;

  StoreClient& client() { return client_; }

 private:
  Io& io_;
  const Model<Real>& model_;
  std::vector<TableSpec> tables_;
  StoreClient client_;
  KeyRoute route_;
};

// The nodes that hold the store's shards.
std::vector<Peer> shard_nodes(const Layout& layout);

}  // namespace talweg
