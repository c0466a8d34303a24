// Io: all that protocol code may see of the world. One Io per node; a node is single-threaded, so nothing here is
// thread-safe and nothing needs to be. In production an Io is HostIo (shared memory, TCP); in the simulator it is
// SimIo. The protocol code above cannot tell which.
//
// Messages go from peer to peer under a tag and meet the receive posted for (peer, tag), first to first. Requests go to
// a service of a peer; the peer accepts and replies. Buffers are the caller's and must stay valid until the operation
// completes: a received body is written straight into the posted buffer.
//
// Every wait has a deadline and says what it is for. When the deadline passes the wait ends with an error that names
// the peer, the purpose, the step and how long it took; `waits()` tells the same of waits that have not ended yet.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/intrusive_list.h"
#include "base/limits.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "io/mailbox.h"
#include "io/task.h"

namespace talweg {

// How long a wait may last and what it is for. `what` must be static text.
struct Deadline {
  Time at;
  const char* what;
  int64_t step = -1;
};

// What a piece of work costs: production decides by it whether to use another thread, the simulator charges for it.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// What is urgent overtakes what waits to be sent to the same peer; among equals the order is kept. Messages under one
// tag must have one priority.
enum class Priority { kNormal, kUrgent };

struct IoCounters {
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;  // headers included
  uint64_t bad_frames = 0;                      // each cost its sender the connection
  uint64_t overloaded = 0;                      // requests answered so
};

class Io;

// An operation in flight. It lives in the frame of the coroutine that awaits it; destroying it withdraws it.
class Wait : public ListHook<Wait> {
 public:
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  // Starts before it is awaited: a reply's receive is posted before its request is sent.
  void start() {
    if (started_) return;
    started_ = true;
    on_start();
  }
  bool await_ready() {
    start();
    return done_;
  }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }

  // "receive 'pull reply' from node 3 at step 12, for 1.52 s"
  std::string describe(Time now) const;
  const Deadline& deadline() const { return deadline_; }

 protected:
  Wait(Io& io, Deadline deadline) : io_(io), deadline_(deadline) {}
  ~Wait() = default;

  virtual void on_start() = 0;
  virtual std::string subject() const = 0;
  // The deadline passed, or the node is stopping: leave all queues and finish.
  virtual void on_end(Status why) = 0;

  // Into the node's waits until complete(). False: the node is stopping, and the wait has ended already.
  bool enlist();
  void complete();

  Io& io_;
  Deadline deadline_;
  Time since_{};

 private:
  friend class Io;
  bool started_ = false;
  bool done_ = false;
  std::coroutine_handle<> waiter_;
};

struct SendQueueTag;

class SendOp final : public Wait, public ListHook<SendQueueTag> {
 public:
  struct Message {
    Peer to = 0;
    bool is_request = false;
    Tag tag = 0;  // or the service
    uint64_t id = 0;
    Code code = Code::kOk;
    Priority priority = Priority::kNormal;
    std::string head;
    std::array<Bytes, 2> body{};
    size_t body_bytes() const { return body[0].size() + body[1].size(); }
  };
  SendOp(Io& io, Message message, Deadline deadline) : Wait(io, deadline), message(std::move(message)) {}
  ~SendOp();
  Status await_resume() { return std::move(status_); }

  const Message message;

  void finish(Status status);  // for drivers

 private:
  void on_start() override;
  std::string subject() const override;
  void on_end(Status why) override;
  Status status_;
};

class RecvOp final : public Wait, public ListHook<PostedTag> {
 public:
  RecvOp(Io& io, Peer from, Tag tag, MutableBytes into, bool own_body, Deadline deadline)
      : Wait(io, deadline), from(from), tag(tag), into(into), own_body(own_body) {}
  ~RecvOp();
  Result<Received> await_resume() {
    if (!status_.ok()) return std::move(status_);
    return std::move(received);
  }

  const Peer from;
  const Tag tag;
  const MutableBytes into;
  const bool own_body;

  // For Mailbox.
  void finish(Status status);
  Inbound* arriving = nullptr;
  Received received;

 private:
  void on_start() override;
  std::string subject() const override;
  void on_end(Status why) override;
  Status status_;
};

class AcceptOp final : public Wait, public ListHook<AcceptTag> {
 public:
  AcceptOp(Io& io, Service service, Deadline deadline) : Wait(io, deadline), service(service) {}
  Result<Request> await_resume() {
    if (!status_.ok()) return std::move(status_);
    return std::move(request);
  }
  const Service service;
  void finish(Status status);
  Request request;

 private:
  void on_start() override;
  std::string subject() const override;
  void on_end(Status why) override;
  Status status_;
};

class SleepOp final : public Wait {
 public:
  SleepOp(Io& io, Time until, const char* what) : Wait(io, Deadline{until, what}) {}
  Status await_resume() { return std::move(status_); }

 private:
  void on_start() override { static_cast<void>(enlist()); }
  std::string subject() const override;
  void on_end(Status why) override;
  Status status_;
};

class ComputeOp final : public Wait {
 public:
  ComputeOp(Io& io, Cost cost, std::function<void()> work)
      : Wait(io, Deadline{Time::max(), "compute"}), cost(cost), work(std::move(work)) {}
  void await_resume() {}
  const Cost cost;
  const std::function<void()> work;
  void finish() { complete(); }

