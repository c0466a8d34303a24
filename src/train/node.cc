#include "train/node.h"

#include <cmath>

#include "base/log.h"
#include "store/client.h"
#include "store/server.h"
#include "store/store.pb.h"
#include "train/plan.h"
#include "train/store_exchange.h"
#include "train/worker.h"

namespace talweg {
namespace {

// Reading a large file for the first time takes its time; a node that died meanwhile is found by its silence.
constexpr Duration kReadyTimeout = std::chrono::minutes(30);

int64_t steps_of(const JobConfig& job, const TrainingData& data) {
  return job.data.streams() ? 0 : Plan(job.train, job.distribute.workers, data.train).steps();
}

bool reaches(const EpochResult& result, const TargetConfig& target) {
  const auto at_most = [&](const char* name, const std::optional<double>& bound) {
    return !bound || result.measure(name).value_or(INFINITY) <= *bound;
  };
  const auto at_least = [&](const char* name, const std::optional<double>& bound) {
    return !bound || result.measure(name).value_or(-INFINITY) >= *bound;
  };
  return at_most("loss", target.loss) && at_most("rmse", target.rmse) && at_least("auc", target.auc) &&
         at_least("accuracy", target.accuracy);
}

// The log says who waits for whom, for what and how long, while there is still time to look.
constexpr Duration kStall = seconds(5);

Task<> watch_stalls(Io& io, std::string who) {
  // Not by the sleep's outcome: one that is cut short by a job that missed a deadline looks like one that is over.
  while (io.stopped().ok()) {
    static_cast<void>(co_await io.sleep(kStall, "the next look for stalls"));
    for (const std::string& stall : io.stalls(kStall)) log_warning("{} is stalled: {}", who, stall);
  }
}

template <class Real>
Task<Status> fetch_tables(StoreClient& client, const JobConfig& job, const JobParts& parts, int64_t rounds,
                          TrainedModel* model) {
  CO_ASSIGN(const auto shape, parts.models.make<Real>(job.model));
  for (const TableSpec& spec : tables_of(*shape, job)) {
    CO_TRY(co_await client.create(spec));
    auto dump = co_await client.dump<Real>(spec.id, rounds);
    if (!dump.ok()) co_return dump.status();
    const Bytes values = bytes_of(std::span<const Real>(dump->values));
    TrainedTable table;
    table.name = spec.name;
    table.sparse = spec.sparse;
    table.width = spec.width;
    table.type = spec.type;
    table.keys = std::move(dump->keys);
    table.values.assign(values.begin(), values.end());
    model->tables.push_back(std::move(table));
  }
  co_return Status();
}

Task<Status> serve_shard(Io& io, Member& member, const JobConfig& job, uint32_t rank, const JobParts& parts,
                         TaskSet& tasks) {
  const Layout layout = job.distribute.layout();
  StoreServer server(io, rank, layout.shards, parts, job.store);
  TaskSet serving(io);
  server.start(serving);
  Status outcome = co_await member.barrier("ready", layout.shards + layout.workers, kReadyTimeout);
  outcome = co_await member.leave(std::move(outcome));
  co_await serving.join();
  co_await tasks.join();
  co_return outcome;
}

Task<Status> work(Io& io, Member& member, const JobConfig& job, uint32_t rank, const NodeContext& context) {
  Result<TrainingData> data = Status(Code::kNotFound, "no data");
  // Long enough to be given to another thread: the node must go on beating.
  const Cost long_work{.flops = 0, .bytes = 1e8};
  co_await io.compute(long_work, [&] { data = context.open_data(job); });
  if (!data.ok()) co_return data.status();
  const Layout layout = job.distribute.layout();
  CO_TRY(co_await member.barrier("ready", layout.shards + layout.workers, kReadyTimeout));
  co_return co_await run_worker(io, member, job, rank, std::move(*data), context.parts);
}

Task<Status> take_part(Io& io, const JobConfig& job, const NodeContext& context) {
  const Layout layout = job.distribute.layout();
  const uint32_t rank = layout.rank_of(io.self());
  Member member(io, job.cluster);
  TaskSet tasks(io);
  member.start(tasks);
  tasks.spawn(watch_stalls(io, layout.name_of(io.self())));
  if (layout.role_of(io.self()) == Role::kServer) {
    co_return co_await serve_shard(io, member, job, rank, context.parts, tasks);
  }
  Status outcome = co_await work(io, member, job, rank, context);
  // Only for the log: the coordinator tells the first failure, and not each of its echoes.
  if (!outcome.ok() && io.stopped().ok()) log_info("{}: {}", layout.name_of(io.self()), outcome.text());
  outcome = co_await member.leave(std::move(outcome));
  co_await tasks.join();
  co_return outcome;
}

Task<Status> join_and_take_part(Io& io, const NodeContext& context) {
  Member joiner(io, context.joining);
  auto welcome = co_await joiner.join(context.identity);
  if (!welcome.ok()) co_return welcome.status();
  auto job = job_from_text(welcome->job(), "the coordinator's job");
  if (!job.ok()) co_return job.status();
  co_return co_await take_part(io, *job, context);
}

}  // namespace

CoordinatorNode::CoordinatorNode(Io& io, const JobConfig& job, const JobParts& parts, const TrainingData& data,
                                 JobEvents events)
    : io_(io),
      job_(job),
      parts_(parts),
      events_(std::move(events)),
      board_(job.data.streams() ? 0 : static_cast<uint64_t>(job.train.epochs),
             static_cast<uint64_t>(steps_of(job, data)), job.distribute.workers),
      coordinator_(io, job.distribute.layout(), job.cluster, config_to_text(job),
                   [this](Peer from, const std::string& payload) { on_report(from, payload); }) {
  if (job.data.streams() && !job.data.generated) feed_.emplace(io, job);
}

Task<> CoordinatorNode::run(JobResult* result) {
  result->status = co_await coordinator_.gather();
  if (result->status.ok()) {
    board_.start(io_.now());
    TaskSet tasks(io_);
    if (feed_) {
      feed_->start(tasks);
      tasks.spawn(feed_workers());
    }
    result->status = co_await coordinator_.run(job_part(result));
    co_await tasks.join();
  }
  result->epochs = board_.epochs();
  result->progress = board_.progress();
  result->workers = board_.workers();
  result->reached_target = reached_target_;
}

Task<> CoordinatorNode::feed_workers() {
  const Status outcome = co_await feed_->run();
  if (!outcome.ok()) coordinator_.fail(outcome);
}

void CoordinatorNode::interrupt(Status why) {
  if (feed_ && !std::exchange(interrupted_, true)) return feed_->end_here();
  coordinator_.fail(std::move(why));
}

Task<Status> CoordinatorNode::job_part(JobResult* result) {
  CO_TRY(co_await coordinator_.finished(Role::kWorker));
  StoreClient client(io_, shard_nodes(job_.distribute.layout()), store_job(job_), 0, job_.store);
  const int64_t rounds = board_.rounds();
  if (job_.train.precision == ValueType::kFloat64) {
    CO_TRY(co_await fetch_tables<double>(client, job_, parts_, rounds, &result->model));
  } else {
    CO_TRY(co_await fetch_tables<float>(client, job_, parts_, rounds, &result->model));
  }
  auto stats = co_await client.stats();
  if (!stats.ok()) co_return stats.status();
  result->shards = std::move(*stats);
  co_return Status();
}

void CoordinatorNode::on_report(Peer from, const std::string& payload) {
  const auto evaluated = board_.add(from, payload, io_.now());
  if (!evaluated.ok()) return coordinator_.fail(evaluated.status());
  if (*evaluated && job_.train.target && reaches(board_.epochs().back(), *job_.train.target)) {
    reached_target_ = true;
    coordinator_.decide(std::string(kEnough));
  }
  events_.on_progress(board_.progress());
  if (*evaluated) events_.on_epoch(board_.progress());
}

Task<> run_member(Io& io, const NodeContext& context, Status* outcome) {
  *outcome = co_await join_and_take_part(io, context);
}

}  // namespace talweg
