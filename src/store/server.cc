#include "store/server.h"

#include <fmt/ranges.h>

#include <cstring>

#include "codec/key_codec.h"
#include "io/services.h"
#include "store/sparse_index.h"
#include "store/store.pb.h"

namespace talweg {

struct StoreServer::Served {
  Served(std::unique_ptr<Table> made, std::shared_ptr<MemoryBudget> budget, uint32_t workers, uint32_t shards,
         size_t key_cache)
      : workers(workers),
        budget(std::move(budget)),
        table(std::move(made)),
        clock(TableClock::make(*table, workers, shards)),
        lists(key_cache),
        wait_text(fmt::format("clock of {}", table->spec().label())) {}

  const TableSpec& spec() const { return table->spec(); }
  std::string label() const { return table->spec().label(); }
  size_t bytes() const { return table->bytes() + lists.bytes(); }

  const uint32_t workers;
  const std::shared_ptr<MemoryBudget> budget;  // of its job, which a request that still waits may outlive
  const std::unique_ptr<Table> table;
  const std::unique_ptr<TableClock> clock;
  Signal clock_moved;
  bool dropped = false;  // with its job; requests that still wait end
  KeyLists lists;
  const std::string wait_text;  // lives as long as any wait that names it
  StoreServerCounters counters;
};

struct StoreServer::Job {
  std::string name;
  uint32_t workers = 0;
  std::shared_ptr<MemoryBudget> budget;
  std::map<TableId, ServedPtr> tables;
};

StoreServer::StoreServer(Io& io, uint32_t shard, uint32_t shards, const StoreParts& parts, StoreConfig config)
    : io_(io),
      shard_(shard),
      shards_(shards),
      parts_(parts),
      config_(config),
      budget_{.limit = config.max_bytes, .setting = "store.max_bytes"} {
  CHECK(shard < shards);
  for (const Service service : {services::kCreateTable, services::kDropJob, services::kPull, services::kPush,
                                services::kExport, services::kFunction, services::kStats}) {
    io_.open(service);
  }
}
StoreServer::~StoreServer() = default;

void StoreServer::start(TaskSet& tasks) {
  const auto spawn = [&](Service service, Task<> (StoreServer::*handle)(Request)) {
    tasks.spawn(serve(io_, service, [this, handle](Request request) { return (this->*handle)(std::move(request)); }));
  };
  spawn(services::kCreateTable, &StoreServer::on_create);
  spawn(services::kDropJob, &StoreServer::on_drop);
  spawn(services::kPull, &StoreServer::on_pull);
  spawn(services::kPush, &StoreServer::on_push);
  spawn(services::kExport, &StoreServer::on_export);
  spawn(services::kFunction, &StoreServer::on_function);
  spawn(services::kStats, &StoreServer::on_stats);
}

StoreServerCounters StoreServer::counters() const {
  StoreServerCounters sum;
  for (const auto& [id, job] : jobs_) {
    for (const auto& [table, served] : job->tables) sum += served->counters;
  }
  sum.refused += refused_;
  return sum;
}

size_t StoreServer::bytes() const {
  size_t bytes = 0;
  for (const auto& [id, job] : jobs_) {
    for (const auto& [table, served] : job->tables) bytes += served->bytes();
  }
  return bytes;
}

const TableClock* StoreServer::clock(JobId job, TableId table) const {
  const auto found = find(job, table);
  return found.ok() ? (*found)->clock.get() : nullptr;
}

Result<StoreServer::ServedPtr> StoreServer::find(JobId job, TableId table) const {
  const auto owner = jobs_.find(job);
  if (owner == jobs_.end()) return error(Code::kNotFound, "shard {} knows no such job", shard_);
  const auto found = owner->second->tables.find(table);
  if (found == owner->second->tables.end()) {
    return error(Code::kNotFound, "shard {} has no table {} of job '{}'", shard_, table, owner->second->name);
  }
  return found->second;
}

// Fresh memory costs a page fault every 4 KiB, more than filling it does.
Buffer StoreServer::take_buffer(size_t bytes) {
  if (spare_buffers_.empty()) return Buffer(bytes);
  Buffer buffer = std::move(spare_buffers_.back());
  spare_buffers_.pop_back();
  return buffer.size() >= bytes ? std::move(buffer) : Buffer(bytes);
}

void StoreServer::give_buffer(Buffer buffer) {
  if (!buffer.empty() && spare_buffers_.size() < limits::kSpareBuffers) spare_buffers_.push_back(std::move(buffer));
}

SendOp StoreServer::refuse(const Request& request, const Status& why) {
  ++refused_;
  return reply(io_, request, why, reply_deadline(-1));
}

// --- jobs and tables

Task<> StoreServer::on_create(Request request) {
  proto::CreateTableRequest head;
  Status outcome = parse_head(request.head, &head, "create table");
  if (outcome.ok()) outcome = create(head);
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome));
    co_return;
  }
  const proto::CreateTableReply done;
  static_cast<void>(co_await reply(io_, request, done, Bytes(), reply_deadline(-1)));
}

