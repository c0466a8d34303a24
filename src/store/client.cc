#include "store/client.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "codec/key_codec.h"
#include "io/services.h"
#include "store/limits.h"
#include "store/store.pb.h"

namespace talweg {
namespace {

// out[i] = in[places[i]], row by row.
template <class Real>
void gather(const Real* in, std::span<const uint32_t> places, size_t width, Real* out) {
  if (width == 1) {
    for (size_t i = 0; i < places.size(); ++i) out[i] = in[places[i]];
    return;
  }
  for (size_t i = 0; i < places.size(); ++i) std::copy_n(in + places[i] * width, width, out + i * width);
}

// out[places[i]] = in[i], row by row; rows that share a place are summed in their order.
template <class Real>
void scatter(const Real* in, const KeyRoute& route, size_t width, Real* out) {
  const std::span<const uint32_t> places = route.places();
  if (!route.merges()) {
    if (width == 1) {
      for (size_t i = 0; i < places.size(); ++i) out[places[i]] = in[i];
      return;
    }
    for (size_t i = 0; i < places.size(); ++i) std::copy_n(in + i * width, width, out + places[i] * width);
    return;
  }
  std::fill_n(out, route.size() * width, Real(0));
  for (size_t i = 0; i < places.size(); ++i) {
    for (size_t j = 0; j < width; ++j) out[places[i] * width + j] += in[i * width + j];
  }
}

Status check_reply(const TableSpec& spec, size_t expected, size_t came) {
  if (came == expected) return {};
  return error(Code::kCorrupt, "{}: a reply has {} bytes of values, {} were asked for", spec.label(), came, expected);
}

Status keys_asked_twice(const TableSpec& spec, uint32_t shard) {
  return error(Code::kCorrupt, "{}: shard {} asks for keys that it was sent", spec.label(), shard);
}

Pushed joined(std::span<const Pushed> parts) {
  Pushed all;
  for (const Pushed& part : parts) {
    all.step = std::max(all.step, part.step);
    all.late |= part.late;
  }
  return all;
}

}  // namespace

void StoreClient::KnownLists::add(uint64_t hash) {
  if (!hashes_.insert(hash).second) return;
  order_.push_back(hash);
  if (order_.size() <= limits::kKnownLists) return;
  hashes_.erase(order_.front());
  order_.pop_front();
}

void StoreClient::KnownLists::remove(uint64_t hash) {
  if (hashes_.erase(hash) > 0) std::erase(order_, hash);
}

StoreClient::StoreClient(Io& io, std::vector<Peer> shards, StoreJob job, uint32_t rank, StoreConfig config)
    : io_(io), shards_(std::move(shards)), job_(std::move(job)), rank_(rank), config_(config) {
  CHECK(!shards_.empty() && shards_.size() <= limits::kMaxShards);
}

Buffer StoreClient::take_buffer(size_t bytes) {
  if (spare_buffers_.empty()) return Buffer(bytes);
  Buffer buffer = std::move(spare_buffers_.back());
  spare_buffers_.pop_back();
  return buffer.size() >= bytes ? std::move(buffer) : Buffer(bytes);
}

void StoreClient::give_buffer(Buffer buffer) {
  if (spare_buffers_.size() < limits::kSpareBuffers) spare_buffers_.push_back(std::move(buffer));
}

Task<Status> StoreClient::beside(std::vector<Task<Status>> calls) {
  if (calls.size() == 1) co_return co_await std::move(calls[0]);
  co_return co_await all(io_, std::move(calls));
}

template <class Real>
Result<StoreClient::CreatedTable*> StoreClient::find(TableId table, bool sparse) {
  const auto found = tables_.find(table);
  if (found == tables_.end()) return error(Code::kNotFound, "table {} was not created by this client", table);
  const TableSpec& spec = found->second.spec;
  if (spec.type != kValueType<Real>) {
    return error(Code::kInvalid, "{} holds {}, not {}", spec.label(), name_of(spec.type), name_of(kValueType<Real>));
  }
  if (spec.sparse != sparse) {
    return error(Code::kInvalid, "{} is {}: use {}", spec.label(), spec.sparse ? "sparse" : "dense",
                 spec.sparse ? "keys" : "ranges");
  }
  return &found->second;
}

// --- jobs and tables

Task<Status> StoreClient::create(TableSpec spec) {
  CO_TRY(check(spec, shards()));
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(create_at(s, spec));
  CO_TRY(co_await beside(std::move(calls)));
  CreatedTable& table = tables_[spec.id];
  table.spec = spec;
  table.known.assign(shards(), {});
  co_return Status();
}

Task<Status> StoreClient::create_at(uint32_t shard, const TableSpec& spec) {
  proto::CreateTableRequest head;
  *head.mutable_spec() = to_proto(spec);
  head.set_shard(shard);
  head.set_shards(shards());
  head.mutable_job()->set_id(job_.id);
  head.mutable_job()->set_name(job_.name);
  head.mutable_job()->set_workers(job_.workers);
  head.mutable_job()->set_max_bytes(job_.max_bytes);
  const Call request{.to = shards_[shard], .service = services::kCreateTable};
  const Deadline deadline = io_.within(config_.call_timeout, "create table");
  auto answer = co_await call<proto::CreateTableReply>(io_, request, head, deadline);
  co_return answer.status();
}

Task<Status> StoreClient::drop_job() {
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(drop_at(s));
  co_return co_await beside(std::move(calls));
}

Task<Status> StoreClient::drop_at(uint32_t shard) {
  proto::DropJobRequest head;
  head.set_job(job_.id);
  const Call request{.to = shards_[shard], .service = services::kDropJob};
  const Deadline deadline = io_.within(config_.call_timeout, "drop job");
  auto answer = co_await call<proto::DropJobReply>(io_, request, head, deadline);
  co_return answer.status();
}

// --- keys

Bytes StoreClient::wire_keys(const KeyRoute& route, uint32_t shard, std::vector<std::byte>* packed) const {
  if (route.order() != KeyOrder::kSorted) return bytes_of(route.keys(shard));
  packed->resize(packed_bound(route.keys(shard).size()));
  packed->resize(pack_keys(route.keys(shard), *packed));
  return *packed;
}

proto::PullRequest StoreClient::pull_head(const TableSpec& spec, int64_t step, bool training) const {
  proto::PullRequest head;
  head.set_job(job_.id);
  head.set_table(spec.id);
  head.set_step(step);
  head.set_training(training);
  head.set_rank(rank_);
  return head;
}

template <class Real>
Task<Status> StoreClient::pull(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out) {
  return pull_keys(table, step, route, out, true);
}
template <class Real>
Task<Status> StoreClient::read(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out) {
  return pull_keys(table, step, route, out, false);
}

template <class Real>
Task<Status> StoreClient::pull_keys(TableId table, int64_t step, const KeyRoute& route, std::span<Real> out,
                                    bool training) {
  CO_ASSIGN(CreatedTable* const created, find<Real>(table, true));
  const TableSpec& spec = created->spec;
  CHECK(route.shards() == shards());
  CHECK(out.size() == route.given() * spec.width);
  const Time since = io_.now();
  // Each shard's reply lands in its part of the grouped values; where that is the given order, they are `out` itself.
  const bool in_place = route.places().empty();
  const size_t bytes = route.size() * spec.row_bytes();
  Buffer grouped;
  if (!in_place) grouped = take_buffer(bytes);
  const MutableBytes values = in_place ? std::as_writable_bytes(out) : grouped.bytes().first(bytes);

  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const MutableBytes into =
        values.subspan(route.begin(s) * spec.row_bytes(), route.keys(s).size() * spec.row_bytes());
    calls.push_back(pull_keys_at(s, *created, pull_head(spec, step, training), route, into));
  }
  const Status outcome = co_await beside(std::move(calls));
  if (outcome.ok() && !in_place) {
    gather(reinterpret_cast<const Real*>(grouped.data()), route.places(), spec.width, out.data());
  }
  if (!in_place) give_buffer(std::move(grouped));
  ++counters_.pulls;
  counters_.keys_pulled += route.size();
  counters_.pull_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::pull_keys_at(uint32_t shard, CreatedTable& table, proto::PullRequest head,
                                       const KeyRoute& route, MutableBytes into) {
  const uint64_t hash = route.keys_hash(shard);
  head.set_keys(route.keys(shard).size());
  head.set_keys_hash(hash);
  head.set_packed(route.order() == KeyOrder::kSorted);
  head.set_with_keys(!table.known[shard].contains(hash));
  std::vector<std::byte> packed;
  Call request{.to = shards_[shard], .service = services::kPull};
  request.reply_into = into;
  const Deadline deadline = io_.within(config_.call_timeout, "pull", head.step());
  while (true) {
    if (head.with_keys()) request.body[0] = wire_keys(route, shard, &packed);
    counters_.lists_known += head.with_keys() ? 0 : 1;
    counters_.bytes_pulled += request.body[0].size() + into.size();
    auto answer = co_await call<proto::PullReply>(io_, request, head, deadline);
    if (!answer.ok()) co_return answer.status();
    if (!answer->head.keys_needed()) {
      // What an evaluation looks up need not stay known: some of its keys may have no rows.
      if (head.training()) table.known[shard].add(hash);
      co_return check_reply(table.spec, into.size(), answer->body_bytes);
    }
    if (head.with_keys()) co_return keys_asked_twice(table.spec, shard);
    ++counters_.lists_resent;
    table.known[shard].remove(hash);
    head.set_with_keys(true);
  }
}

Task<Status> StoreClient::intent(TableId table, const KeyRoute& route) {
  const auto found = tables_.find(table);
  if (found == tables_.end() || !found->second.spec.sparse) {
    co_return error(Code::kNotFound, "there is no sparse table {} that this client created", table);
  }
  // Where keys get rows by the number of their touches, this would count as one.
  if (!found->second.spec.rows.admits_all()) co_return Status();
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    if (route.keys(s).empty() || found->second.known[s].contains(route.keys_hash(s))) continue;
    proto::PullRequest head = pull_head(found->second.spec, 0, true);
    head.set_intent(true);
    calls.push_back(pull_keys_at(s, found->second, std::move(head), route, MutableBytes()));
  }
  co_return co_await beside(std::move(calls));
}

