#include "store/client.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "io/services.h"
#include "store/limits.h"
#include "store/store.pb.h"

namespace talweg {
namespace {

// out[order[i]] = in[i], row by row.
template <class Real>
void scatter(const Real* in, std::span<const uint32_t> order, size_t width, Real* out) {
  if (width == 1) {
    for (size_t i = 0; i < order.size(); ++i) out[order[i]] = in[i];
    return;
  }
  for (size_t i = 0; i < order.size(); ++i) std::copy_n(in + i * width, width, out + order[i] * width);
}

// out[i] = in[order[i]], row by row.
template <class Real>
void gather(const Real* in, std::span<const uint32_t> order, size_t width, Real* out) {
  if (width == 1) {
    for (size_t i = 0; i < order.size(); ++i) out[i] = in[order[i]];
    return;
  }
  for (size_t i = 0; i < order.size(); ++i) std::copy_n(in + order[i] * width, width, out + i * width);
}

Status check_reply(const TableSpec& spec, size_t expected, size_t came) {
  if (came == expected) return {};
  return error(Code::kCorrupt, "{}: a reply has {} bytes of values, {} were asked for", spec.label(), came, expected);
}

}  // namespace

StoreClient::StoreClient(Io& io, std::vector<Peer> shards, uint32_t rank, StoreConfig config)
    : io_(io), shards_(std::move(shards)), rank_(rank), config_(config) {
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
Result<const TableSpec*> StoreClient::find(TableId table, bool sparse) const {
  const auto found = specs_.find(table);
  if (found == specs_.end()) return error(Code::kNotFound, "table {} was not created by this client", table);
  const TableSpec& spec = found->second;
  if (spec.type != kValueType<Real>) {
    return error(Code::kInvalid, "{} holds {}, not {}", spec.label(), name_of(spec.type), name_of(kValueType<Real>));
  }
  if (spec.sparse != sparse) {
    return error(Code::kInvalid, "{} is {}: use {}", spec.label(), spec.sparse ? "sparse" : "dense",
                 spec.sparse ? "keys" : "ranges");
  }
  return &spec;
}

// --- create

Task<Status> StoreClient::create(TableSpec spec) {
  CO_TRY(check(spec, shards()));
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(create_at(s, spec));
  CO_TRY(co_await beside(std::move(calls)));
  specs_.insert_or_assign(spec.id, spec);
  co_return Status();
}

Task<Status> StoreClient::create_at(uint32_t shard, const TableSpec& spec) {
  proto::CreateTableRequest head;
  *head.mutable_spec() = to_proto(spec);
  head.set_shard(shard);
  head.set_shards(shards());
  const Call request{.to = shards_[shard], .service = services::kCreateTable};
  const Deadline deadline = io_.within(config_.call_timeout, "create table");
  auto answer = co_await call<proto::CreateTableReply>(io_, request, head, deadline);
  co_return answer.status();
}

// --- pull

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
  CO_ASSIGN(const TableSpec* const spec, find<Real>(table, true));
  CHECK(route.shards() == shards());
  CHECK(out.size() == route.size() * spec->width);
  const Time since = io_.now();
  // Each shard's reply lands in its part of the grouped values; where that is the given order, they are `out` itself.
  const bool in_place = route.order().empty();
  Buffer grouped;
  if (!in_place) grouped = take_buffer(out.size_bytes());
  const MutableBytes values = in_place ? std::as_writable_bytes(out) : grouped.bytes().first(out.size_bytes());

  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const MutableBytes into =
        values.subspan(route.begin(s) * spec->row_bytes(), route.keys(s).size() * spec->row_bytes());
    calls.push_back(pull_keys_at(s, *spec, step, route, into, training));
  }
  const Status outcome = co_await beside(std::move(calls));
  if (outcome.ok() && !in_place) {
    scatter(reinterpret_cast<const Real*>(grouped.data()), route.order(), spec->width, out.data());
  }
  if (!in_place) give_buffer(std::move(grouped));
  ++counters_.pulls;
  counters_.keys_pulled += route.size();
  counters_.pull_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::pull_keys_at(uint32_t shard, const TableSpec& spec, int64_t step, const KeyRoute& route,
                                       MutableBytes into, bool training) {
  proto::PullRequest head;
  head.set_step(step);
  head.set_training(training);
  head.set_keys(route.keys(shard).size());
  head.set_keys_hash(route.keys_hash(shard));
  co_return co_await pull_at(shard, spec, std::move(head), bytes_of(route.keys(shard)), into);
}

Task<Status> StoreClient::pull_at(uint32_t shard, const TableSpec& spec, proto::PullRequest head, Bytes keys,
                                  MutableBytes into) {
  head.set_table(spec.id);
  head.set_rank(rank_);
  Call request{.to = shards_[shard], .service = services::kPull};
  request.body[0] = keys;
  request.reply_into = into;
  const Deadline deadline = io_.within(config_.call_timeout, "pull", head.step());
  auto answer = co_await call<proto::PullReply>(io_, request, head, deadline);
  if (!answer.ok()) co_return answer.status();
  co_return check_reply(spec, into.size(), answer->body_bytes);
}

// --- push

template <class Real>
Task<Status> StoreClient::push(TableId table, int64_t step, const KeyRoute& route, std::span<const Real> gradients) {
  CO_ASSIGN(const TableSpec* const spec, find<Real>(table, true));
  CHECK(route.shards() == shards());
  CHECK(gradients.size() == route.size() * spec->width);
  const Time since = io_.now();
  const bool in_place = route.order().empty();
  Buffer grouped;
  if (!in_place) {
    grouped = take_buffer(gradients.size_bytes());
    gather(gradients.data(), route.order(), spec->width, reinterpret_cast<Real*>(grouped.data()));
  }
  const Bytes values = in_place ? bytes_of(gradients) : Bytes(grouped.bytes()).first(gradients.size_bytes());

  // A shard that none of the keys are on gets a push too: it counts the workers.
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Bytes part = values.subspan(route.begin(s) * spec->row_bytes(), route.keys(s).size() * spec->row_bytes());
    calls.push_back(push_keys_at(s, *spec, step, route, part));
  }
  const Status outcome = co_await beside(std::move(calls));
  if (!in_place) give_buffer(std::move(grouped));
  ++counters_.pushes;
  counters_.keys_pushed += route.size();
  counters_.push_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::push_keys_at(uint32_t shard, const TableSpec& spec, int64_t step, const KeyRoute& route,
                                       Bytes gradients) {
  proto::PushRequest head;
  head.set_table(spec.id);
  head.set_step(step);
  head.set_rank(rank_);
  head.set_keys(route.keys(shard).size());
  head.set_keys_hash(route.keys_hash(shard));
  Call request{.to = shards_[shard], .service = services::kPush};
  request.body[1] = gradients;
  const Deadline deadline = io_.within(config_.call_timeout, "push", step);
  auto answer = co_await call<proto::PushReply>(io_, request, head, deadline);
  if (!answer.ok()) co_return answer.status();
  if (!answer->head.keys_needed()) co_return Status();

  ++counters_.key_lists_resent;
  head.set_with_keys(true);
  request.body[0] = bytes_of(route.keys(shard));
  auto second = co_await call<proto::PushReply>(io_, request, head, deadline);
  if (!second.ok()) co_return second.status();
  if (!second->head.keys_needed()) co_return Status();
  co_return error(Code::kCorrupt, "push to {}: shard {} asks for keys that it was sent", spec.label(), shard);
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
  CO_ASSIGN(const TableSpec* const spec, find<Real>(table, false));
  CHECK(begin <= spec->size && out.size() <= spec->size - begin);
  const Time since = io_.now();
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Range part = overlap({begin, begin + out.size()}, shard_range(spec->size, s, shards()));
    if (part.size() == 0) continue;
    const MutableBytes into = std::as_writable_bytes(out.subspan(part.begin - begin, part.size()));
    calls.push_back(pull_range_at(s, *spec, step, part, into, training));
  }
  const Status outcome = co_await beside(std::move(calls));
  ++counters_.pulls;
  counters_.keys_pulled += out.size();
  counters_.pull_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::pull_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range,
                                        MutableBytes into, bool training) {
  proto::PullRequest head;
  head.set_step(step);
  head.set_training(training);
  head.set_begin(range.begin);
  head.set_end(range.end);
  co_return co_await pull_at(shard, spec, std::move(head), Bytes(), into);
}