Result<StoreServer::Job*> StoreServer::find_or_make(const proto::StoreJob& wanted) {
  if (const auto found = jobs_.find(wanted.id()); found != jobs_.end()) {
    Job& job = *found->second;
    if (job.workers == wanted.workers() && job.name == wanted.name() && job.budget->limit == wanted.max_bytes()) {
      return &job;
    }
    return error(Code::kInvalid, "job '{}' is there already, as '{}' with {} workers and {} bytes", wanted.name(),
                 job.name, job.workers, job.budget->limit);
  }
  if (wanted.workers() < 1 || wanted.workers() > limits::kMaxWorkers) {
    return error(Code::kInvalid, "job '{}' has {} workers; 1 to {} are allowed", wanted.name(), wanted.workers(),
                 limits::kMaxWorkers);
  }
  if (wanted.name().size() > limits::kMaxNameBytes) {
    return error(Code::kInvalid, "a job's name has at most {} bytes", limits::kMaxNameBytes);
  }
  if (jobs_.size() >= limits::kMaxJobs) {
    return error(Code::kFull, "job '{}': a shard serves at most {} jobs", wanted.name(), limits::kMaxJobs);
  }
  auto job = std::make_unique<Job>();
  job->name = wanted.name();
  job->workers = wanted.workers();
  job->budget = std::make_shared<MemoryBudget>(
      MemoryBudget{.limit = wanted.max_bytes(), .parent = &budget_, .setting = "tables.quota"});
  return (jobs_[wanted.id()] = std::move(job)).get();
}

Status StoreServer::create(const proto::CreateTableRequest& head) {
  ASSIGN(const TableSpec spec, from_proto(head.spec()));
  if (head.shard() != shard_ || head.shards() != shards_) {
    return error(Code::kInvalid, "{}: this is shard {} of {}, not shard {} of {}", spec.label(), shard_, shards_,
                 head.shard(), head.shards());
  }
  ASSIGN(Job* const job, find_or_make(head.job()));
  const Status made = create_in(*job, spec);
  // A job whose first table is refused leaves nothing behind: its settings may be what was wrong.
  if (job->tables.empty()) jobs_.erase(head.job().id());
  return made;
}

Status StoreServer::create_in(Job& job, const TableSpec& spec) {
  if (const auto found = job.tables.find(spec.id); found != job.tables.end()) {
    if (found->second->spec() == spec) return {};
    return error(Code::kInvalid, "{} cannot be made: table {} is there already, as {} with other settings",
                 spec.label(), spec.id, found->second->label());
  }
  if (job.tables.size() >= limits::kMaxTables) {
    return error(Code::kFull, "{}: a job holds at most {} tables", spec.label(), limits::kMaxTables);
  }
  if (spec.sync.kind == Sync::Kind::kBackup && spec.sync.steps >= job.workers) {
    return error(Code::kInvalid, "{}: {} of {} workers cannot be backups: at least one is needed", spec.label(),
                 spec.sync.steps, job.workers);
  }
  // A push that waits for its turn names rows, which must not go meanwhile.
  if (const Duration expiry = spec.rows.expire_after; expiry > Duration(0) && expiry <= 2 * config_.clock_timeout) {
    return error(Code::kInvalid, "{}: rows.expire_after must be more than twice store.clock_timeout, which is {}",
                 spec.label(), format_duration(config_.clock_timeout));
  }
  ASSIGN(std::unique_ptr<Table> table, Table::make(spec, shard_, shards_, parts_.optimizers));
  TRY(table->share(*job.budget));
  job.tables.emplace(spec.id,
                     std::make_shared<Served>(std::move(table), job.budget, job.workers, shards_, config_.key_cache));
  return {};
}

