#include "io/io.h"

#include <algorithm>

namespace talweg {

bool Wait::enlist() {
  since_ = io_.now();
  if (!io_.stop_reason_.ok()) {
    on_end(io_.stop_reason_);
    return false;
  }
  io_.waits_.push_back(*this);
  if (deadline_.at < io_.earliest_deadline_) {
    io_.earliest_deadline_ = deadline_.at;
    io_.wake_at(deadline_.at);
  }
  return true;
}

void Wait::complete() {
  CHECK(!done_);
  done_ = true;
  static_cast<ListHook<Wait>&>(*this).unlink();
  if (waiter_) io_.post(std::exchange(waiter_, nullptr));
}

std::string Wait::describe(Time now) const {
  std::string text = fmt::format("{} '{}'", subject(), deadline_.what);
  if (deadline_.step >= 0) text += fmt::format(" at step {}", deadline_.step);
  return text + fmt::format(", for {:.3f} s", to_seconds(now - since_));
}

SendOp::~SendOp() {
  if (static_cast<ListHook<SendQueueTag>&>(*this).linked()) io_.withdraw(*this);
}
void SendOp::on_start() {
  if (!enlist()) return;
  // The receiver would refuse such a frame, and with it the connection.
  if (message.head.size() > limits::kMaxHeadBytes || message.body_bytes() > limits::kMaxBodyBytes) {
    return finish(error(Code::kInvalid,
                        "'{}' to node {} has a head of {} bytes and a body of {}, at most {} and {} can be sent",
                        deadline_.what, message.to, message.head.size(), message.body_bytes(), limits::kMaxHeadBytes,
                        limits::kMaxBodyBytes));
  }
  io_.start_send(*this);
}
std::string SendOp::subject() const { return fmt::format("send to node {} of", message.to); }
void SendOp::on_end(Status why) {
  if (static_cast<ListHook<SendQueueTag>&>(*this).linked()) io_.withdraw(*this);
  finish(std::move(why));
}
void SendOp::finish(Status status) {
  static_cast<ListHook<SendQueueTag>&>(*this).unlink();
  status_ = std::move(status);
  complete();
}

RecvOp::~RecvOp() { io_.mailbox_.withdraw(*this); }
void RecvOp::on_start() {
  if (enlist()) io_.mailbox_.post(*this);
}
std::string RecvOp::subject() const { return fmt::format("receive from node {} of", from); }
void RecvOp::on_end(Status why) {
  io_.mailbox_.withdraw(*this);
  finish(std::move(why));
}
void RecvOp::finish(Status status) {
  static_cast<ListHook<PostedTag>&>(*this).unlink();
  status_ = std::move(status);
  complete();
}

void AcceptOp::on_start() {
  if (enlist()) io_.mailbox_.post(*this);
}
std::string AcceptOp::subject() const { return fmt::format("accept on service {} of", service); }
void AcceptOp::on_end(Status why) { finish(std::move(why)); }
void AcceptOp::finish(Status status) {
  static_cast<ListHook<AcceptTag>&>(*this).unlink();
  status_ = std::move(status);
  complete();
}

std::string SleepOp::subject() const { return "sleep"; }
void SleepOp::on_end(Status why) {
  // To sleep to the end is no failure; that the node stops is one, even if for a deadline.
  if (why.code() != Code::kDeadline || !io_.stopped().ok()) status_ = std::move(why);
  complete();
}

void ComputeOp::on_start() { io_.start_compute(*this); }

void Signal::notify() {
  while (SignalOp* op = waiting_.pop_front()) op->complete();
}
void SignalOp::on_start() {
  if (enlist()) signal_.waiting_.push_back(*this);
}
void SignalOp::on_end(Status why) {
  static_cast<ListHook<Signal>&>(*this).unlink();
  status_ = std::move(why);
  complete();
}

void Io::stop(Status why) {
  if (!stop_reason_.ok()) return;
  stop_reason_ = std::move(why);
  while (Wait* wait = waits_.front()) wait->on_end(stop_reason_);
}

void Io::expire() {
  const Time now = this->now();
  // Apart first: the end of one wait may end others, or begin new ones.
  IntrusiveList<Wait, Wait> expired;
  Time earliest = Time::max();
  for (Wait* wait = waits_.front(); wait != nullptr;) {
    Wait* following = waits_.next(*wait);
    if (wait->deadline_.at <= now) {
      static_cast<ListHook<Wait>&>(*wait).unlink();
      expired.push_back(*wait);
    } else {
      earliest = std::min(earliest, wait->deadline_.at);
    }
    wait = following;
  }
  earliest_deadline_ = earliest;
  while (Wait* wait = expired.front()) wait->on_end(Status(Code::kDeadline, wait->describe(now)));
  if (earliest_deadline_ != Time::max()) wake_at(earliest_deadline_);
}

std::vector<std::string> Io::describe_waits(Duration age, bool only_bounded) const {
  std::vector<std::pair<Time, std::string>> old;
  for (Wait* wait = waits_.front(); wait != nullptr; wait = waits_.next(*wait)) {
    if (only_bounded && wait->deadline_.at == Time::max()) continue;
    if (now() - wait->since_ >= age) old.emplace_back(wait->since_, wait->describe(now()));
  }
  std::sort(old.begin(), old.end());
  std::vector<std::string> report;
  for (auto& [since, text] : old) report.push_back(std::move(text));
  return report;
}

void Io::refuse(Peer to, uint64_t id, Code code, std::string why) {
  // A flood of requests that cannot be served must not fill the memory with refusals.
  if (refusals_ >= limits::kQueuedRequests) return;
  ++refusals_;
  housekeeping_.spawn([](Io& io, Peer to, uint64_t id, Code code, std::string why) -> Task<> {
    SendOp refusal(io, {.to = to, .tag = kReplyBit | id, .code = code, .head = std::move(why)},
                   io.within(seconds(1), "refusal"));
    // A refusal that cannot be delivered is no loss: the caller's own deadline tells it the same.
    static_cast<void>(co_await refusal);
    --io.refusals_;
  }(*this, to, id, code, std::move(why)));
}

}  // namespace talweg
