// A worker's view of the parameter store: pull, push, over all shards at once.
//
//   route.build(keys);                                  // once per batch
//   co_await store.pull<float>(kTable, step, route, weights);
//   ... compute gradients ...
//   co_await store.push<float>(kTable, step, route, gradients);
//
// Every step pulls and pushes each table once: a shard counts pushes to know how far a worker is. All calls repeat
// themselves over lost connections, and a repeated push counts once. A key list that a shard knows already, from this
// step's pull or from an earlier step, travels as a hash. Spans and routes must stay valid until the call ends. Not
// thread-safe; calls may be under way beside each other.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/rpc.h"
#include "store/config.h"
#include "store/routing.h"
#include "store/table_spec.h"

namespace talweg::proto {
class PullRequest;
class PushRequest;
class StatsReply;
}  // namespace talweg::proto

namespace talweg {

// A whole table, sorted by key (sparse) or in order (dense).
template <class Real>
struct TableDump {
  std::vector<uint64_t> keys;  // sparse
  std::vector<Real> values;    // spec.width for each key
};

// The job whose tables a client uses. All its clients must say the same.
struct StoreJob {
  uint64_t id = 0;
  std::string name = "job";
  uint32_t workers = 1;
  uint64_t max_bytes = 0;  // of its tables on one shard; 0: no limit of its own
};

// What became of a push.
struct Pushed {
  int64_t step = 0;   // steps of the table that are over, on the shard that is furthest
  bool late = false;  // some shard's step was over without it
};

class StoreClient {
 public:
  // Shard i is node shards[i]. Who only reads needs no rank of its own.
  StoreClient(Io& io, std::vector<Peer> shards, StoreJob job, uint32_t rank, StoreConfig config);

  uint32_t shards() const { return static_cast<uint32_t>(shards_.size()); }
  KeyOrder key_order() const { return config_.pack_keys ? KeyOrder::kSorted : KeyOrder::kGiven; }
  const StoreClientCounters& counters() const { return counters_; }

  // Makes the table on all shards, or finds it there. Every client does this before it uses a table.
  Task<Status> create(TableSpec spec);
  // Forgets the job and its tables on all shards.
  Task<Status> drop_job();

  // The rows of the route's keys, when the table's clock lets this worker begin `step`; rows that are new are made.
  template <class Real>
  Task<Status> pull(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out);
  // This worker's share of `step`: one row of gradients for each key that the route was given.
  template <class Real>
  Task<Result<Pushed>> push(TableId table, int64_t step, const KeyRoute& route, std::span<const Real> gradients);
  // As pull, for evaluation: makes no rows (they read as zero) and takes no part in training. Waits until all steps
  // before `step` are over.
  template <class Real>
  Task<Status> read(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out);
  // Says that these keys will be pulled soon: the shards look them up and make their rows meanwhile. Nothing is done
  // for tables that do not admit every key.
  Task<Status> intent(TableId table, const KeyRoute& route);

  // The same for [begin, begin + size of the span) of a dense table.
  template <class Real>
  Task<Status> pull_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out);
  template <class Real>
  Task<Result<Pushed>> push_range(TableId table, int64_t step, uint64_t begin, std::span<const Real> gradients);
  template <class Real>
  Task<Status> read_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out);

  // The whole table, when all steps before `step` are over.
  template <class Real>
  Task<Result<TableDump<Real>>> dump(TableId table, int64_t step);
  // Runs a registered function (store/functions.h) on every shard; their results in the order of the shards.
  Task<Result<std::vector<std::vector<std::byte>>>> call_function(TableId table, std::string function, Bytes argument);
  // What the shards have counted for this job, in their order.
  Task<Result<std::vector<proto::StatsReply>>> stats();

 private:
  // The hashes of key lists that a shard should know.
  class KnownLists {
   public:
    bool contains(uint64_t hash) const { return hashes_.contains(hash); }
    void add(uint64_t hash);
    void remove(uint64_t hash);

   private:
    std::set<uint64_t> hashes_;
    std::deque<uint64_t> order_;
  };
  struct CreatedTable {
    TableSpec spec;
    std::vector<KnownLists> known;  // by shard
  };

  template <class Real>
  Result<CreatedTable*> find(TableId table, bool sparse);
  template <class Real>
  Task<Status> pull_keys(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out, bool training);
  template <class Real>
  Task<Status> pull_values(TableId table, int64_t step, uint64_t begin, std::span<Real> out, bool training);
  template <class Real>
  Task<Status> dump_shard(uint32_t shard, const TableSpec& spec, int64_t step, TableDump<Real>& dump);

  // One shard's part.
  Task<Status> create_at(uint32_t shard, const TableSpec& spec);
  Task<Status> drop_at(uint32_t shard);
  Task<Status> pull_keys_at(uint32_t shard, CreatedTable& table, proto::PullRequest head, const KeyRoute& route,
                            MutableBytes into);
  Task<Status> pull_range_at(uint32_t shard, const TableSpec& spec, proto::PullRequest head, MutableBytes into);
  Task<Status> push_keys_at(uint32_t shard, CreatedTable& table, int64_t step, const KeyRoute& route, Bytes gradients,
                            Pushed* pushed);
  Task<Status> push_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range, Bytes gradients,
                             Pushed* pushed);
  Task<Status> function_at(uint32_t shard, const TableSpec& spec, const std::string& function, Bytes argument,
                           std::vector<std::byte>* result);
  Task<Status> stats_at(uint32_t shard, proto::StatsReply* stats);
  Task<Status> beside(std::vector<Task<Status>> calls);
  proto::PullRequest pull_head(const TableSpec& spec, int64_t step, bool training) const;
  proto::PushRequest push_head(const TableSpec& spec, int64_t step) const;
  // The keys as they travel; `packed` holds them if they are packed.
  Bytes wire_keys(const KeyRoute& route, uint32_t shard, std::vector<std::byte>* packed) const;

  Buffer take_buffer(size_t bytes);
  void give_buffer(Buffer buffer);

  Io& io_;
  const std::vector<Peer> shards_;
  const StoreJob job_;
  const uint32_t rank_;
  const StoreConfig config_;
  std::map<TableId, CreatedTable> tables_;
  std::vector<Buffer> spare_buffers_;
  StoreClientCounters counters_;
};

}  // namespace talweg
