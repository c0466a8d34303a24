// Session: frames over a link. The dialler introduces itself first; the other side answers when it adopts the session;
// then sends go out in order, and each body that comes in is read straight into the buffer the mailbox names. A frame
// that is not right ends the session; it costs the peer its connection and us a counter, never the process.
#pragma once

#include <memory>
#include <vector>

#include "io/frame.h"
#include "io/io.h"
#include "io/link.h"

namespace talweg {

// Who a session talks for: given once, when the node starts.
struct NodeIdentity {
  Peer self = 0;
  Incarnation incarnation = 0;
  std::string job;  // the job's secret: connections that do not know it are refused
};

class Session {
 public:
  // `expected`: the peer that was dialled; none for a connection that came in. `connection`: the dialler's number for
  // it, which grows from dial to dial; not known yet for a connection that came in.
  Session(std::unique_ptr<Link> link, const NodeIdentity& identity, std::optional<Peer> expected, uint64_t connection,
          Mailbox& mailbox, IoCounters& counters, Time now);

  // Queues the op behind those before it; it goes out once both sides are introduced.
  void enqueue(SendOp& op) { queue_for(op).push_back(op); }
  // The accepting side's answer to an introduction.
  void adopt();
  // Takes over the sends that wait on a session given up for this one.
  void take_queue(Session& given_up) {
    urgent_.take(given_up.urgent_);
    queue_.take(given_up.queue_);
  }
  // Moves what can be moved without waiting. True when something moved. A failure ends the session.
  Result<bool> pump();
  bool has_work() const {
    if (parked()) return link_->ended();
    return broken_off_ || wants_to_read() || (wants_to_write() && link_->writable());
  }
  // The op goes. Half a frame cannot be taken back: if that is what went out of it, the session ends with the next
  // pump.
  void withdraw(SendOp& op);

  // Ends all that hangs on this session with `why`.
  void close(const Status& why);

  Link& link() { return *link_; }
  bool introduced() const { return introduced_; }
  bool dialled() const { return expected_.has_value(); }
  bool usable() const { return introduced_ && adopted_; }
  // Both sides dialled at once and the other connection is the one, for as long as it lasts.
  bool parked() const { return introduced_ && !adopted_; }
  Peer peer() const { return peer_; }
  Incarnation peer_incarnation() const { return peer_incarnation_; }
  Time opened() const { return opened_; }
  uint64_t connection() const { return connection_; }
  // The mailbox has no room for the next message: nothing is read until it is asked again. Writing goes on.
  bool stalled() const { return stalled_; }
  void retry_stalled() { stalled_ = false; }

 private:
  enum class Reading { kHeader, kHead, kBody };
  using SendQueue = IntrusiveList<SendOp, SendQueueTag>;
  SendQueue& queue_for(const SendOp& op) { return op.message.priority == Priority::kUrgent ? urgent_ : queue_; }
  bool wants_to_write() const { return out_left_ > 0 || (usable() && !(queue_.empty() && urgent_.empty())); }
  bool wants_to_read() const {
    const bool holds_head = reading_ == Reading::kHead && filled_ == head_.size();
    return !stalled_ && (link_->readable() || ahead_begin_ < ahead_end_ || holds_head);
  }
  Result<bool> pump_out();
  Result<bool> pump_in();
  void prepare(FrameKind kind, SendOp* op);
  void advance_out(size_t bytes);
  // Fills `want` from the read-ahead and the link; true when it is full.
  Result<bool> fill(MutableBytes want);
  Status on_header();
  Status on_head();
  Status check_hello() const;
  Status on_hello();
  void next_frame();

  std::unique_ptr<Link> link_;
  const NodeIdentity& identity_;
  Mailbox& mailbox_;
  IoCounters& counters_;
  Time opened_;

  // Writing.
  SendQueue urgent_, queue_;
  SendOp* current_ = nullptr;  // still in its queue, while its bytes go out
  std::array<std::byte, kFrameHeaderBytes> out_header_{};
  std::array<Bytes, 4> out_parts_;
  size_t out_left_ = 0;
  uint32_t out_sequence_ = 0;
  bool broken_off_ = false;

  // Reading.
  Reading reading_ = Reading::kHeader;
  std::array<std::byte, kFrameHeaderBytes> in_header_{};
  FrameHeader header_;
  std::string head_;
  Inbound inbound_;
  bool body_open_ = false;
  size_t filled_ = 0;
  uint32_t in_sequence_ = 0;
  bool stalled_ = false;  // the mailbox has no room for the message whose head we hold
  std::vector<std::byte> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  size_t moved_in_ = 0;

  // The other side.
  bool introduced_ = false;  // it told who it is
  bool adopted_;             // we told or will tell who we are
  std::optional<Peer> expected_;
  uint64_t connection_;
  Peer peer_ = 0;
  Incarnation peer_incarnation_ = 0;
};

}  // namespace talweg