template <class Real>
Task<Status> StoreClient::push_range(TableId table, int64_t step, uint64_t begin, std::span<const Real> gradients) {
  CO_ASSIGN(const TableSpec* const spec, find<Real>(table, false));
  CHECK(begin <= spec->size && gradients.size() <= spec->size - begin);
  const Time since = io_.now();
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) {
    const Range here = shard_range(spec->size, s, shards());
    Range part = overlap({begin, begin + gradients.size()}, here);
    if (part.size() == 0) part = {here.begin, here.begin};
    const Bytes values = part.size() == 0 ? Bytes() : bytes_of(gradients.subspan(part.begin - begin, part.size()));
    calls.push_back(push_range_at(s, *spec, step, part, values));
  }
  const Status outcome = co_await beside(std::move(calls));
  ++counters_.pushes;
  counters_.keys_pushed += gradients.size();
  counters_.push_wait += io_.now() - since;
  co_return outcome;
}

Task<Status> StoreClient::push_range_at(uint32_t shard, const TableSpec& spec, int64_t step, Range range,
                                        Bytes gradients) {
  proto::PushRequest head;
  head.set_table(spec.id);
  head.set_step(step);
  head.set_rank(rank_);
  head.set_begin(range.begin);
  head.set_end(range.end);
  Call request{.to = shards_[shard], .service = services::kPush};
  request.body[0] = gradients;
  const Deadline deadline = io_.within(config_.call_timeout, "push", step);
  auto answer = co_await call<proto::PushReply>(io_, request, head, deadline);
  co_return answer.status();
}

