#include "store/server.h"

#include <fmt/ranges.h>

#include <cstring>

#include "io/services.h"
#include "store/sparse_index.h"
#include "store/store.pb.h"

namespace talweg {
namespace {

// The key list of a worker's training pull, as rows; the push of the same step refers to it.
struct KeyList {
  int64_t step = -1;
  uint64_t hash = 0;
  std::vector<uint32_t> rows;
};

}  // namespace

struct StoreServer::Served {
  Served(std::unique_ptr<Table> made, uint32_t workers)
      : table(std::move(made)),
        combiner(*table, workers),
        lists(workers),
        wait_text(fmt::format("clock of {}", table->spec().label())) {}

  const TableSpec& spec() const { return table->spec(); }
  std::string label() const { return table->spec().label(); }

  std::unique_ptr<Table> table;
  StepCombiner combiner;
  Signal clock_moved;
  std::vector<KeyList> lists;       // by rank
  std::vector<uint32_t> read_rows;  // scratch of pulls that remember nothing
  const std::string wait_text;      // lives as long as any wait that names it
};

StoreServer::StoreServer(Io& io, uint32_t shard, uint32_t shards, uint32_t workers, const OptimizerRegistry& optimizers,
                         StoreConfig config)
    : io_(io), shard_(shard), shards_(shards), workers_(workers), optimizers_(optimizers), config_(config) {
  CHECK(shard < shards && workers >= 1);
  for (const Service service : {services::kCreateTable, services::kPull, services::kPush, services::kExport}) {
    io_.open(service);
  }
}
StoreServer::~StoreServer() = default;

void StoreServer::start(TaskSet& tasks) {
  tasks.spawn(serve(io_, services::kCreateTable, [this](Request request) { return on_create(std::move(request)); }));
  tasks.spawn(serve(io_, services::kPull, [this](Request request) { return on_pull(std::move(request)); }));
  tasks.spawn(serve(io_, services::kPush, [this](Request request) { return on_push(std::move(request)); }));
  tasks.spawn(serve(io_, services::kExport, [this](Request request) { return on_export(std::move(request)); }));
}

size_t StoreServer::bytes() const {
  size_t bytes = 0;
  for (const auto& [id, served] : tables_) bytes += served->table->bytes();
  return bytes;
}

int64_t StoreServer::step(TableId id) const {
  const auto found = tables_.find(id);
  return found == tables_.end() ? -1 : found->second->combiner.clock().step();
}

Result<StoreServer::Served*> StoreServer::find(TableId id) {
  const auto found = tables_.find(id);
  if (found == tables_.end()) return error(Code::kNotFound, "shard {} has no table {}", shard_, id);
  return found->second.get();
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
  ++counters_.refused;
  return reply(io_, request, why, reply_deadline(-1));
}

// --- create

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

Status StoreServer::create(const proto::CreateTableRequest& head) {
  ASSIGN(const TableSpec spec, from_proto(head.spec()));
  if (head.shard() != shard_ || head.shards() != shards_) {
    return error(Code::kInvalid, "{}: this is shard {} of {}, not shard {} of {}", spec.label(), shard_, shards_,
                 head.shard(), head.shards());
  }
  if (const auto found = tables_.find(spec.id); found != tables_.end()) {
    if (found->second->spec() == spec) return {};
    return error(Code::kInvalid, "{} cannot be made: table {} is there already, as {} with other settings",
                 spec.label(), spec.id, found->second->label());
  }
  if (tables_.size() >= limits::kMaxTables) {
    return error(Code::kFull, "{}: a shard holds at most {} tables", spec.label(), limits::kMaxTables);
  }
  ASSIGN(std::unique_ptr<Table> table, Table::make(spec, shard_, shards_, optimizers_));
  tables_.emplace(spec.id, std::make_unique<Served>(std::move(table), workers_));
  return {};
}

// --- pull

Task<> StoreServer::on_pull(Request request) {
  proto::PullRequest head;
  Status outcome = parse_head(request.head, &head, "pull");
  Result<Served*> found = find(head.table());
  if (outcome.ok()) outcome = found.status();
  if (outcome.ok()) outcome = check_pull(**found, head, request.body);
  if (outcome.ok()) outcome = co_await wait_for_clock(**found, head.step());
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome));
    co_return;
  }

  Served& served = **found;
  Buffer copied;
  Result<Bytes> values = Bytes();
  if (served.spec().sparse) {
    values = read_keys(served, head, request.body, copied);
  } else {
    values = read_range(served, head, copied);
  }
  if (!values.ok()) {
    static_cast<void>(co_await refuse(request, values.status()));
    co_return;
  }
  ++counters_.pulls;
  counters_.keys_pulled += values->size() / served.spec().row_bytes();
  proto::PullReply done;
  done.set_step(served.combiner.clock().step());
  static_cast<void>(co_await reply(io_, request, done, *values, reply_deadline(head.step())));
  give_buffer(std::move(copied));
}