// --- push

proto::PushRequest StoreClient::push_head(const TableSpec& spec, int64_t step) const {
  proto::PushRequest head;
  head.set_job(job_.id);
  head.set_table(spec.id);
  head.set_step(step);
  head.set_rank(rank_);
  return head;
}

template <class Real>
Task<Result<Pushed>> StoreClient::push(TableId table, int64_t step, const KeyRoute& route,
                                       std::span<const Real> gradients) {
  CO_ASSIGN(CreatedTable* const created, find<Real>(table, true));
  const TableSpec& spec = created->spec;
  CHECK(route.shards() == shards());
  CHECK(gradients.size() == route.given() * spec.width);
  const Time since = io_.now();
  const bool in_place = route.places().empty();
  const size_t bytes = route.size() * spec.row_bytes();
  Buffer grouped;
  if (!in_place) {
    grouped = take_buffer(bytes);
    scatter(gradients.data(), route, spec.width, reinterpret_cast<Real*>(grouped.data()));
  }
  const Bytes values = in_place ? bytes_of(gradients) : Bytes(grouped.bytes()).first(bytes);

  // A shard that none of the keys are on gets a push too: it counts the workers.
  std::vector<Pushed> parts(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Bytes part = values.subspan(route.begin(s) * spec.row_bytes(), route.keys(s).size() * spec.row_bytes());
    calls.push_back(push_keys_at(s, *created, step, route, part, &parts[s]));
  }
  const Status outcome = co_await beside(std::move(calls));
  if (!in_place) give_buffer(std::move(grouped));
  ++counters_.pushes;
  counters_.keys_pushed += route.size();
  counters_.push_wait += io_.now() - since;
  if (!outcome.ok()) co_return outcome;
  co_return joined(parts);
}