Task<> StoreServer::on_drop(Request request) {
  const Status outcome = drop(request);
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome));
    co_return;
  }
  const proto::DropJobReply done;
  static_cast<void>(co_await reply(io_, request, done, Bytes(), reply_deadline(-1)));
}

Status StoreServer::drop(const Request& request) {
  proto::DropJobRequest head;
  TRY(parse_head(request.head, &head, "drop job"));
  const auto found = jobs_.find(head.job());
  if (found == jobs_.end()) return {};  // it was dropped before, and this is the call repeated
  for (const auto& [id, served] : found->second->tables) {
    served->dropped = true;
    served->clock_moved.notify();
  }
  jobs_.erase(found);
  return {};
}

// --- waiting

Task<Status> StoreServer::wait_for_clock(ServedPtr served, int64_t step, std::optional<uint32_t> rank) {
  const TableClock& clock = *served->clock;
  const auto ready = [&] {
    if (rank) return clock.may_pull(step, *rank);
    return clock.settled() >= step;
  };
  if (ready()) co_return Status();
  if (waiting_pulls_ >= limits::kWaitingPulls) {
    co_return error(Code::kOverloaded, "{} pulls wait at shard {} already", waiting_pulls_, shard_);
  }
  const Time since = io_.now();
  const Deadline deadline = io_.within(config_.clock_timeout, served->wait_text.c_str(), step);
  Status outcome;
  ++waiting_pulls_;
  while (outcome.ok() && !ready() && !served->dropped) outcome = co_await io_.wait(served->clock_moved, deadline);
  --waiting_pulls_;
  served->counters.clock_wait += io_.now() - since;
  if (served->dropped) co_return error(Code::kNotFound, "{} is gone with its job", served->label());
  if (outcome.code() != Code::kDeadline) co_return outcome;
  co_return error(Code::kDeadline,
                  "pull of {}, step {}, at shard {}: waited {:.3f} s for the pushes of step {} by workers {}",
                  served->label(), step, shard_, to_seconds(io_.now() - since), clock.settled(),
                  fmt::join(clock.missing(step), ", "));
}

// --- pull

Task<> StoreServer::on_pull(Request request) {
  proto::PullRequest head;
  Status outcome = parse_head(request.head, &head, "pull");
  Result<ServedPtr> found = find(head.job(), head.table());
  if (outcome.ok()) outcome = found.status();
  if (outcome.ok()) outcome = check_pull(**found, head, request.body);
  std::shared_ptr<const KeyList> list;
  if (outcome.ok()) outcome = co_await look_up_and_wait(*found, head, request.body, &list);
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome));
    co_return;
  }

  Served& served = **found;
  Buffer copied;
  Bytes values;
  proto::PullReply done;
  done.set_keys_needed(served.spec().sparse && list == nullptr);
  if (list != nullptr && !head.intent()) values = gathered(served, *list, copied);
  if (!served.spec().sparse && !head.intent()) values = read_range(served, head, copied);
  done.set_step(served.clock->settled());
  if (!done.keys_needed() && !head.intent()) {
    if (head.training()) served.clock->pulled(head.step(), head.rank());
    ++served.counters.pulls;
    served.counters.keys_pulled += values.size() / served.spec().row_bytes();
  }
  static_cast<void>(co_await reply(io_, request, done, values, reply_deadline(head.step())));
  give_buffer(std::move(copied));
}

// A worker that is early has its rows looked up while it waits: that is no part of the step's critical path then.
Task<Status> StoreServer::look_up_and_wait(ServedPtr served, const proto::PullRequest& head, const Buffer& body,
                                           std::shared_ptr<const KeyList>* list) {
  const bool sparse = served->spec().sparse;
  if (sparse && head.training()) {
    CO_ASSIGN(*list, rows_of(*served, head, body));
    if (*list == nullptr) co_return Status();  // the keys are asked for, and the pull comes again
  }
  if (head.intent()) co_return Status();
  const std::optional<uint32_t> rank = head.training() ? std::optional(head.rank()) : std::nullopt;
  CO_TRY(co_await wait_for_clock(served, head.step(), rank));
  // Evaluation makes no rows, and must find those that the steps before have made; and rows may go in the meantime.
  const bool gone = *list != nullptr && (*list)->made <= served->table->sparse()->freed_up_to();
  if (sparse && (*list == nullptr || gone)) {
    CO_ASSIGN(*list, rows_of(*served, head, body));
  }
  co_return Status();
}

