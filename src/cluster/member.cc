#include "cluster/member.h"

#include <algorithm>

#include "base/log.h"
#include "cluster/beat.h"
#include "cluster/silence.h"
#include "io/rpc.h"
#include "io/services.h"

namespace talweg {

Task<Result<proto::Welcome>> Member::join(Identity identity) {
  proto::Join join;
  join.set_id(io_.self());
  join.set_address(io_.address());
  join.set_incarnation(io_.incarnation());
  join.set_pid(identity.pid);
  join.set_host(identity.host);
  // The coordinator knows better than we who did not come, so its own deadline passes first.
  const Deadline deadline = io_.within(config_.join_timeout + config_.lost_after, "join");
  Call request{.to = coordinator_, .service = services::kJoin};
  Result<Answer<proto::Welcome>> answer = co_await call<proto::Welcome>(io_, request, join, deadline);
  if (!answer.ok()) co_return answer.status();
  const proto::Welcome& welcome = answer->head;
  for (int i = 1; i < welcome.addresses_size(); ++i) {
    const Peer node = coordinator_ + static_cast<Peer>(i);
    if (node != io_.self()) io_.learn(node, welcome.addresses(i));
  }
  co_return welcome;
}

void Member::start(TaskSet& tasks) {
  CHECK(!started_);
  started_ = true;
  tasks.spawn(send_beats());
  tasks.spawn(hear_coordinator());
}

void Member::change_phase(proto::Phase phase, Status reason) {
  phase_ = phase;
  reason_ = std::move(reason);
  ++phase_version_;
  phase_changed_.notify();
}

Task<> Member::send_beats() {
  Time leave_by = Time::max();
  while (io_.stopped().ok()) {
    const uint64_t version = phase_version_;
    const bool last_words = phase_ == proto::PHASE_LEAVING;
    if (last_words && leave_by == Time::max()) leave_by = io_.now() + config_.lost_after;
    // A beat that does not get through is no failure by itself: the other side's silence is what counts.
    const Time patience = std::min(leave_by, io_.now() + config_.lost_after);
    std::string beat = encode_beat(phase_, reason_);
    const Status sent = co_await io_.send(coordinator_, tags::kBeat, std::move(beat), Bytes(),
                                          Deadline{patience, "beat"}, Priority::kUrgent);
    // Only now may the Io stop: it sends nothing afterwards.
    if (last_words && (sent.ok() || io_.now() >= leave_by)) co_return end(outcome_);
    if (version != phase_version_) continue;
    static_cast<void>(co_await io_.wait(phase_changed_, io_.within(config_.heartbeat, "time for the next beat")));
  }
}

Task<> Member::hear_coordinator() {
  Silence silence(config_, io_.now());
  while (true) {
    const Deadline deadline{silence.bound(), "beat of the coordinator"};
    Result<Received> received = co_await io_.recv(coordinator_, tags::kBeat, MutableBytes(), deadline);
    if (!io_.stopped().ok()) co_return;
    if (!received.ok()) {
      if (silence.is_loss(io_.now())) co_return coordinator_lost(silence.seconds(io_.now()));
      // The connection is lost, which is not yet a loss of the coordinator.
      static_cast<void>(co_await io_.sleep(limits::kRetryFirst, "pause before the next receive"));
      continue;
    }
    const Result<HeardBeat> beat = decode_beat(received->head);
    if (!beat.ok()) {
      log_warning("from the coordinator: {}", beat.status().message());
      continue;
    }
    silence.heard(io_.now());
    if (beat->phase != proto::PHASE_STOPPING) continue;
    outcome_ = beat->reason;
    co_return change_phase(proto::PHASE_LEAVING, Status());
  }
}

void Member::coordinator_lost(double silent_s) {
  Status lost = error(Code::kUnavailable, "the coordinator is lost: nothing heard for {:.1f} s", silent_s);
  const bool own_is_cause = !own_failure_.ok() && !may_be_consequence(own_failure_);
  end(own_is_cause ? own_failure_ : std::move(lost));
}

void Member::end(Status outcome) {
  if (!io_.stopped().ok()) return;
  outcome_ = std::move(outcome);
  concluded_ = true;
  io_.stop(outcome_.ok() ? Status(Code::kCancelled, "the job has ended") : outcome_);
}

Task<Status> Member::barrier(std::string name, uint32_t participants, Duration timeout) {
  const Result<std::string> passed = co_await decision(std::move(name), participants, timeout);
  co_return passed.status();
}

Task<Result<std::string>> Member::decision(std::string name, uint32_t participants, Duration timeout) {
  uint64_t& passed = barriers_passed_[name];
  proto::Barrier barrier;
  barrier.set_name(name);
  barrier.set_round(passed);
  barrier.set_participants(participants);
  Call request{.to = coordinator_, .service = services::kBarrier};
  const Result<Answer<proto::Ack>> answer =
      co_await call<proto::Ack>(io_, request, barrier, io_.within(timeout, "barrier"));
  if (!answer.ok()) co_return answer.status().within(fmt::format("barrier '{}'", name));
  ++passed;
  co_return answer->head.note();
}

Task<Status> Member::report(std::string payload) {
  // One at a time, so that a repeated call cannot overtake or be overtaken, and a number tells what was seen already.
  const uint64_t sequence = ++reports_begun_;
  while (reports_ended_ + 1 != sequence) {
    CO_TRY(co_await io_.wait(report_ended_, Deadline{Time::max(), "the reports before this one"}));
  }
  const Status outcome = co_await report_in_turn(sequence, payload);
  ++reports_ended_;
  report_ended_.notify();
  co_return outcome;
}

Task<Status> Member::report_in_turn(uint64_t sequence, const std::string& payload) {
  if (payload.size() > limits::kMaxBodyBytes) {
    co_return error(Code::kInvalid, "a report of {} bytes is too large", payload.size());
  }
  proto::Report report;
  report.set_sequence(sequence);
  Call request{.to = coordinator_, .service = services::kReport, .body = {bytes_of(payload), Bytes()}};
  const Result<Answer<proto::Ack>> answer =
      co_await call<proto::Ack>(io_, request, report, io_.within(config_.call_timeout, "report"));
  co_return answer.status();
}

void Member::fail(Status why) {
  CHECK(started_);
  if (phase_ != proto::PHASE_RUNNING || !io_.stopped().ok()) return;
  own_failure_ = why;
  change_phase(proto::PHASE_DONE, std::move(why));
}

Task<Status> Member::leave(Status outcome) {
  fail(std::move(outcome));
  // The coordinator ends this wait, or its silence does: see hear_coordinator.
  while (io_.stopped().ok()) {
    static_cast<void>(co_await io_.sleep_until(Time::max(), "until the job ends"));
  }
  co_return this->outcome();
}

}  // namespace talweg
