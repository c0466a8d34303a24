#include "io/session.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/limits.h"

namespace talweg {

Session::Session(std::unique_ptr<Link> link, const NodeIdentity& identity, std::optional<Peer> expected,
                 uint64_t connection, Mailbox& mailbox, IoCounters& counters, Time now)
    : link_(std::move(link)),
      identity_(identity),
      mailbox_(mailbox),
      counters_(counters),
      opened_(now),
      ahead_(link_->read_ahead_bytes()),
      adopted_(expected.has_value()),
      expected_(expected),
      connection_(connection),
      peer_(expected.value_or(0)) {
  if (adopted_) prepare(FrameKind::kHello, nullptr);
}

void Session::adopt() {
  adopted_ = true;
  prepare(FrameKind::kHello, nullptr);
}

void Session::withdraw(SendOp& op) {
  if (current_ != &op) return;
  current_ = nullptr;
  broken_off_ = out_parts_[0].size() < kFrameHeaderBytes;
  if (broken_off_) return;
  out_left_ = 0;
  --out_sequence_;
}

Result<bool> Session::pump() {
  if (broken_off_) return Status(Code::kUnavailable, "a send was given up half-way");
  if (parked()) {
    if (link_->ended()) return Status(Code::kUnavailable, "given up by the other side");
    return false;
  }
  const Result<bool> sent = pump_out();
  Result<bool> received = pump_in();
  // A failed write means that the other side has closed; what it wrote before that still counts.
  for (size_t taken = 0; !sent.ok() && received.ok() && wants_to_read() && taken < limits::kUnexpectedBytes;) {
    received = pump_in();
    taken += kFrameHeaderBytes + moved_in_;
  }
  TRY(received);
  TRY(sent);
  return *sent || *received;
}

void Session::prepare(FrameKind kind, SendOp* op) {
  current_ = op;
  FrameHeader header{
      .kind = kind, .incarnation = identity_.incarnation, .from = identity_.self, .sequence = out_sequence_++};
  Bytes head = bytes_of(identity_.job);
  out_parts_ = {};
  if (op == nullptr) {
    header.id = connection_;
  } else {
    const SendOp::Message& message = op->message;
    header.code = message.code;
    header.tag = message.tag;
    header.id = message.id;
    header.body_bytes = message.body_bytes();
    head = bytes_of(message.head);
    out_parts_[2] = message.body[0];
    out_parts_[3] = message.body[1];
  }
  header.head_bytes = static_cast<uint32_t>(head.size());
  header.head_crc = crc32c(head);
  encode(header, out_header_);
  out_parts_[0] = out_header_;
  out_parts_[1] = head;
  out_left_ = kFrameHeaderBytes + head.size() + header.body_bytes;
}

Result<bool> Session::pump_out() {
  size_t moved = 0;
  while (wants_to_write() && moved < limits::kFairShareBytes) {
    if (out_left_ == 0) {
      SendOp* next = urgent_.empty() ? queue_.front() : urgent_.front();
      prepare(next->message.is_request ? FrameKind::kRequest : FrameKind::kMessage, next);
    }
    ASSIGN(const size_t n, link_->write(out_parts_));
    if (n == 0) break;
    moved += n;
    advance_out(n);
  }
  return moved > 0;
}

void Session::advance_out(size_t bytes) {
  counters_.bytes_sent += bytes;
  out_left_ -= bytes;
  for (Bytes& part : out_parts_) {
    const size_t n = std::min(bytes, part.size());
    part = part.subspan(n);
    bytes -= n;
  }
  if (out_left_ > 0 || current_ == nullptr) return;
  ++counters_.messages_sent;
  std::exchange(current_, nullptr)->finish({});
}

Result<bool> Session::fill(MutableBytes want) {
  while (filled_ < want.size()) {
    const size_t buffered = std::min(ahead_end_ - ahead_begin_, want.size() - filled_);
    if (buffered > 0) {
      std::memcpy(want.data() + filled_, ahead_.data() + ahead_begin_, buffered);
      ahead_begin_ += buffered;
      filled_ += buffered;
      continue;
    }
    const MutableBytes rest = want.subspan(filled_);
    ASSIGN(const size_t n, link_->read(rest, ahead_));
    if (n == 0) return false;
    moved_in_ += n;
    filled_ += std::min(n, rest.size());
    ahead_begin_ = 0;
    ahead_end_ = n - std::min(n, rest.size());
  }
  return true;
}

Result<bool> Session::pump_in() {
  moved_in_ = 0;
  bool delivered = false;
  while (!stalled_ && moved_in_ < limits::kFairShareBytes) {
    if (parked()) break;
    if (reading_ == Reading::kHeader) {
      if (filled_ == 0 && ahead_begin_ == ahead_end_ && !link_->readable()) break;
      ASSIGN(const bool whole, fill(in_header_));
      if (!whole) break;
      TRY(on_header());
    }
    if (reading_ == Reading::kHead) {
      ASSIGN(const bool whole, fill({reinterpret_cast<std::byte*>(head_.data()), head_.size()}));
      if (!whole) break;
      // Who was given a message may be about to post the receive for the next: then its body need not be kept for it.
      if (delivered && !mailbox_.expects(header_)) break;
      TRY(on_head());
      if (stalled_) break;
    }
    if (reading_ == Reading::kBody) {
      ASSIGN(const bool whole, fill(inbound_.into));
      if (!whole) break;
      body_open_ = false;
      ++counters_.messages_received;
      mailbox_.finish(inbound_);
      delivered = true;
      next_frame();
    }
  }
  counters_.bytes_received += moved_in_;
  return moved_in_ > 0;
}

void Session::next_frame() {
  reading_ = Reading::kHeader;
  filled_ = 0;
}

Status Session::on_header() {
  ASSIGN(header_, decode_frame(in_header_));
  if (header_.sequence != in_sequence_) {
    return error(Code::kCorrupt, "frame {} where frame {} should be: repeated or lost", header_.sequence, in_sequence_);
  }
  ++in_sequence_;
  if ((header_.kind == FrameKind::kHello) == introduced_) {
    return Status(Code::kCorrupt, introduced_ ? "a second introduction" : "a frame before the introduction");
  }
  if (introduced_ && (header_.from != peer_ || header_.incarnation != peer_incarnation_)) {
    return error(Code::kCorrupt, "a frame in the name of node {} from node {}", header_.from, peer_);
  }
  if (!introduced_) TRY(check_hello());
  head_.resize(header_.head_bytes);
  reading_ = Reading::kHead;
  filled_ = 0;
  return {};
}

Status Session::on_head() {
  TRY(check_head(header_, bytes_of(head_)));
  if (header_.kind == FrameKind::kHello) return on_hello();
  if (!mailbox_.begin(header_, head_, inbound_)) {
    stalled_ = true;
    return {};
  }
  body_open_ = true;
  reading_ = Reading::kBody;
  filled_ = 0;
  return {};
}

// From the header alone: a stranger is given no memory for what it claims to send.
Status Session::check_hello() const {
  if (header_.head_bytes != identity_.job.size()) return Status(Code::kInvalid, "a connection from another job");
  if (header_.body_bytes != 0) return Status(Code::kCorrupt, "an introduction with a body");
  if (!expected_) return {};
  if (header_.from != *expected_) {
    return error(Code::kInvalid, "dialled node {}, but node {} answered", *expected_, header_.from);
  }
  if (header_.id != connection_) {
    return error(Code::kInvalid, "an answer to connection {}, this is {}", header_.id, connection_);
  }
  return {};
}

Status Session::on_hello() {
  if (head_ != identity_.job) return Status(Code::kInvalid, "a connection from another job");
  introduced_ = true;
  peer_ = header_.from;
  peer_incarnation_ = header_.incarnation;
  connection_ = header_.id;
  next_frame();
  return {};
}

void Session::close(const Status& why) {
  if (body_open_) mailbox_.abandon(inbound_, why);
  body_open_ = false;
  current_ = nullptr;
  for (SendQueue* queue : {&urgent_, &queue_}) {
    while (SendOp* op = queue->pop_front()) op->finish(why.within(op->deadline().what));
  }
}

}  // namespace talweg
