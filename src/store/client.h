// A worker's view of the parameter store: pull, push, over all shards at once.
//
//   route.build(keys);                                  // once per batch
//   co_await store.pull<float>(kTable, step, route, weights);
//   ... compute gradients ...
//   co_await store.push<float>(kTable, step, route, gradients);
//
// Every training step pulls and pushes each table once: a shard counts pushes to know when a step is over. All calls
// repeat themselves over lost connections, and a repeated push counts once. The keys travel once a step: the push of
// the keys that were pulled sends values only. Spans and routes must stay valid until the call ends. Not thread-safe;
// calls for different tables may be under way beside each other.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "io/rpc.h"
#include "store/config.h"
#include "store/routing.h"
#include "store/table_spec.h"

namespace talweg::proto {
class PullRequest;
}

namespace talweg {

// A whole table, sorted by key (sparse) or in order (dense).
template <class Real>
struct TableDump {
  std::vector<uint64_t> keys;  // sparse
  std::vector<Real> values;    // spec.width for each key
};

class StoreClient {
 public:
  // Shard i is node shards[i]. Who only reads needs no rank of its own.
  StoreClient(Io& io, std::vector<Peer> shards, uint32_t rank, StoreConfig config);

  uint32_t shards() const { return static_cast<uint32_t>(shards_.size()); }
  const StoreClientCounters& counters() const { return counters_; }

  // Makes the table on all shards, or finds it there. Every client does this before it uses a table.
  Task<Status> create(TableSpec spec);

  // The rows of the route's keys as they are when all pushes before `step` are in; rows that are new are made.
  template <class Real>
  Task<Status> pull(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out);
  // This worker's share of `step`: one row of gradients for each key of the route.
  template <class Real>
  Task<Status> push(TableId table, int64_t step, const KeyRoute& route, std::span<const Real> gradients);
  // As pull, for evaluation: makes no rows (they read as zero) and takes no part in training.
  template <class Real>
  Task<Status> read(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out);

  // The same for [begin, begin + size of the span) of a dense table.
  template <class Real>
  Task<Status> pull_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out);
  template <class Real>
  Task<Status> push_range(TableId table, int64_t step, uint64_t begin, std::span<const Real> gradients);
  template <class Real>
  Task<Status> read_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out);

  // The whole table, when all pushes before `step` are in.
  template <class Real>
  Task<Result<TableDump<Real>>> dump(TableId table, int64_t step);

 private:
  template <class Real>
  Result<const TableSpec*> find(TableId table, bool sparse) const;
  template <class Real>
  Task<Status> pull_keys(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out, bool training);
  template <class Real>
  Task<Status> pull_values(TableId table, int64_t step, uint64_t begin, std::span<Real> out, bool training);
  template <class Real>
  Task<Status> dump_shard(uint32_t shard, const TableSpec& spec, int64_t step, TableDump<Real>& dump);

  // One shard's part.
  Task<Status> create_at(uint32_t shard, const TableSpec& spec);
  Task<Status> pull_keys_at(uint32_t shard, const TableSpec& spec, int64_t step, const KeyRoute& route,
                            MutableBytes into, bool training);
  Task<Status> pull_at(uint32_t shard, const TableSpec& spec, proto::PullRequest head, Bytes keys, MutableBytes into);
  Task<Status> push_keys_at(uint32_t shard, const TableSpec& spec, int64_t step, const KeyRoute& route,
                            Bytes gradients);
  Task<Status> pull_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range, MutableBytes into,
                             bool training);
  Task<Status> push_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range, Bytes gradients);
  Task<Status> beside(std::vector<Task<Status>> calls);

  Buffer take_buffer(size_t bytes);
  void give_buffer(Buffer buffer);

  Io& io_;
  const std::vector<Peer> shards_;
  const uint32_t rank_;
  const StoreConfig config_;
  std::map<TableId, TableSpec> specs_;
  std::vector<Buffer> spare_buffers_;
  StoreClientCounters counters_;
};

}  // namespace talweg