Status StoreServer::check_pull(const Served& served, const proto::PullRequest& head, const Buffer& body) const {
  const std::string& label = served.label();
  if (head.step() < 0) return error(Code::kInvalid, "pull of {}: step {} is negative", label, head.step());
  if (head.training() && head.rank() >= served.workers) {
    return error(Code::kInvalid, "pull of {}: rank {} of {} workers", label, head.rank(), served.workers);
  }
  if (served.spec().sparse) {
    const bool plain = head.with_keys() && !head.packed();
    if ((plain && (body.size() % sizeof(uint64_t) != 0 || head.keys() != body.size() / sizeof(uint64_t))) ||
        (!head.with_keys() && !body.empty())) {
      return error(Code::kInvalid, "pull of {}: {} keys announced, {} bytes came", label, head.keys(), body.size());
    }
    if (head.keys() > limits::kMaxBodyBytes / served.spec().row_bytes()) {
      return error(Code::kInvalid, "pull of {}: the values of {} keys do not fit one message of {} bytes", label,
                   head.keys(), limits::kMaxBodyBytes);
    }
    return {};
  }
  const Range here = served.table->dense()->range();
  if (head.begin() > head.end() || head.begin() < here.begin || head.end() > here.end || !body.empty()) {
    return error(Code::kInvalid, "pull of {}: [{}, {}) is not in [{}, {}), which shard {} holds", label, head.begin(),
                 head.end(), here.begin, here.end, shard_);
  }
  return {};
}

Result<std::shared_ptr<const KeyList>> StoreServer::rows_of(Served& served, const proto::PullRequest& head,
                                                            const Buffer& body) {
  SparseTable& table = *served.table->sparse();
  if (!head.with_keys()) {
    auto list = served.lists.find(head.keys_hash(), head.keys(), table.freed_up_to());
    if (list != nullptr && !may_pull_by(served, *list)) list = nullptr;
    ++(list != nullptr ? served.counters.lists_known : served.counters.lists_needed);
    return list;
  }
  std::span<const uint64_t> keys = ByteCursor(body.bytes()).take<uint64_t>(head.packed() ? 0 : head.keys());
  if (head.packed()) {
    ASSIGN(keys, unpacked(served, body.bytes(), head.keys()));
  }
  served.counters.keys_received += keys.size();
  return head.training() ? touch(served, keys, head.keys_hash()) : look_up(served, keys, head.keys_hash());
}

// Only keys touch rows. Where untouched rows go, a list answers for a part of their time, and then the keys must come.
bool StoreServer::may_pull_by(const Served& served, const KeyList& list) const {
  const Duration expiry = served.spec().rows.expire_after;
  return list.complete && (expiry == Duration(0) || io_.now() - list.made < expiry / 4);
}

// The rows must also outlast the time that a push waits for its turn, which is less than the other half.
bool StoreServer::may_push_by(const Served& served, const KeyList& list) const {
  const Duration expiry = served.spec().rows.expire_after;
  return expiry == Duration(0) || io_.now() - list.made < expiry / 2;
}

Result<std::span<const uint64_t>> StoreServer::unpacked(const Served& served, Bytes packed, uint64_t count) {
  // So that a false count cannot make us take memory that no message could have filled.
  if (count > unpacked_bound(packed.size())) {
    return error(Code::kInvalid, "{}: {} packed keys announced, {} bytes came", served.label(), count, packed.size());
  }
  unpacked_.resize(count);
  TRY(unpack_keys(packed, unpacked_).within(served.label()));
  return std::span<const uint64_t>(unpacked_);
}

Result<std::shared_ptr<const KeyList>> StoreServer::touch(Served& served, std::span<const uint64_t> keys,
                                                          uint64_t hash) {
  SparseTable& table = *served.table->sparse();
  std::shared_ptr<KeyList> list = served.lists.make();
  TRY(table.touch(keys, io_.now(), list->rows));
  list->hash = hash;
  list->made = io_.now();
  list->complete = served.spec().rows.admits_all() ||
                   std::find(list->rows.begin(), list->rows.end(), SparseIndex::kNoRow) == list->rows.end();
  served.lists.keep(list);
  return std::shared_ptr<const KeyList>(std::move(list));
}