// --- dump

template <class Real>
Task<Status> StoreClient::dump_shard(uint32_t shard, const TableSpec& spec, int64_t step, TableDump<Real>& dump) {
  proto::ExportRequest head;
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
  const auto found = specs_.find(table);
  const bool sparse = found != specs_.end() && found->second.sparse;
  CO_ASSIGN(const TableSpec* const spec, find<Real>(table, sparse));
  std::vector<TableDump<Real>> parts(shards());
  std::vector<Task<Status>> calls;
  for (uint32_t s = 0; s < shards(); ++s) calls.push_back(dump_shard(s, *spec, step, parts[s]));
  CO_TRY(co_await beside(std::move(calls)));
  co_return joined(std::move(parts), *spec);
}

#define TALWEG_STORE_CLIENT_FOR(Real)                                                                \
  template Task<Status> StoreClient::pull(TableId, int64_t, const KeyRoute&, std::span<Real>);       \
  template Task<Status> StoreClient::read(TableId, int64_t, const KeyRoute&, std::span<Real>);       \
  template Task<Status> StoreClient::push(TableId, int64_t, const KeyRoute&, std::span<const Real>); \
  template Task<Status> StoreClient::pull_range(TableId, int64_t, uint64_t, std::span<Real>);        \
  template Task<Status> StoreClient::read_range(TableId, int64_t, uint64_t, std::span<Real>);        \
  template Task<Status> StoreClient::push_range(TableId, int64_t, uint64_t, std::span<const Real>);  \
  template Task<Result<TableDump<Real>>> StoreClient::dump(TableId, int64_t);
TALWEG_STORE_CLIENT_FOR(float)
TALWEG_STORE_CLIENT_FOR(double)
#undef TALWEG_STORE_CLIENT_FOR

}  // namespace talweg
