// The exchange through the parameter store: pull the batch's rows, push their gradients. Some pushes may be under way
// while the next step is pulled; the shards look up the next batch's keys while this one is computed.
#pragma once

#include <deque>

#include "store/client.h"
#include "train/exchange.h"
#include "train/job.h"

namespace talweg {

// The tables of a model, in the order of its layout.
template <class Real>
std::vector<TableSpec> tables_of(const Model<Real>& model, const JobConfig& job);

// The nodes that hold the store's shards, and the job as they know it.
std::vector<Peer> shard_nodes(const Layout& layout);
StoreJob store_job(const JobConfig& job);

ExchangeMeter meter_of(const StoreClient& client, int64_t rounds);

template <class Real>
class StoreExchange final : public Exchange<Real> {
 public:
  StoreExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model);

  Task<Status> prepare() override;
  Task<Status> expect(int64_t step, const Batch& batch) override;
  Task<Status> begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;
  Task<Result<int64_t>> end(int64_t step, const Batch& batch, Gradients<Real>* gradients) override;
  Task<> drain() override { co_await pushes_.join(); }
  Task<Status> settle() override;
  Task<Status> read(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;
  size_t batches_in_use() const override { return flights_.size(); }

  ExchangeMeter meter(int64_t step) const override { return meter_of(client_, step); }

 private:
  // A step on its way through the store.
  struct Flight {
    explicit Flight(uint32_t shards, KeyOrder order) : route(shards, order) {}
    int64_t step = -1;  // the one whose keys the route has
    KeyRoute route;
    Gradients<Real> gradients;
    bool pushing = false;
    int64_t store_step = 0;  // as far as the tables were when the push was taken
    Status outcome;
  };
  Flight& flight(int64_t step) { return flights_[static_cast<size_t>(step) % flights_.size()]; }
  void build_route(int64_t step, const Batch& batch);
  Task<> push(Flight& flight);
  Task<Status> push_table(Flight& flight, const TableSpec& table);
  Task<Status> landed(Flight& flight);

  Io& io_;
  const Model<Real>& model_;
  const StoreConfig config_;
  const std::vector<TableSpec> tables_;
  const int64_t in_flight_;
  const bool says_intent_;
  StoreClient client_;
  std::deque<Flight> flights_;  // by step, modulo their number
  Signal push_ended_;
  TaskSet pushes_;
};

}  // namespace talweg