// Evaluation makes no rows, so a list that lacks some must be looked at again when it comes again; and it touches none,
// so where untouched rows go its list says nothing of how long they stay.
Result<std::shared_ptr<const KeyList>> StoreServer::look_up(Served& served, std::span<const uint64_t> keys,
                                                            uint64_t hash) {
  const SparseTable& table = *served.table->sparse();
  std::shared_ptr<KeyList> list = served.lists.make();
  table.find(keys, list->rows);
  list->hash = hash;
  list->made = io_.now();
  list->complete = std::find(list->rows.begin(), list->rows.end(), SparseIndex::kNoRow) == list->rows.end();
  if (list->complete && served.spec().rows.expire_after == Duration(0)) served.lists.keep(list);
  return std::shared_ptr<const KeyList>(std::move(list));
}

Bytes StoreServer::gathered(Served& served, const KeyList& list, Buffer& values) {
  const size_t bytes = list.rows.size() * served.spec().row_bytes();
  values = take_buffer(bytes);
  served.table->sparse()->gather(list.rows, values.bytes().first(bytes));
  return Bytes(values.bytes()).first(bytes);
}

Bytes StoreServer::read_range(Served& served, const proto::PullRequest& head, Buffer& values) {
  const DenseTable& table = *served.table->dense();
  const uint64_t first = table.range().begin;
  const Bytes view = table.view({head.begin() - first, head.end() - first});
  if (head.training() && served.clock->rests_until_push(head.step(), head.rank())) return view;
  // While this reply is on its way the table may change.
  values = take_buffer(view.size());
  if (!view.empty()) std::memcpy(values.data(), view.data(), view.size());
  return Bytes(values.bytes()).first(view.size());
}

// --- push

Task<> StoreServer::on_push(Request request) {
  proto::PushRequest head;
  proto::PushReply answer;
  Result<Judged> judged = judge(request, &head, &answer);
  if (!judged.ok()) {
    static_cast<void>(co_await refuse(request, judged.status()));
    co_return;
  }
  // The answer goes first: the worker goes on while the update is made. But the update does not wait until the answer
  // is out: what was judged may not hold any more then, and the worker has been told.
  SendOp answering = reply(io_, request, answer, Bytes(), reply_deadline(-1));
  answering.start();
  if (judged->wanted) take(*judged->served, head, std::move(judged->contribution));
  static_cast<void>(co_await answering);
}

void StoreServer::take(Served& served, const proto::PushRequest& head, Contribution contribution) {
  ++served.counters.pushes;
  served.counters.keys_pushed += served.spec().sparse ? head.keys() : head.end() - head.begin();
  const size_t held_before = served.clock->held();
  const bool moved = served.clock->add(head.step(), head.rank(), std::move(contribution));
  if (served.clock->held() > held_before) ++served.counters.pushes_held;
  if (moved) served.clock_moved.notify();
}

Result<StoreServer::Judged> StoreServer::judge(Request& request, proto::PushRequest* head, proto::PushReply* answer) {
  TRY(parse_head(request.head, head, "push"));
  Judged judged;
  ASSIGN(judged.served, find(head->job(), head->table()));
  Served& served = *judged.served;
  if (head->rank() >= served.workers) {
    return error(Code::kInvalid, "push to {}: rank {} of {} workers", served.label(), head->rank(), served.workers);
  }
  if (head->step() < 0) return error(Code::kInvalid, "push to {}: step {} is negative", served.label(), head->step());
  answer->set_step(served.clock->settled());
  switch (served.clock->judge(head->step(), head->rank())) {
    case Arrival::kRepeated: ++served.counters.pushes_repeated; return judged;
    case Arrival::kLate:
      served.clock->drop();
      answer->set_late(true);
      return judged;
    case Arrival::kTooEarly:
      return error(Code::kInvalid, "push to {} by worker {}: step {} is more than {} ahead of what it has pushed",
                   served.label(), head->rank(), head->step(), limits::kStepsAhead);
    case Arrival::kWanted: break;
  }
  judged.contribution.body = std::move(request.body);
  ASSIGN(judged.wanted, served.spec().sparse ? take_keys(served, *head, judged.contribution)
                                             : take_range(served, *head, judged.contribution));
  answer->set_keys_needed(!judged.wanted);
  return judged;
}