Task<Status> StoreClient::push_keys_at(uint32_t shard, CreatedTable& table, int64_t step, const KeyRoute& route,
                                       Bytes gradients, Pushed* pushed) {
  const uint64_t hash = route.keys_hash(shard);
  proto::PushRequest head = push_head(table.spec, step);
  head.set_keys(route.keys(shard).size());
  head.set_keys_hash(hash);
  head.set_with_keys(!table.known[shard].contains(hash));
  std::vector<std::byte> packed;
  Call request{.to = shards_[shard], .service = services::kPush};
  request.body[1] = gradients;
  const Deadline deadline = io_.within(config_.call_timeout, "push", step);
  while (true) {
    if (head.with_keys()) {
      request.body[0] = wire_keys(route, shard, &packed);
      head.set_packed_bytes(packed.size());
      packed.resize(packed.size() + padding_of(packed.size()));
      if (!packed.empty()) request.body[0] = packed;
    }
    counters_.lists_known += head.with_keys() ? 0 : 1;
    counters_.bytes_pushed += request.body[0].size() + gradients.size();
    auto answer = co_await call<proto::PushReply>(io_, request, head, deadline);
    if (!answer.ok()) co_return answer.status();
    if (!answer->head.keys_needed()) {
      if (head.keys() > 0) table.known[shard].add(hash);
      *pushed = {.step = answer->head.step(), .late = answer->head.late()};
      counters_.late += pushed->late ? 1 : 0;
      co_return Status();
    }
    if (head.with_keys()) co_return keys_asked_twice(table.spec, shard);
    ++counters_.lists_resent;
    table.known[shard].remove(hash);
    head.set_with_keys(true);
  }
}