 private:
  void on_start() override;
  std::string subject() const override { return "work"; }
  void on_end(Status) override {}  // work cannot be recalled; it ends by itself
};

// Where tasks of one node wait for something another task of the same node does.
class Signal {
 public:
  // Wakes all that wait now.
  void notify();

 private:
  friend class SignalOp;
  IntrusiveList<class SignalOp, Signal> waiting_;
};

class SignalOp final : public Wait, public ListHook<Signal> {
 public:
  SignalOp(Io& io, Signal& signal, Deadline deadline) : Wait(io, deadline), signal_(signal) {}
  Status await_resume() { return std::move(status_); }

 private:
  friend class Signal;
  void on_start() override;
  std::string subject() const override { return "wait"; }
  void on_end(Status why) override;
  Signal& signal_;
  Status status_;
};

class Io : public Executor {
 public:
  Io(Peer self, Incarnation incarnation, Rng rng)
      : self_(self),
        incarnation_(incarnation),
        rng_(rng),
        mailbox_(*this),
        last_request_id_(first_request_id(incarnation)) {}

  Peer self() const { return self_; }
  Incarnation incarnation() const { return incarnation_; }
  Rng& rng() { return rng_; }
  virtual Time now() const = 0;  // constant between waits
  Deadline within(Duration d, const char* what, int64_t step = -1) const { return {now() + d, what, step}; }

  // Where a peer can be reached; what it published when it joined.
  virtual void learn(Peer peer, const std::string& address) = 0;
  virtual std::string address() const = 0;

  SendOp send(Peer to, Tag tag, std::string head, Bytes body, Deadline deadline,
              Priority priority = Priority::kNormal) {
    return SendOp(*this, {.to = to, .tag = tag, .priority = priority, .head = std::move(head), .body = {body, Bytes()}},
                  deadline);
  }
  RecvOp recv(Peer from, Tag tag, MutableBytes into, Deadline deadline) {
    return RecvOp(*this, from, tag, into, false, deadline);
  }
  // For bodies whose size the receiver cannot know.
  RecvOp recv_owned(Peer from, Tag tag, Deadline deadline) { return RecvOp(*this, from, tag, {}, true, deadline); }

  // A service must be opened before the node can be reached, so that no early request is refused.
  void open(Service service) { mailbox_.open(service); }
  AcceptOp accept(Service service, Deadline deadline) { return AcceptOp(*this, service, deadline); }

  SleepOp sleep_until(Time until, const char* what = "sleep") { return SleepOp(*this, until, what); }
  SleepOp sleep(Duration d, const char* what = "sleep") { return SleepOp(*this, now() + d, what); }
  ComputeOp compute(Cost cost, std::function<void()> work) { return ComputeOp(*this, cost, std::move(work)); }
  SignalOp wait(Signal& signal, Deadline deadline) { return SignalOp(*this, signal, deadline); }

  // A fresh request id; its reply comes under kReplyBit | id.
  uint64_t next_request_id() { return ++last_request_id_; }

  // Ends every wait, now and later, with `why`: how a node stops in order.
  void stop(Status why);
  const Status& stopped() const { return stop_reason_; }

  // The waits that are older than `age`, longest first: the stall report.
  std::vector<std::string> waits(Duration age) const { return describe_waits(age, false); }
  // The same without those that may last for ever: an idle service is no stall.
  std::vector<std::string> stalls(Duration age) const { return describe_waits(age, true); }
  const IoCounters& counters() const { return counters_; }

 protected:
  friend class Wait;
  friend class SendOp;
  friend class RecvOp;
  friend class AcceptOp;
  friend class ComputeOp;
  friend class SleepOp;
  friend class SignalOp;
  friend class Mailbox;

  virtual void start_send(SendOp& op) = 0;
  virtual void start_compute(ComputeOp& op) = 0;
  // The earliest deadline is now this; call `expire` then.
  virtual void wake_at(Time when) = 0;
  // The op goes before its bytes went: drop it from the queues, and cut the connection if it went in part.
  virtual void withdraw(SendOp& op) = 0;
  // A receive was posted or an inbox emptied: connections held back may go on.
  virtual void inbox_has_room() {}

  Time earliest_deadline() const { return earliest_deadline_; }
  void expire();
  // Answers a request that no handler will see.
  void refuse(Peer to, uint64_t id, Code code, std::string why);
  // Before a driver goes: what still waits inside Io itself refers to it.
  void drop_housekeeping() { housekeeping_.destroy_all(); }

  Peer self_;
  Incarnation incarnation_;
  Rng rng_;
  IoCounters counters_;
  Mailbox mailbox_;

 private:
  IntrusiveList<Wait, Wait> waits_;
  std::vector<std::string> describe_waits(Duration age, bool only_bounded) const;
  // Ids of different lives of a node do not meet: a reply to an earlier life finds no receive.
  static uint64_t first_request_id(Incarnation incarnation) {
    return (mix64(incarnation) & ~kReplyBit) & ~uint64_t{0xffffffff};
  }

  Time earliest_deadline_ = Time::max();
  uint64_t last_request_id_;
  Status stop_reason_;
  size_t refusals_ = 0;
  TaskSet housekeeping_{*this};
};

}  // namespace talweg