// Refuses gradients that are not finite, or makes them zero, as the table says. `name` gives the key of a value.
template <class Name>
Status StoreServer::check_finite(Served& served, const proto::PushRequest& head, Contribution& contribution,
                                 Name name) {
  const auto bad = find_non_finite(contribution.gradients(), served.spec().type);
  if (!bad) return {};
  if (served.spec().non_finite == NonFinite::kZero) {
    served.counters.zeroed += zero_non_finite(contribution.mutable_gradients(), served.spec().type);
    return {};
  }
  return error(Code::kInvalid, "push to {} by worker {} at step {}: the gradient of {} is not finite", served.label(),
               head.rank(), head.step(), name(*bad));
}

Result<bool> StoreServer::take_keys(Served& served, const proto::PushRequest& head, Contribution& contribution) {
  const TableSpec& spec = served.spec();
  SparseTable& table = *served.table->sparse();
  const bool packed = head.packed_bytes() > 0;
  ByteCursor cursor(contribution.body.bytes());
  std::span<const uint64_t> keys = cursor.take<uint64_t>(head.with_keys() && !packed ? head.keys() : 0);
  const uint64_t packed_bytes = head.with_keys() ? head.packed_bytes() : 0;
  const Bytes packed_keys = cursor.take<std::byte>(packed_bytes);
  static_cast<void>(cursor.take<std::byte>(padding_of(packed_bytes)));
  // The first test keeps the product from overflowing.
  if (!cursor.ok() || head.keys() > cursor.left() || head.keys() * spec.row_bytes() != cursor.left()) {
    return error(Code::kInvalid, "push to {} by worker {}: {} bytes came for {} keys{} and rows of {} {} values",
                 served.label(), head.rank(), contribution.body.size(), head.keys(),
                 head.with_keys() ? "" : " (not sent)", spec.width, name_of(spec.type));
  }
  contribution.gradients_at = contribution.body.size() - cursor.left();
  std::shared_ptr<const KeyList> list;
  if (!head.with_keys()) {
    list = served.lists.find(head.keys_hash(), head.keys(), table.freed_up_to());
    if (list != nullptr && !may_push_by(served, *list)) list = nullptr;
    if (list == nullptr && head.keys() > 0) {
      ++served.counters.lists_needed;
      return false;
    }
    ++served.counters.lists_known;
  } else if (packed) {
    ASSIGN(keys, unpacked(served, packed_keys, head.keys()));
  }
  TRY(check_finite(served, head, contribution, [&](size_t value) {
    const size_t row = value / spec.width;
    if (head.with_keys()) return fmt::format("key {}", keys[row]);
    const auto key = table.key_of(list->rows[row]);
    return key ? fmt::format("key {}", *key) : fmt::format("the key at place {}", row);
  }));
  if (head.with_keys()) {
    served.counters.keys_received += keys.size();
    ASSIGN(list, touch(served, keys, head.keys_hash()));
  }
  if (list != nullptr) contribution.rows = list->rows;
  contribution.rows_own = std::move(list);
  return true;
}

Result<bool> StoreServer::take_range(Served& served, const proto::PushRequest& head, Contribution& contribution) {
  const Range here = served.table->dense()->range();
  if (head.begin() > head.end() || head.begin() < here.begin || head.end() > here.end) {
    return error(Code::kInvalid, "push to {} by worker {}: [{}, {}) is not in [{}, {}), which shard {} holds",
                 served.label(), head.rank(), head.begin(), head.end(), here.begin, here.end, shard_);
  }
  if ((head.end() - head.begin()) * size_of(served.spec().type) != contribution.body.size()) {
    return error(Code::kInvalid, "push to {} by worker {}: {} bytes came for the {} {} values of [{}, {})",
                 served.label(), head.rank(), contribution.body.size(), head.end() - head.begin(),
                 name_of(served.spec().type), head.begin(), head.end());
  }
  TRY(check_finite(served, head, contribution,
                   [&](size_t value) { return fmt::format("value {}", head.begin() + value); }));
  contribution.range = {head.begin() - here.begin, head.end() - here.begin};
  return true;
}