Status StoreServer::check_pull(const Served& served, const proto::PullRequest& head, const Buffer& body) const {
  const std::string& label = served.label();
  if (head.step() < 0) return error(Code::kInvalid, "pull of {}: step {} is negative", label, head.step());
  if (head.training() && head.rank() >= workers_) {
    return error(Code::kInvalid, "pull of {}: rank {} of {} workers", label, head.rank(), workers_);
  }
  if (served.spec().sparse) {
    if (body.size() % sizeof(uint64_t) != 0 || head.keys() != body.size() / sizeof(uint64_t)) {
      return error(Code::kInvalid, "pull of {}: {} keys announced, {} bytes came", label, head.keys(), body.size());
    }
    if (head.keys() * served.spec().row_bytes() > limits::kMaxBodyBytes) {
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

Task<Status> StoreServer::wait_for_clock(Served& served, int64_t step) {
  const BspClock& clock = served.combiner.clock();
  if (clock.may_pull(step)) co_return Status();
  if (waiting_pulls_ >= limits::kWaitingPulls) {
    co_return error(Code::kOverloaded, "{} pulls wait at shard {} already", waiting_pulls_, shard_);
  }
  const Time since = io_.now();
  const Deadline deadline = io_.within(config_.clock_timeout, served.wait_text.c_str(), step);
  Status outcome;
  ++waiting_pulls_;
  while (outcome.ok() && !clock.may_pull(step)) outcome = co_await io_.wait(served.clock_moved, deadline);
  --waiting_pulls_;
  counters_.clock_wait += io_.now() - since;
  if (outcome.code() != Code::kDeadline) co_return outcome;
  co_return error(
      Code::kDeadline, "pull of {}, step {}, at shard {}: waited {:.3f} s for the pushes of step {} by workers {}",
      served.label(), step, shard_, to_seconds(io_.now() - since), clock.step(), fmt::join(clock.missing(), ", "));
}

Result<Bytes> StoreServer::read_keys(Served& served, const proto::PullRequest& head, const Buffer& body,
                                     Buffer& values) {
  SparseTable& table = *served.table->sparse();
  const std::span<const uint64_t> keys = ByteCursor(body.bytes()).take<uint64_t>(head.keys());
  counters_.keys_received += keys.size();
  const std::vector<uint32_t>* rows = &served.read_rows;
  if (!head.training()) {
    table.find(keys, served.read_rows);
  } else if (served.combiner.clock().rests_until_push(head.step(), head.rank())) {
    KeyList& list = served.lists[head.rank()];
    list.step = -1;
    if (list.rows.capacity() == 0) list.rows = served.combiner.spare_rows();
    TRY(table.touch(keys, io_.now(), list.rows));
    list.step = head.step();
    list.hash = head.keys_hash();
    rows = &list.rows;
  } else {
    // An old pull that was under way for long: its worker has gone on, and no push will refer to it.
    TRY(table.touch(keys, io_.now(), served.read_rows));
  }
  const size_t bytes = keys.size() * served.spec().row_bytes();
  values = take_buffer(bytes);
  table.gather(*rows, values.bytes().first(bytes));
  return Bytes(values.bytes()).first(bytes);
}

Bytes StoreServer::read_range(Served& served, const proto::PullRequest& head, Buffer& values) {
  const DenseTable& table = *served.table->dense();
  const uint64_t first = table.range().begin;
  const Bytes view = table.view({head.begin() - first, head.end() - first});
  if (head.training() && served.combiner.clock().rests_until_push(head.step(), head.rank())) return view;
  // While this reply is on its way the table may change.
  values = take_buffer(view.size());
  if (!view.empty()) std::memcpy(values.data(), view.data(), view.size());
  return Bytes(values.bytes()).first(view.size());
}

// --- push

Task<> StoreServer::on_push(Request request) {
  const Result<proto::PushReply> outcome = push(request);
  if (!outcome.ok()) {
    static_cast<void>(co_await refuse(request, outcome.status()));
    co_return;
  }
  static_cast<void>(co_await reply(io_, request, *outcome, Bytes(), reply_deadline(-1)));
}

Result<proto::PushReply> StoreServer::push(Request& request) {
  proto::PushRequest head;
  TRY(parse_head(request.head, &head, "push"));
  ASSIGN(Served* const served, find(head.table()));
  const BspClock& clock = served->combiner.clock();
  if (head.rank() >= workers_) {
    return error(Code::kInvalid, "push to {}: rank {} of {} workers", served->label(), head.rank(), workers_);
  }
  if (head.step() < 0) return error(Code::kInvalid, "push to {}: step {} is negative", served->label(), head.step());
  switch (clock.judge(head.step(), head.rank())) {
    case Arrival::kRepeated: ++counters_.pushes_repeated; return proto::PushReply();
    case Arrival::kTooEarly:
      return error(Code::kInvalid,
                   "push to {} by worker {}: step {} is more than {} ahead of the clock, which is at {}",
                   served->label(), head.rank(), head.step(), limits::kStepsAhead, clock.step());
    case Arrival::kWanted: break;
  }

  Contribution contribution;
  contribution.body = std::move(request.body);
  ASSIGN(const bool taken,
         served->spec().sparse ? take_keys(*served, head, contribution) : take_range(*served, head, contribution));
  proto::PushReply reply;
  reply.set_keys_needed(!taken);
  if (!taken) return reply;

  ++counters_.pushes;
  counters_.keys_pushed += served->spec().sparse ? head.keys() : head.end() - head.begin();
  const size_t held_before = served->combiner.held();
  const bool moved = served->combiner.add(head.step(), head.rank(), std::move(contribution));
  if (served->combiner.held() > held_before) ++counters_.pushes_held;
  if (moved) served->clock_moved.notify();
  return reply;
}

Result<bool> StoreServer::take_keys(Served& served, const proto::PushRequest& head, Contribution& contribution) {
  const TableSpec& spec = served.spec();
  ByteCursor cursor(contribution.body.bytes());
  const std::span<const uint64_t> keys = cursor.take<uint64_t>(head.with_keys() ? head.keys() : 0);
  // The first test keeps the product from overflowing.
  if (!cursor.ok() || head.keys() > cursor.left() || head.keys() * spec.row_bytes() != cursor.left()) {
    return error(Code::kInvalid, "push to {} by worker {}: {} bytes came for {} keys{} and rows of {} {} values",
                 served.label(), head.rank(), contribution.body.size(), head.keys(),
                 head.with_keys() ? "" : " (not sent)", spec.width, name_of(spec.type));
  }
  contribution.gradients_at = keys.size_bytes();
  KeyList& list = served.lists[head.rank()];
  const bool listed = !head.with_keys() && head.keys() > 0;
  if (listed && (list.step != head.step() || list.hash != head.keys_hash() || list.rows.size() != head.keys())) {
    return false;
  }
  if (const auto bad = find_non_finite(contribution.gradients(), spec.type)) {
    const size_t row = *bad / spec.width;
    const uint64_t key = listed ? served.table->sparse()->key_of(list.rows[row]).value_or(0) : keys[row];
    return error(Code::kInvalid, "push to {} by worker {} at step {}: the gradient of key {} is not finite",
                 served.label(), head.rank(), head.step(), key);
  }
  if (listed) {
    contribution.rows = std::move(list.rows);
    list.step = -1;
  } else {
    contribution.rows = served.combiner.spare_rows();
    TRY(served.table->sparse()->touch(keys, io_.now(), contribution.rows));
    counters_.keys_received += keys.size();
  }
  return true;
}

Result<bool> StoreServer::take_range(Served& served, const proto::PushRequest& head, Contribution& contribution) const {
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
  if (const auto bad = find_non_finite(contribution.gradients(), served.spec().type)) {
    return error(Code::kInvalid, "push to {} by worker {} at step {}: the gradient of value {} is not finite",
                 served.label(), head.rank(), head.step(), head.begin() + *bad);
  }
  contribution.range = {head.begin() - here.begin, head.end() - here.begin};
  return true;
}

// --- export

Task<> StoreServer::on_export(Request request) {
  proto::ExportRequest head;
  Status outcome = parse_head(request.head, &head, "export");
  Result<Served*> found = find(head.table());
  if (outcome.ok()) outcome = found.status();
  if (outcome.ok()) outcome = co_await wait_for_clock(**found, head.step());
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

}  // namespace talweg