// --- ranges

template <class Real>
Task<Status> StoreClient::pull_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out) {
  return pull_values(table, step, begin, out, true);
}
template <class Real>
Task<Status> StoreClient::read_range(TableId table, int64_t step, uint64_t begin, std::span<Real> out) {
  return pull_values(table, step, begin, out, false);
}

template <class Real>
Task<Status> StoreClient::pull_values(TableId table, int64_t step, uint64_t begin, std::span<Real> out, bool training) {
  CO_ASSIGN(CreatedTable* const created, find<Real>(table, false));
  const TableSpec& spec = created->spec;
  CHECK(begin <= spec.size && out.size() <= spec.size - begin);
  const Time since = io_.now();
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Range here = spec.range_at(s, shards());
    Range part = overlap({begin, begin + out.size()}, here);
    // Who asks for nothing still asks every shard whether the step may begin.
    if (part.size() == 0 && !out.empty()) continue;
    if (part.size() == 0) part = {here.begin, here.begin};
    proto::PullRequest head = pull_head(spec, step, training);
    head.set_begin(part.begin);
    head.set_end(part.end);
    const MutableBytes into =
        out.empty() ? MutableBytes() : std::as_writable_bytes(out.subspan(part.begin - begin, part.size()));
    calls.push_back(pull_range_at(s, spec, std::move(head), into));
  }
  const Status outcome = co_await beside(std::move(calls));
  ++counters_.pulls;
  counters_.keys_pulled += out.size();
  counters_.pull_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::pull_range_at(uint32_t shard, const TableSpec& spec, proto::PullRequest head,
                                        MutableBytes into) {
  Call request{.to = shards_[shard], .service = services::kPull};
  request.reply_into = into;
  counters_.bytes_pulled += into.size();
  const Deadline deadline = io_.within(config_.call_timeout, "pull", head.step());
  auto answer = co_await call<proto::PullReply>(io_, request, head, deadline);
  if (!answer.ok()) co_return answer.status();
  co_return check_reply(spec, into.size(), answer->body_bytes);
}