// --- export, functions, statistics

Task<> StoreServer::on_export(Request request) {
  proto::ExportRequest head;
  Status outcome = parse_head(request.head, &head, "export");
  Result<ServedPtr> found = find(head.job(), head.table());
  if (outcome.ok()) outcome = found.status();
  if (outcome.ok()) outcome = co_await wait_for_clock(*found, head.step(), std::nullopt);
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome));
    co_return;
  }
  const ExportPiece piece = (*found)->table->export_from(head.cursor(), limits::kExportPieceBytes);
  proto::ExportReply done;
  done.set_rows(piece.rows);
  done.set_next(piece.next);
  done.set_done(piece.done);
  SendOp::Message message{.to = request.from, .tag = kReplyBit | request.id, .head = serialize(done)};
  message.body = {bytes_of(std::span<const uint64_t>(piece.keys)), piece.values.bytes()};
  static_cast<void>(co_await SendOp(io_, std::move(message), reply_deadline(head.step())));
}

Task<> StoreServer::on_function(Request request) {
  const auto result = call_function(request);
  if (!result.ok()) {
    static_cast<void>(co_await refuse(request, result.status()));
    co_return;
  }
  const proto::FunctionReply done;
  static_cast<void>(co_await reply(io_, request, done, *result, reply_deadline(-1)));
}

Result<std::vector<std::byte>> StoreServer::call_function(const Request& request) {
  proto::FunctionRequest head;
  TRY(parse_head(request.head, &head, "server function"));
  ASSIGN(const ServedPtr served, find(head.job(), head.table()));
  ASSIGN(const ServerFunction* const function, parts_.functions.find(head.function()));
  auto result = (*function)(*served->table, request.body.bytes());
  if (!result.ok()) {
    return result.status().within(fmt::format("function '{}' on {}", head.function(), served->label()));
  }
  return result;
}

Task<> StoreServer::on_stats(Request request) {
  const auto result = stats(request);
  if (!result.ok()) {
    static_cast<void>(co_await refuse(request, result.status()));
    co_return;
  }
  static_cast<void>(co_await reply(io_, request, *result, Bytes(), reply_deadline(-1)));
}

Result<proto::StatsReply> StoreServer::stats(const Request& request) const {
  proto::StatsRequest head;
  TRY(parse_head(request.head, &head, "statistics"));
  const auto job = jobs_.find(head.job());
  if (job == jobs_.end()) return error(Code::kNotFound, "shard {} knows no such job", shard_);
  proto::StatsReply reply;
  for (const auto& [id, served] : job->second->tables) {
    proto::TableStats& out = *reply.add_tables();
    const StoreServerCounters& counters = served->counters;
    out.set_name(served->spec().name);
    out.set_bytes(served->bytes());
    out.set_pulls(counters.pulls);
    out.set_pushes(counters.pushes);
    out.set_keys_pulled(counters.keys_pulled);
    out.set_keys_pushed(counters.keys_pushed);
    out.set_keys_received(counters.keys_received);
    out.set_lists_known(counters.lists_known);
    out.set_lists_needed(counters.lists_needed);
    out.set_pushes_repeated(counters.pushes_repeated);
    out.set_pushes_held(counters.pushes_held);
    out.set_zeroed(counters.zeroed);
    out.set_clock_wait_ns(static_cast<uint64_t>(counters.clock_wait.count()));
    const SyncMeter& meter = served->clock->meter();
    out.set_updates(meter.updates);
    out.set_late(meter.late);
    out.set_widest_gap(meter.widest_gap);
    out.set_farthest(meter.farthest);
    size_t buckets = meter.staleness.size();
    while (buckets > 0 && meter.staleness[buckets - 1] == 0) --buckets;
    for (size_t i = 0; i < buckets; ++i) out.add_staleness(meter.staleness[i]);
    if (SparseTable* const sparse = served->table->sparse()) {
      out.set_rows(sparse->rows());
      out.set_not_admitted(sparse->row_counters().not_admitted);
      out.set_expired(sparse->row_counters().expired);
      for (const auto& [key, count] : sparse->hottest(limits::kHotKeys)) {
        out.add_hot_keys(key);
        out.add_hot_counts(count);
      }
    } else {
      out.set_rows(served->table->dense()->range().size());
    }
  }
  return reply;
}

}  // namespace talweg
