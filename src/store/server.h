// One shard of the parameter store: a node that holds its part of every table, answers pulls when the clock allows and
// combines pushes (store/step_combiner.h).
//
// Promises: a push is acknowledged when it is taken and counts exactly once however often it is repeated; a request
// that is wrong in any way is refused whole, with the table and where possible the key in the error; every wait has a
// deadline and names the workers it waits for. Keys may come in any order; a key that a list holds twice is one row
// whose gradients are summed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/rpc.h"
#include "optim/registry.h"
#include "store/config.h"
#include "store/step_combiner.h"
#include "store/table.h"

namespace talweg::proto {
class CreateTableRequest;
class CreateTableReply;
class ExportRequest;
class PullRequest;
class PushReply;
class PushRequest;
}  // namespace talweg::proto

namespace talweg {

class StoreServer {
 public:
  // Opens the services, so make it before the node can be reached. `optimizers` must outlive it.
  StoreServer(Io& io, uint32_t shard, uint32_t shards, uint32_t workers, const OptimizerRegistry& optimizers,
              StoreConfig config);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Serves until the node stops.
  void start(TaskSet& tasks);

  const StoreServerCounters& counters() const { return counters_; }
  // Of all tables, indexes and scratch.
  size_t bytes() const;
  // The table's clock, or -1 if there is no such table.
  int64_t step(TableId id) const;

 private:
  struct Served;

  Task<> on_create(Request request);
  Task<> on_pull(Request request);
  Task<> on_push(Request request);
  Task<> on_export(Request request);

  Status create(const proto::CreateTableRequest& head);
  Task<Status> wait_for_clock(Served& served, int64_t step);
  Status check_pull(const Served& served, const proto::PullRequest& head, const Buffer& body) const;
  Result<Bytes> read_keys(Served& served, const proto::PullRequest& head, const Buffer& body, Buffer& values);
  Bytes read_range(Served& served, const proto::PullRequest& head, Buffer& values);

  Result<proto::PushReply> push(Request& request);
  // Each checks the push whole before it makes anything of it. False: the key list is not here.
  Result<bool> take_keys(Served& served, const proto::PushRequest& head, Contribution& contribution);
  Result<bool> take_range(Served& served, const proto::PushRequest& head, Contribution& contribution) const;

  Result<Served*> find(TableId id);
  Buffer take_buffer(size_t bytes);
  void give_buffer(Buffer buffer);
  Deadline reply_deadline(int64_t step) const { return io_.within(config_.call_timeout, "store reply", step); }
  SendOp refuse(const Request& request, const Status& why);

  Io& io_;
  const uint32_t shard_, shards_, workers_;
  const OptimizerRegistry& optimizers_;
  const StoreConfig config_;
  std::map<TableId, std::unique_ptr<Served>> tables_;
  size_t waiting_pulls_ = 0;
  std::vector<Buffer> spare_buffers_;
  StoreServerCounters counters_;
};

}  // namespace talweg