template <class Real>
Task<Result<Pushed>> StoreClient::push_range(TableId table, int64_t step, uint64_t begin,
                                             std::span<const Real> gradients) {
  CO_ASSIGN(CreatedTable* const created, find<Real>(table, false));
  const TableSpec& spec = created->spec;
  CHECK(begin <= spec.size && gradients.size() <= spec.size - begin);
  const Time since = io_.now();
  std::vector<Pushed> parts(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Range here = spec.range_at(s, shards());
    Range part = overlap({begin, begin + gradients.size()}, here);
    if (part.size() == 0) part = {here.begin, here.begin};
    const Bytes values = part.size() == 0 ? Bytes() : bytes_of(gradients.subspan(part.begin - begin, part.size()));
    calls.push_back(push_range_at(s, spec, step, part, values, &parts[s]));
  }
  const Status outcome = co_await beside(std::move(calls));
  ++counters_.pushes;
  counters_.keys_pushed += gradients.size();
  counters_.push_wait += io_.now() - since;
  if (!outcome.ok()) co_return outcome;
  co_return joined(parts);
}

Task<Status> StoreClient::push_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range,
                                        Bytes gradients, Pushed* pushed) {
  proto::PushRequest head = push_head(spec, step);
  head.set_begin(range.begin);
  head.set_end(range.end);
  Call request{.to = shards_[shard], .service = services::kPush};
  request.body[0] = gradients;
  counters_.bytes_pushed += gradients.size();
  const Deadline deadline = io_.within(config_.call_timeout, "push", step);
  auto answer = co_await call<proto::PushReply>(io_, request, head, deadline);
  if (!answer.ok()) co_return answer.status();
  *pushed = {.step = answer->head.step(), .late = answer->head.late()};
  counters_.late += pushed->late ? 1 : 0;
  co_return Status();
}

// --- functions, statistics

Task<Result<std::vector<std::vector<std::byte>>>> StoreClient::call_function(TableId table, std::string function,
                                                                             Bytes argument) {
  const auto found = tables_.find(table);
  if (found == tables_.end()) co_return error(Code::kNotFound, "table {} was not created by this client", table);
  std::vector<std::vector<std::byte>> results(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    calls.push_back(function_at(s, found->second.spec, function, argument, &results[s]));
  }
  CO_TRY(co_await beside(std::move(calls)));
  co_return results;
}

Task<Status> StoreClient::function_at(uint32_t shard, const TableSpec& spec, const std::string& function,
                                      Bytes argument, std::vector<std::byte>* result) {
  proto::FunctionRequest head;
  head.set_job(job_.id);
  head.set_table(spec.id);
  head.set_function(function);
  Call request{.to = shards_[shard], .service = services::kFunction};
  request.body[0] = argument;
  request.own_reply = true;
  const Deadline deadline = io_.within(config_.call_timeout, "server function");
  // Not repeated: it may have been run.
  Result<Received> answer = co_await call_once(io_, request, serialize(head), deadline);
  if (!answer.ok()) co_return answer.status();
  const Bytes body = answer->body.bytes();
  result->assign(body.begin(), body.end());
  co_return Status();
}

