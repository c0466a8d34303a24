// Downpour's worker (Dean et al., "Large scale distributed deep networks", 2012, algorithm 7.1): it computes on a
// replica of the parameters it uses, changes that replica itself, pushes the gradients it has accrued every
// `push_every` steps and fetches the parameters anew every `fetch_every`. A parameter that the replica lacks is pulled
// when a batch first needs it. A fetch never overwrites work that is not pushed yet: what the worker changed itself is
// added to what it fetched. With 1 and 1 it is the basic worker, bit for bit.
//
// To the store, a step is a round: the steps up to a push.
#pragma once

#include "optim/optimizer.h"
#include "store/client.h"
#include "store/row_storage.h"
#include "store/sparse_index.h"
#include "train/store_exchange.h"

namespace talweg {

template <class Real>
class DownpourExchange final : public Exchange<Real> {
 public:
  // `optimizers` makes the ones that change the replica.
  DownpourExchange(Io& io, const JobConfig& job, uint32_t rank, const Model<Real>& model,
                   const OptimizerRegistry& optimizers);

  Task<Status> prepare() override;
  Task<Status> expect(int64_t, const Batch&) override { co_return Status(); }
  Task<Status> begin(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;
  Task<Result<int64_t>> end(int64_t step, const Batch& batch, Gradients<Real>* gradients) override;
  Task<> drain() override { co_return; }
  Task<Status> settle() override;
  Task<Status> read(int64_t step, const Batch& batch, Parameters<Real>* parameters) override;
  size_t batches_in_use() const override { return 2; }

  ExchangeMeter meter(int64_t) const override { return meter_of(client_, round_); }

 private:
  // A table's part of the replica. Row r is the r-th key of the replica, or (dense) the r-th value of the table.
  struct Replica {
    TableSpec spec;
    std::unique_ptr<Optimizer<Real>> optimizer;
    // Weights and the local optimizer's state; then the weights as they were when the row was last fetched or pushed;
    // then the sum of the gradients that were not pushed yet.
    RowStorage<Real> rows;
    std::vector<Real> moving;  // what is fetched or pushed
    uint64_t updates = 0;

    Real* anchor(Real* row) const { return row + rows.stride() - 2 * spec.width; }
    Real* accrued(Real* row) const { return row + rows.stride() - spec.width; }
  };
  // What is known of a key's rows, the same in all sparse tables; of the dense tables there is one for all.
  struct Known {
    uint64_t key = 0;
    uint32_t fetched_in = 0;  // the fetch in which it was fetched last, from 1
    bool pending = false;     // has gradients that were not pushed
  };
  std::span<const uint32_t> rows_of(const Replica& replica, std::span<const uint32_t> sparse) const {
    return replica.spec.sparse ? sparse : std::span<const uint32_t>(dense_rows_).first(replica.spec.size);
  }
  const Known& known(const Replica& replica, uint32_t row) const { return replica.spec.sparse ? known_[row] : dense_; }
  // Puts what was fetched into the rows, under what was changed here.
  void rebase(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> fetched);
  void accrue(Replica& replica, std::span<const uint32_t> rows, std::span<const Real> gradients, double rate);

  // The rows of a batch's keys, made where they are new, and which of them must be fetched.
  void find_rows(std::span<const uint64_t> keys);
  Task<Status> fetch(std::span<const uint32_t> stale);
  Task<Status> push_round();
  Task<Status> push_table(Replica& replica);

  Io& io_;
  const Model<Real>& model_;
  const JobConfig& job_;
  const OptimizerRegistry& optimizers_;
  StoreClient client_;
  std::vector<Replica> tables_;

  SparseIndex index_;         // of the keys of all sparse tables
  std::vector<Known> known_;  // by row
  Known dense_;
  std::vector<uint32_t> unpushed_;    // rows of the sparse tables that are pending
  std::vector<uint32_t> dense_rows_;  // 0, 1, 2, ...
  std::vector<uint32_t> stale_, missing_, fresh_;
  KeyRoute fetch_route_, push_route_;
  std::vector<uint64_t> fetch_keys_, push_keys_;
  std::vector<uint32_t> batch_rows_;  // of the batch that is computed
  uint32_t fetch_ = 0;
  int64_t round_ = 0;
  int64_t steps_in_round_ = 0;
  bool round_begun_ = false;  // the store let us begin it
};

}  // namespace talweg
