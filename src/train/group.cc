#include "train/group.h"

#include "base/log.h"
#include "store/client.h"
#include "store/server.h"
#include "train/store_exchange.h"

namespace talweg {

Status GroupConfig::check(const std::string& file) const {
  TRY(cluster.check().within(fmt::format("{}: cluster", file)));
  if (store.max_bytes > 0 && max_bytes_per_job > store.max_bytes) {
    return error(Code::kInvalid, "{}: max_bytes_per_job: {} bytes for one job, but a shard has only {} for all", file,
                 max_bytes_per_job, store.max_bytes);
  }
  return {};
}

Result<GroupConfig> load_group(const std::string& path, const std::vector<std::string>& settings) {
  ASSIGN(const YAML::Node node, settings_tree<GroupConfig>(path, settings));
  const std::string file = path.empty() ? "talweg group" : path;
  ASSIGN(const GroupConfig config, config_from_yaml<GroupConfig>(node, file));
  TRY(config.check(file));
  return config;
}

GroupNode::GroupNode(Io& io, const GroupConfig& config, std::function<void()> on_ready)
    : io_(io),
      config_(config),
      on_ready_(std::move(on_ready)),
      coordinator_(io, config.layout(), config.cluster, config_to_text(config),
                   [this](Peer, const std::string&) {
                     ++shards_ready_;
                     changed_.notify();
                   }),
      book_(io, config.cluster, [this](uint64_t job) { return drop(job); }) {
  coordinator_.at_end([this](Status verdict) { return say_goodbye(std::move(verdict)); });
}

void GroupNode::end(Status why) {
  if (!gathered_) return coordinator_.fail(std::move(why));
  asked_to_end_ = std::move(why);
  changed_.notify();
}

Task<> GroupNode::run(Status* outcome) {
  *outcome = co_await coordinator_.gather();
  if (!outcome->ok()) co_return;
  gathered_ = true;
  TaskSet tasks(io_);
  tasks.spawn(watch_stalls(io_, "the group's coordinator"));
  *outcome = co_await coordinator_.run(lead(tasks));
  co_await tasks.join();
}

Task<Status> GroupNode::lead(TaskSet& tasks) {
  while (!asked_to_end_ && shards_ready_ < config_.layout().shards) {
    CO_TRY(co_await io_.wait(changed_, Deadline{Time::max(), "the shards to be ready"}));
  }
  if (!asked_to_end_) {
    book_.start(tasks, terms());
    on_ready_();
  }
  while (!asked_to_end_) {
    CO_TRY(co_await io_.wait(changed_, Deadline{Time::max(), "the end of the group"}));
  }
  log_info("the group ends: {}", asked_to_end_->message());
  co_return Status();
}

Task<> GroupNode::say_goodbye(Status verdict) {
  if (verdict.ok() && asked_to_end_) verdict = *asked_to_end_;
  co_await book_.close(std::move(verdict));
}

LeaseTerms GroupNode::terms() const {
  LeaseTerms terms;
  terms.max_bytes_per_job = config_.max_bytes_per_job;
  for (const Peer shard : shard_nodes(config_.layout())) terms.addresses.push_back(coordinator_.address_of(shard));
  terms.settings = config_to_text(config_.store);
  return terms;
}

Task<Status> GroupNode::drop(uint64_t job) {
  StoreJob dropped;
  dropped.id = job;
  StoreClient client(io_, shard_nodes(config_.layout()), dropped, 0, config_.store);
  co_return co_await client.drop_job();
}

namespace {

Task<Status> serve_group(Io& io, const GroupConfig& config, const NodeContext& context) {
  const Layout layout = config.layout();
  if (!layout.contains(io.self()) || layout.role_of(io.self()) != Role::kServer) {
    co_return error(Code::kInvalid, "the group has no server for node {}", io.self());
  }
  Member member(io, config.cluster);
  StoreServer server(io, layout.rank_of(io.self()), layout.shards, context.parts, config.store);
  TaskSet tasks(io);
  member.start(tasks);
  server.start(tasks);
  tasks.spawn(watch_stalls(io, layout.name_of(io.self())));
  Status outcome = co_await member.report("ready");
  outcome = co_await member.leave(std::move(outcome));
  co_await tasks.join();
  co_return outcome;
}

Task<Status> join_and_serve(Io& io, const NodeContext& context) {
  Member joiner(io, context.joining);
  auto welcome = co_await joiner.join(context.identity);
  if (!welcome.ok()) co_return welcome.status();
  auto config = config_from_text<GroupConfig>(welcome->job(), "the group's settings");
  if (!config.ok()) co_return config.status();
  CO_TRY(config->check("the group's settings"));
  co_return co_await serve_group(io, *config, context);
}

Task<Result<JobConfig>> take_lease_for(Io& io, const JobConfig& job, uint64_t nonce) {
  LeaseWish wish;
  wish.name = job.name;
  wish.nodes = 1 + job.distribute.workers;
  wish.max_bytes = job.tables.quota;
  Result<Lease> lease = co_await take_lease(io, wish, nonce, job.cluster.call_timeout);
  if (!lease.ok()) co_return lease.status();
  auto store = config_from_text<StoreConfig>(lease->settings, "the group's store");
  if (!store.ok()) co_return store.status();
  JobConfig leased = job;
  leased.tables.quota = lease->max_bytes;
  leased.store = *store;
  leased.store.pack_keys = job.store.pack_keys;  // how this job's keys travel, which is the clients' choice
  leased.distribute.transport = job.distribute.group.starts_with("shm:") ? Wire::kShm : Wire::kTcp;
  LeaseConfig& given = leased.distribute.lease.emplace();
  given.job = lease->job;
  given.nonce = lease->nonce;
  given.first = lease->first;
  given.lost_after = lease->lost_after;
  given.shards = std::move(lease->addresses);
  co_return leased;
}

}  // namespace

Task<> run_group_member(Io& io, const NodeContext& context, Status* outcome) {
  *outcome = co_await join_and_serve(io, context);
}

Task<> lease_from_group(Io& io, const JobConfig& job, uint64_t nonce, Result<JobConfig>* leased) {
  *leased = co_await take_lease_for(io, job, nonce);
  if (!leased->ok()) *leased = leased->status().within(fmt::format("server group {}", job.distribute.group));
}

}  // namespace talweg
