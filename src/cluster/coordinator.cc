#include "cluster/coordinator.h"

#include <algorithm>

#include "base/log.h"
#include "io/rpc.h"
#include "io/services.h"

namespace talweg {

Coordinator::Coordinator(Io& io, Layout layout, ClusterConfig config, std::string job_text, OnReport on_report)
    : io_(io),
      layout_(layout),
      config_(config),
      job_text_(std::move(job_text)),
      on_report_(std::move(on_report)),
      nodes_(layout.nodes()),
      tasks_(io) {
  CHECK(io.self() == layout.coordinator());
  io_.open(services::kJoin);
  io_.open(services::kBarrier);
  io_.open(services::kReport);
}

std::vector<Peer> Coordinator::peers() const {
  std::vector<Peer> peers;
  for (uint32_t i = 1; i < layout_.nodes(); ++i) peers.push_back(layout_.coordinator() + i);
  return peers;
}

// --- Joining.

std::vector<Peer> Coordinator::missing() const {
  std::vector<Peer> missing;
  for (Peer peer : peers()) {
    if (!at(peer).joined) missing.push_back(peer);
  }
  return missing;
}

Task<Status> Coordinator::gather() {
  if (Status valid = config_.check(); !valid.ok()) settle(std::move(valid));
  tasks_.spawn(serve_in_order(services::kJoin, &Coordinator::on_join));
  tasks_.spawn(serve_in_order(services::kBarrier, &Coordinator::on_barrier));
  tasks_.spawn(serve_in_order(services::kReport, &Coordinator::on_report));

  const Deadline deadline = io_.within(config_.join_timeout, "the nodes to join");
  while (!verdict_ && !missing().empty() && io_.now() < deadline.at && io_.stopped().ok()) {
    static_cast<void>(co_await io_.wait(changed_, deadline));
  }
  if (!io_.stopped().ok()) settle(io_.stopped());
  const std::vector<Peer> absent = missing();
  if (!verdict_ && !absent.empty()) {
    settle(error(Code::kDeadline, "{} did not join within {:g} s", layout_.names_of(absent),
                 to_seconds(config_.join_timeout)));
  }
  if (verdict_) {
    co_await answer_all_joins(*verdict_);
    co_await close();
    co_return *verdict_;
  }
  gathered_ = true;
  for (Peer peer : peers()) {
    at(peer).silence.emplace(config_, io_.now());
    tasks_.spawn(send_beats(peer));
    tasks_.spawn(watch(peer));
  }
  co_await answer_all_joins(Status());
  co_return Status();
}

void Coordinator::on_join(Request request) {
  Status admitted = admit(request);
  if (admitted.ok() && !gathered_) {
    at(request.from).asking = std::move(request);
    changed_.notify();
  } else {
    tasks_.spawn(answer_join(std::move(request), std::move(admitted)));
  }
}

Status Coordinator::admit(const Request& request) {
  proto::Join join;
  TRY(parse_head(request.head, &join, "join"));
  if (!layout_.contains(request.from) || request.from == layout_.coordinator() || join.id() != request.from) {
    return error(Code::kInvalid, "node {} is not part of this job, which has nodes {} to {}", join.id(),
                 layout_.coordinator() + 1, layout_.coordinator() + layout_.nodes() - 1);
  }
  Node& node = at(request.from);
  if (node.joined && node.incarnation != join.incarnation()) {
    return error(Code::kInvalid, "{} (node {}) has joined already and may not be replaced while the job runs",
                 layout_.name_of(request.from), request.from);
  }
  if (verdict_ && !verdict_->ok()) return *verdict_;
  if (node.joined) return {};
  node.joined = true;
  node.incarnation = join.incarnation();
  node.address = join.address();
  io_.learn(request.from, node.address);
  log_info("{} (node {}) joined: process {} on {}, at {}", layout_.name_of(request.from), request.from, join.pid(),
           join.host(), node.address);
  return {};
}

Task<> Coordinator::answer_join(Request request, Status failure) {
  const Deadline deadline = io_.within(config_.lost_after, "welcome");
  // An answer that does not arrive is asked for again.
  if (!failure.ok()) {
    static_cast<void>(co_await reply(io_, request, failure, deadline));
    co_return;
  }
  proto::Welcome welcome;
  welcome.set_job(job_text_);
  welcome.add_addresses(io_.address());
  for (Peer peer : peers()) welcome.add_addresses(at(peer).address);
  static_cast<void>(co_await reply(io_, request, welcome, Bytes(), deadline));
}

Task<> Coordinator::answer_all_joins(Status failure) {
  TaskSet answers(io_);
  for (Peer peer : peers()) {
    std::optional<Request>& asking = at(peer).asking;
    if (asking) answers.spawn(answer_join(std::move(*asking), failure));
    asking.reset();
  }
  co_await answers.join();
}

// --- Watching.

Task<> Coordinator::send_beats(Peer peer) {
  while (!at(peer).gone && io_.stopped().ok()) {
    const bool said_stopping = stopping_;
    std::string beat =
        encode_beat(stopping_ ? proto::PHASE_STOPPING : proto::PHASE_RUNNING, stopping_ ? *verdict_ : Status());
    // A beat that does not get through is no failure by itself: the silence that `watch` notices is.
    static_cast<void>(co_await io_.send(peer, tags::kBeat, std::move(beat), Bytes(),
                                        io_.within(config_.lost_after, "beat"), Priority::kUrgent));
    if (said_stopping != stopping_) continue;
    static_cast<void>(co_await io_.wait(phase_changed_, io_.within(config_.heartbeat, "time for the next beat")));
  }
}

Task<> Coordinator::watch(Peer peer) {
  Node& node = at(peer);
  while (!node.gone) {
    const Deadline deadline{node.silence->bound(), "beat"};
    Result<Received> received = co_await io_.recv(peer, tags::kBeat, MutableBytes(), deadline);
    if (!io_.stopped().ok()) co_return;
    if (received.ok()) {
      const Result<HeardBeat> beat = decode_beat(received->head);
      if (beat.ok())
        heard(peer, *beat);
      else
        log_warning("from {}: {}", layout_.name_of(peer), beat.status().message());
    } else if (node.silence->is_loss(io_.now())) {
      lost(peer);
    } else {
      // The connection is lost, which is not yet a loss of the node.
      static_cast<void>(co_await io_.sleep(limits::kRetryFirst, "pause before the next receive"));
    }
  }
}

void Coordinator::heard(Peer peer, const HeardBeat& beat) {
  Node& node = at(peer);
  node.silence->heard(io_.now());
  if (beat.phase == proto::PHASE_LEAVING) exited(peer, beat.reason.within(layout_.name_of(peer)));
  if (beat.phase == proto::PHASE_DONE && !node.done) {
    node.done = true;
    const Status failure = beat.reason.within(layout_.name_of(peer));
    if (may_be_consequence(failure))
      suspect(failure);
    else if (!failure.ok())
      settle(failure);
  }
  changed_.notify();
}

void Coordinator::lost(Peer peer) {
  at(peer).gone = true;
  changed_.notify();
  fail(error(Code::kUnavailable, "{} (node {}) is lost: nothing heard for {:.1f} s", layout_.name_of(peer), peer,
             at(peer).silence->seconds(io_.now())));
}

void Coordinator::fail(Status why) {
  CHECK(!why.ok());
  settle(std::move(why));
}

void Coordinator::exited(Peer node, Status how) {
  CHECK(layout_.contains(node) && node != layout_.coordinator());
  if (at(node).gone) return;
  at(node).gone = true;
  changed_.notify();
  if (verdict_) return;
  if (how.ok()) how = error(Code::kUnavailable, "{} (node {}) ended before the job did", layout_.name_of(node), node);
  fail(std::move(how));
}

// --- Deciding.

// What one node's death looks like from the others comes before the death itself is certain. So such a failure is
// held until every death that can be behind it must have shown.
void Coordinator::suspect(Status failure) {
  if (suspicion_ || verdict_) return;
  suspicion_ = Suspicion{std::move(failure), io_.now() + config_.lost_after + config_.heartbeat};
  changed_.notify();
}

void Coordinator::settle(Status verdict) {
  if (verdict_) {
    if (!verdict.ok()) log_info("after the job's end was decided: {}", verdict.message());
    return;
  }
  if (!verdict.ok() && suspicion_) {
    verdict =
        Status(verdict.code(), fmt::format("{}; it led to: {}", verdict.message(), suspicion_->failure.message()));
  }
  verdict_ = std::move(verdict);
  changed_.notify();
}

Task<Status> Coordinator::run(Task<Status> job) {
  CHECK(gathered_);
  tasks_.spawn(run_job(std::move(job)));
  co_await await_verdict();
  co_await stop_nodes();
  co_await close();
  co_return *verdict_;
}

Task<> Coordinator::run_job(Task<Status> job) {
  Status outcome = co_await std::move(job);
  if (verdict_ || !io_.stopped().ok()) co_return;
  // The coordinator's part may have ended well only because it did not need the node that failed.
  if (outcome.ok() && suspicion_) co_return;
  if (may_be_consequence(outcome))
    suspect(std::move(outcome));
  else
    settle(std::move(outcome));
}

Task<> Coordinator::await_verdict() {
  while (!verdict_) {
    if (!io_.stopped().ok()) {
      verdict_ = io_.stopped();
    } else if (suspicion_ && io_.now() >= suspicion_->until) {
      verdict_ = suspicion_->failure;
    } else {
      const Deadline deadline{suspicion_ ? suspicion_->until : Time::max(), "the end of the job"};
      static_cast<void>(co_await io_.wait(changed_, deadline));
    }
  }
}

bool Coordinator::all_gone() const {
  return std::all_of(nodes_.begin() + 1, nodes_.end(), [](const Node& node) { return node.gone; });
}

Task<> Coordinator::stop_nodes() {
  stopping_ = true;
  phase_changed_.notify();
  const Deadline deadline = io_.within(config_.lost_after, "the nodes to leave");
  while (!all_gone() && io_.now() < deadline.at && io_.stopped().ok()) {
    static_cast<void>(co_await io_.wait(changed_, deadline));
  }
}

Task<> Coordinator::close() {
  if (at_end_) co_await at_end_(*verdict_);
  io_.stop(verdict_->ok() ? Status(Code::kCancelled, "the job has ended") : *verdict_);
  co_await tasks_.join();
}

Task<Status> Coordinator::finished(Role role) {
  while (true) {
    const std::vector<Peer> all = peers();
    const bool finished =
        std::all_of(all.begin(), all.end(), [&](Peer peer) { return layout_.role_of(peer) != role || at(peer).done; });
    if (finished && !suspicion_ && !verdict_) co_return Status();
    CO_TRY(co_await io_.wait(changed_, Deadline{Time::max(), "the nodes to finish"}));
  }
}

// --- Serving.

// Requests are taken one after the other, so that a repeated one never overtakes the one that it repeats.
Task<> Coordinator::serve_in_order(Service service, void (Coordinator::*handle)(Request)) {
  while (true) {
    Result<Request> request = co_await io_.accept(service, Deadline{Time::max(), "requests"});
    if (!request.ok()) co_return;
    (this->*handle)(std::move(*request));
  }
}

Task<> Coordinator::acknowledge(Request request, Status failure, std::string note) {
  const Deadline deadline = io_.within(config_.call_timeout, "acknowledgement");
  if (failure.ok()) {
    proto::Ack ack;
    ack.set_note(note);
    static_cast<void>(co_await reply(io_, request, ack, Bytes(), deadline));
  } else {
    static_cast<void>(co_await reply(io_, request, failure, deadline));
  }
}

Result<Coordinator::BarrierState*> Coordinator::find_barrier(Peer from, const proto::Barrier& barrier) {
  if (!has_joined(from)) return error(Code::kInvalid, "node {} has not joined", from);
  if (barrier.participants() < 1 || barrier.participants() >= layout_.nodes()) {
    return error(Code::kInvalid, "{} participants, of {} nodes", barrier.participants(), layout_.nodes() - 1);
  }
  if (!barriers_.contains(barrier.name()) && barriers_.size() >= kMaxBarrierNames) {
    return error(Code::kFull, "there are {} barriers already: use one name many times", barriers_.size());
  }
  BarrierState& state = barriers_[barrier.name()];
  if (barrier.round() > state.round) {
    return error(Code::kInvalid, "{} comes to round {}, the others are in round {}", layout_.name_of(from),
                 barrier.round(), state.round);
  }
  if (!state.waiting.empty() && barrier.round() == state.round && barrier.participants() != state.participants) {
    return error(Code::kInvalid, "{} waits for {} participants, the others for {}", layout_.name_of(from),
                 barrier.participants(), state.participants);
  }
  return &state;
}

void Coordinator::on_barrier(Request request) {
  proto::Barrier barrier;
  const Status parsed = parse_head(request.head, &barrier, "barrier");
  if (!parsed.ok()) return tasks_.spawn(acknowledge(std::move(request), parsed, {}));
  const Result<BarrierState*> found = find_barrier(request.from, barrier);
  if (!found.ok()) return tasks_.spawn(acknowledge(std::move(request), found.status(), {}));
  BarrierState& state = **found;
  // The answer to an earlier try was lost.
  if (barrier.round() < state.round) return tasks_.spawn(acknowledge(std::move(request), Status(), state.note));
  state.participants = barrier.participants();
  const Peer from = request.from;
  state.waiting.insert_or_assign(from, std::move(request));
  if (state.waiting.size() < state.participants) return;
  ++state.round;
  state.note = note_;
  for (auto& [peer, waiting] : std::exchange(state.waiting, {})) {
    tasks_.spawn(acknowledge(std::move(waiting), Status(), state.note));
  }
}

void Coordinator::on_report(Request request) {
  proto::Report report;
  Status valid = parse_head(request.head, &report, "report");
  if (valid.ok() && !has_joined(request.from)) valid = error(Code::kInvalid, "node {} has not joined", request.from);
  if (valid.ok() && report.sequence() > at(request.from).reports_seen) {
    at(request.from).reports_seen = report.sequence();
    if (on_report_) on_report_(request.from, std::string(text_of(request.body.bytes())));
  }
  tasks_.spawn(acknowledge(std::move(request), std::move(valid), {}));
}

}  // namespace talweg