Task<Result<std::vector<proto::StatsReply>>> StoreClient::stats() {
  std::vector<proto::StatsReply> replies(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(stats_at(s, &replies[s]));
  CO_TRY(co_await beside(std::move(calls)));
  co_return replies;
}

Task<Status> StoreClient::stats_at(uint32_t shard, proto::StatsReply* stats) {
  proto::StatsRequest head;
  head.set_job(job_.id);
  const Call request{.to = shards_[shard], .service = services::kStats};
  const Deadline deadline = io_.within(config_.call_timeout, "statistics");
  auto answer = co_await call<proto::StatsReply>(io_, request, head, deadline);
  if (!answer.ok()) co_return answer.status();
  *stats = std::move(answer->head);
  co_return Status();
}

// --- dump

template <class Real>
Task<Status> StoreClient::dump_shard(uint32_t shard, const TableSpec& spec, int64_t step, TableDump<Real>& dump) {
  proto::ExportRequest head;
  head.set_job(job_.id);
  head.set_table(spec.id);
  head.set_step(step);
  Call request{.to = shards_[shard], .service = services::kExport};
  request.own_reply = true;
  while (true) {
    const Deadline deadline = io_.within(config_.call_timeout, "export", step);
    auto answer = co_await call<proto::ExportReply>(io_, request, head, deadline);
    if (!answer.ok()) co_return answer.status();
    ByteCursor cursor(answer->body.bytes());
    const auto keys = cursor.take<uint64_t>(spec.sparse ? answer->head.rows() : 0);
    const auto values = cursor.take<Real>(cursor.left() / sizeof(Real));
    const bool advances = answer->head.done() || answer->head.next() > head.cursor();
    if (!cursor.ok() || cursor.left() != 0 || values.size() != answer->head.rows() * spec.width || !advances) {
      co_return error(Code::kCorrupt, "export of {}: shard {} sent {} bytes as {} rows", spec.label(), shard,
                      answer->body.size(), answer->head.rows());
    }
    dump.keys.insert(dump.keys.end(), keys.begin(), keys.end());
    dump.values.insert(dump.values.end(), values.begin(), values.end());
    if (answer->head.done()) co_return Status();
    head.set_cursor(answer->head.next());
  }
}

namespace {

template <class Real>
TableDump<Real> joined(std::vector<TableDump<Real>> parts, const TableSpec& spec) {
  TableDump<Real> whole;
  for (TableDump<Real>& part : parts) {
    whole.keys.insert(whole.keys.end(), part.keys.begin(), part.keys.end());
    whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
    part = {};
  }
  if (!spec.sparse || parts.size() == 1) return whole;
  std::vector<uint32_t> order(whole.keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return whole.keys[a] < whole.keys[b]; });
  TableDump<Real> sorted;
  sorted.keys.resize(whole.keys.size());
  sorted.values.resize(whole.values.size());
  gather(whole.keys.data(), order, 1, sorted.keys.data());
  gather(whole.values.data(), order, spec.width, sorted.values.data());
  return sorted;
}

}  // namespace

template <class Real>
Task<Result<TableDump<Real>>> StoreClient::dump(TableId table, int64_t step) {
  const auto found = tables_.find(table);
  const bool sparse = found != tables_.end() && found->second.spec.sparse;
  CO_ASSIGN(CreatedTable* const created, find<Real>(table, sparse));
  const TableSpec& spec = created->spec;
  std::vector<TableDump<Real>> parts(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(dump_shard(s, spec, step, parts[s]));
  CO_TRY(co_await beside(std::move(calls)));
  co_return joined(std::move(parts), spec);
}

#define TALWEG_STORE_CLIENT_FOR(Real)                                                                        \
  template Task<Status> StoreClient::pull(TableId, int64_t, const KeyRoute&, std::span<Real>);               \
  template Task<Status> StoreClient::read(TableId, int64_t, const KeyRoute&, std::span<Real>);               \
  template Task<Result<Pushed>> StoreClient::push(TableId, int64_t, const KeyRoute&, std::span<const Real>); \
  template Task<Status> StoreClient::pull_range(TableId, int64_t, uint64_t, std::span<Real>);                \
  template Task<Status> StoreClient::read_range(TableId, int64_t, uint64_t, std::span<Real>);                \
  template Task<Result<Pushed>> StoreClient::push_range(TableId, int64_t, uint64_t, std::span<const Real>);  \
  template Task<Result<TableDump<Real>>> StoreClient::dump(TableId, int64_t);
TALWEG_STORE_CLIENT_FOR(float)
TALWEG_STORE_CLIENT_FOR(double)
#undef TALWEG_STORE_CLIENT_FOR

}  // namespace talweg
