// One shard of the parameter store: a node that holds its part of every table, answers pulls when the table's clock
// (store/table_clock.h) allows, and makes pushes into updates. Several jobs may share it: each has its own tables, its
// own workers and its own share of the memory, and none can reach another's.
//
// Promises: a push is acknowledged when it is taken and counts exactly once however often it is repeated; a request
// that is wrong in any way is refused whole, with the table and where possible the key in the error; every wait has a
// deadline and names the workers it waits for. Keys may come in any order; a key that a list holds twice is one row
// whose gradients are summed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/rpc.h"
#include "optim/registry.h"
#include "store/config.h"
#include "store/functions.h"
#include "store/key_lists.h"
#include "store/table_clock.h"

namespace talweg::proto {
class CreateTableRequest;
class PullReply;
class PullRequest;
class PushReply;
class PushRequest;
class StatsReply;
class StoreJob;
}  // namespace talweg::proto

namespace talweg {

using JobId = uint64_t;

// What users may name in their requests. Must outlive the servers.
struct StoreParts {
  OptimizerRegistry optimizers = OptimizerRegistry::standard();
  FunctionRegistry functions = FunctionRegistry::standard();
};

class StoreServer {
 public:
  // Opens the services, so make it before the node can be reached.
  StoreServer(Io& io, uint32_t shard, uint32_t shards, const StoreParts& parts, StoreConfig config);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Serves until the node stops.
  void start(TaskSet& tasks);

  // Over all tables of all jobs.
  StoreServerCounters counters() const;
  // Of all tables, indexes and scratch.
  size_t bytes() const;
  // The table's clock, if there is such a table.
  const TableClock* clock(JobId job, TableId table) const;

 private:
  struct Served;
  struct Job;

  Task<> on_create(Request request);
  Task<> on_drop(Request request);
  Task<> on_pull(Request request);
  Task<> on_push(Request request);
  Task<> on_export(Request request);
  Task<> on_function(Request request);
  Task<> on_stats(Request request);

  Status create(const proto::CreateTableRequest& head);
  Status create_in(Job& job, const TableSpec& spec);
  Result<Job*> find_or_make(const proto::StoreJob& wanted);
  Status drop(const Request& request);
  Result<std::vector<std::byte>> call_function(const Request& request);
  Result<proto::StatsReply> stats(const Request& request) const;

  using ServedPtr = std::shared_ptr<Served>;
  // Until a worker's pull of the step may be answered, or (no rank) all steps before it are over.
  Task<Status> wait_for_clock(ServedPtr served, int64_t step, std::optional<uint32_t> rank);
  Task<Status> look_up_and_wait(ServedPtr served, const proto::PullRequest& head, const Buffer& body,
                                std::shared_ptr<const KeyList>* list);
  Status check_pull(const Served& served, const proto::PullRequest& head, const Buffer& body) const;
  // The rows of a request's keys: from the keys, or from the list they name. Null: the list is not here.
  Result<std::shared_ptr<const KeyList>> rows_of(Served& served, const proto::PullRequest& head, const Buffer& body);
  Result<std::shared_ptr<const KeyList>> touch(Served& served, std::span<const uint64_t> keys, uint64_t hash);
  Result<std::shared_ptr<const KeyList>> look_up(Served& served, std::span<const uint64_t> keys, uint64_t hash);
  bool may_pull_by(const Served& served, const KeyList& list) const;
  bool may_push_by(const Served& served, const KeyList& list) const;
  Result<std::span<const uint64_t>> unpacked(const Served& served, Bytes packed, uint64_t count);
  Bytes gathered(Served& served, const KeyList& list, Buffer& values);
  Bytes read_range(Served& served, const proto::PullRequest& head, Buffer& values);

  // What becomes of a push, decided before anything of it is done.
  struct Judged {
    ServedPtr served;
    bool wanted = false;
    Contribution contribution;
  };
  Result<Judged> judge(Request& request, proto::PushRequest* head, proto::PushReply* answer);
  void take(Served& served, const proto::PushRequest& head, Contribution contribution);
  template <class Name>
  Status check_finite(Served& served, const proto::PushRequest& head, Contribution& contribution, Name name);
  // Each checks the push whole. False: the key list is not here.
  Result<bool> take_keys(Served& served, const proto::PushRequest& head, Contribution& contribution);
  Result<bool> take_range(Served& served, const proto::PushRequest& head, Contribution& contribution);

  Result<ServedPtr> find(JobId job, TableId table) const;
  Buffer take_buffer(size_t bytes);
  void give_buffer(Buffer buffer);
  Deadline reply_deadline(int64_t step) const { return io_.within(config_.call_timeout, "store reply", step); }
  SendOp refuse(const Request& request, const Status& why);

  Io& io_;
  const uint32_t shard_, shards_;
  const StoreParts& parts_;
  const StoreConfig config_;
  MemoryBudget budget_;  // of all jobs together
  std::map<JobId, std::unique_ptr<Job>> jobs_;
  size_t waiting_pulls_ = 0;
  uint64_t refused_ = 0;
  std::vector<Buffer> spare_buffers_;
  std::vector<uint64_t> unpacked_;  // scratch
};

}  // namespace talweg
