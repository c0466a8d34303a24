#include "cluster/lease.h"

#include <algorithm>

#include "base/config.h"
#include "base/log.h"
#include "cluster/beat.h"
#include "io/rpc.h"
#include "io/services.h"

namespace talweg {

// --- The job's side.

Task<Result<Lease>> take_lease(Io& io, LeaseWish wish, uint64_t nonce, Duration timeout) {
  proto::LeaseRequest head;
  head.set_nonce(nonce);
  head.set_name(wish.name);
  head.set_nodes(wish.nodes);
  head.set_max_bytes(wish.max_bytes);
  const Call request{.to = kCoordinatorNode, .service = services::kLease};
  const auto answer = co_await call<proto::LeaseReply>(io, request, head, io.within(timeout, "lease"));
  if (!answer.ok()) co_return answer.status();
  const proto::LeaseReply& given = answer->head;
  if (given.first() == 0 || given.first() >= kFirstVisitorId || given.addresses_size() == 0 ||
      given.lost_after_ns() == 0 || given.lost_after_ns() > uint64_t{INT64_MAX}) {
    co_return error(Code::kCorrupt, "the server group gave a lease that makes no sense");
  }
  Lease lease;
  lease.job = given.job();
  lease.nonce = nonce;
  lease.first = given.first();
  lease.max_bytes = given.max_bytes();
  lease.addresses.assign(given.addresses().begin(), given.addresses().end());
  lease.settings = given.settings();
  lease.lost_after = Duration(static_cast<Duration::rep>(given.lost_after_ns()));
  co_return lease;
}

Task<Status> LeaseKeeper::keep() {
  const Call request{.to = kCoordinatorNode, .service = services::kRenewLease};
  while (true) {
    const Deadline deadline = io_.within(lost_after_, "renewal of the lease");
    const auto answer = co_await call<proto::RenewReply>(io_, request, use_, deadline);
    if (released_) co_return Status();
    if (answer.ok() && !answer->head.ended()) continue;
    ended_ = true;
    if (!answer.ok()) {
      if (!io_.stopped().ok() || answer.status().code() != Code::kDeadline) {
        co_return answer.status().within("the server group");
      }
      co_return error(Code::kUnavailable, "the server group is lost: {}", answer.status().message());
    }
    co_return error(Code::kUnavailable, "the server group has ended: {}", answer->head.reason());
  }
}

Task<Status> LeaseKeeper::release() {
  if (ended_) co_return Status();
  released_ = true;
  const Call request{.to = kCoordinatorNode, .service = services::kReleaseLease};
  const Deadline deadline = io_.within(lost_after_, "end of the lease");
  const auto answer = co_await call<proto::Ack>(io_, request, use_, deadline);
  co_return answer.status();
}

// --- The group's side.

LeaseBook::LeaseBook(Io& io, ClusterConfig config, Drop drop) : io_(io), config_(config), drop_(std::move(drop)) {
  io_.open(services::kLease);
  io_.open(services::kRenewLease);
  io_.open(services::kReleaseLease);
}

void LeaseBook::start(TaskSet& tasks, LeaseTerms terms) {
  tasks_ = &tasks;
  terms_ = std::move(terms);
  next_id_ = 1 + static_cast<Peer>(terms_.addresses.size());
  tasks.spawn(serve_in_order(services::kLease, &LeaseBook::on_lease));
  tasks.spawn(serve_in_order(services::kRenewLease, &LeaseBook::on_renew));
  tasks.spawn(serve_in_order(services::kReleaseLease, &LeaseBook::on_release));
}

Task<> LeaseBook::serve_in_order(Service service, void (LeaseBook::*handle)(Request)) {
  while (true) {
    Result<Request> request = co_await io_.accept(service, Deadline{Time::max(), "requests"});
    if (!request.ok()) co_return;
    (this->*handle)(std::move(*request));
  }
}

void LeaseBook::on_lease(Request request) {
  proto::LeaseRequest wish;
  const Status parsed = parse_head(request.head, &wish, "lease");
  if (!parsed.ok()) return tasks_->spawn(refuse(std::move(request), parsed));
  const Result<Entry*> granted = grant(wish);
  if (!granted.ok()) return tasks_->spawn(refuse(std::move(request), granted.status()));
  tasks_->spawn(answer_lease(std::move(request), (*granted)->lease));
}

Status LeaseBook::check(const proto::LeaseRequest& wish) const {
  if (closing_) return Status(Code::kCancelled, "the server group is ending");
  if (wish.nodes() < 1 || wish.nodes() > kMaxLeasedNodes) {
    return error(Code::kInvalid, "a job of {} nodes; 1 to {} are allowed", wish.nodes(), kMaxLeasedNodes);
  }
  if (wish.name().size() > kMaxLeaseNameBytes) {
    return error(Code::kInvalid, "a job's name has at most {} bytes", kMaxLeaseNameBytes);
  }
  if (terms_.max_bytes_per_job > 0 && wish.max_bytes() > terms_.max_bytes_per_job) {
    return error(Code::kFull, "job '{}' asks for {} bytes on each shard; a job of this server group gets at most {}",
                 wish.name(), wish.max_bytes(), terms_.max_bytes_per_job);
  }
  if (entries_.size() >= kMaxLeases) {
    return error(Code::kFull, "the server group has {} jobs already", entries_.size());
  }
  if (kFirstVisitorId - next_id_ < wish.nodes()) {
    return error(Code::kFull, "the server group has no ids left for {} nodes: start it anew", wish.nodes());
  }
  return {};
}

Result<LeaseBook::Entry*> LeaseBook::grant(const proto::LeaseRequest& wish) {
  // The answer to an earlier try was lost.
  for (auto& [job, entry] : entries_) {
    if (entry.nonce == wish.nonce() && !entry.ending) return &entry;
  }
  TRY(check(wish));
  Entry& entry = entries_.try_emplace(++last_job_, config_, io_.now()).first->second;
  entry.nonce = wish.nonce();
  entry.name = wish.name();
  entry.nodes = wish.nodes();
  entry.lease.set_job(last_job_);
  entry.lease.set_first(next_id_);
  entry.lease.set_max_bytes(wish.max_bytes() > 0 ? wish.max_bytes() : terms_.max_bytes_per_job);
  for (const std::string& address : terms_.addresses) entry.lease.add_addresses(address);
  entry.lease.set_settings(terms_.settings);
  entry.lease.set_lost_after_ns(static_cast<uint64_t>(config_.lost_after.count()));
  next_id_ += wish.nodes();
  log_info("job {} '{}' begins: nodes {} to {}, {} bytes on each shard", last_job_, entry.name, entry.lease.first(),
           next_id_ - 1, entry.lease.max_bytes());
  tasks_->spawn(watch(entry));
  return &entry;
}

LeaseBook::Entry* LeaseBook::find(const proto::LeaseUse& use) {
  const auto found = entries_.find(use.job());
  if (found == entries_.end() || found->second.nonce != use.nonce() || found->second.ending) return nullptr;
  return &found->second;
}

void LeaseBook::on_renew(Request request) {
  proto::LeaseUse use;
  const Status parsed = parse_head(request.head, &use, "renewal");
  if (!parsed.ok()) return tasks_->spawn(refuse(std::move(request), parsed));
  Entry* const entry = find(use);
  if (entry == nullptr) {
    return tasks_->spawn(refuse(std::move(request), error(Code::kNotFound,
                                                          "the lease of job {} has ended: nothing was "
                                                          "heard of it for {}",
                                                          use.job(), format_duration(config_.lost_after))));
  }
  entry->silence.heard(io_.now());
  entry->renewed = true;
  entry->renewing = std::move(request);
  entry->answer_at = io_.now() + config_.heartbeat;
  entry->changed.notify();
}

void LeaseBook::on_release(Request request) {
  proto::LeaseUse use;
  const Status parsed = parse_head(request.head, &use, "release");
  if (!parsed.ok()) return tasks_->spawn(refuse(std::move(request), parsed));
  const auto found = entries_.find(use.job());
  // Not there: the answer to an earlier try was lost.
  if (found == entries_.end() || found->second.nonce != use.nonce()) {
    return tasks_->spawn(answer_ok(std::move(request)));
  }
  found->second.releasing = std::move(request);
  found->second.changed.notify();
}

// A lease from its first day to its last.
Task<> LeaseBook::watch(Entry& entry) {
  while (io_.stopped().ok() && !entry.releasing && !entry.is_lost(io_.now())) {
    if (entry.renewing && (closing_ || io_.now() >= entry.answer_at)) {
      tasks_->spawn(answer_renewal(std::move(*std::exchange(entry.renewing, std::nullopt)), entry.lease.job()));
    }
    const Deadline deadline{entry.renewing ? std::min(entry.bound(), entry.answer_at) : entry.bound(), "renewal"};
    static_cast<void>(co_await io_.wait(entry.changed, deadline));
  }
  if (io_.stopped().ok()) co_await end(entry);
}

Task<> LeaseBook::end(Entry& entry) {
  entry.ending = true;
  const uint64_t job = entry.lease.job();
  log_info("job {} '{}' {}", job, entry.name, entry.releasing ? "has ended" : "is lost: its tables go");
  // A shard that cannot do it is lost soon, and the group with it.
  for (Status dropped = co_await drop_(job); !dropped.ok() && io_.stopped().ok(); dropped = co_await drop_(job)) {
    log_warning("job {} '{}': {}", job, entry.name, dropped.message());
    static_cast<void>(co_await io_.sleep(config_.heartbeat, "pause before the next try to drop a job"));
  }
  std::optional<Request> releasing = std::move(entry.releasing);
  entries_.erase(job);
  told_.notify();
  if (releasing) co_await answer_ok(std::move(*releasing));
}

Task<> LeaseBook::close(Status why) {
  closing_ = std::move(why);
  for (auto& [job, entry] : entries_) entry.changed.notify();
  const Deadline deadline = io_.within(config_.lost_after, "the jobs to hear of the group's end");
  while (!all_told() && io_.now() < deadline.at && io_.stopped().ok()) {
    static_cast<void>(co_await io_.wait(told_, deadline));
  }
}

bool LeaseBook::all_told() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.told || entry.second.ending; });
}

Task<> LeaseBook::answer_renewal(Request request, uint64_t job) {
  proto::RenewReply answer;
  if (closing_) {
    answer.set_ended(true);
    answer.set_reason(closing_->ok() ? "it was told to" : closing_->message().substr(0, kMaxReasonBytes));
  }
  const Status sent = co_await reply(io_, request, answer, Bytes(), io_.within(config_.lost_after, "renewal"));
  const auto found = entries_.find(job);
  if (!answer.ended() || !sent.ok() || found == entries_.end()) co_return;
  found->second.told = true;
  told_.notify();
}

Task<> LeaseBook::answer_lease(Request request, proto::LeaseReply lease) {
  static_cast<void>(co_await reply(io_, request, lease, Bytes(), io_.within(config_.call_timeout, "lease")));
}

Task<> LeaseBook::answer_ok(Request request) {
  const proto::Ack ok;
  static_cast<void>(co_await reply(io_, request, ok, Bytes(), io_.within(config_.call_timeout, "release")));
}

Task<> LeaseBook::refuse(Request request, Status why) {
  static_cast<void>(co_await reply(io_, request, why, io_.within(config_.call_timeout, "refusal")));
}

}  // namespace talweg
