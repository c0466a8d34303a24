// For tests: an Io without a network. Its clock moves when told, its sends wait in a list, and what arrives is handed
// to its mailbox by the test.
#pragma once

#include <deque>

#include "base/crc32c.h"
#include "io/frame.h"
#include "io/io.h"

namespace talweg {

// A whole frame; lengths and checksums are set here.
inline std::string frame_bytes(FrameHeader header, std::string_view head, std::string_view body) {
  header.head_bytes = static_cast<uint32_t>(head.size());
  header.head_crc = crc32c(bytes_of(head));
  header.body_bytes = body.size();
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode(header, bytes);
  return std::string(text_of(bytes)).append(head).append(body);
}

class TestIo final : public Io {
 public:
  explicit TestIo(Peer self = 0, Incarnation incarnation = 1) : Io(self, incarnation, Rng(1)) {}
  ~TestIo() override { drop_housekeeping(); }

  Time now() const override { return now_; }
  void learn(Peer, const std::string&) override {}
  std::string address() const override { return "test"; }
  void post(std::coroutine_handle<> ready) override { ready_.push_back(ready); }

  void advance(Duration d) {
    now_ += d;
    if (now_ >= earliest_deadline()) expire();
  }
  void run_ready() {
    while (!ready_.empty()) {
      const auto next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
  }
  Mailbox& mailbox() { return mailbox_; }
  IoCounters& mutable_counters() { return counters_; }

  static FrameHeader header(Peer from, Tag tag, size_t head_bytes, size_t body_bytes) {
    return {.tag = tag, .from = from, .head_bytes = static_cast<uint32_t>(head_bytes), .body_bytes = body_bytes};
  }
  // A whole message at once. False: the inbox is full.
  bool deliver(FrameHeader header, std::string head, std::string_view body) {
    Inbound inbound;
    header.head_bytes = static_cast<uint32_t>(head.size());
    header.body_bytes = body.size();
    if (!mailbox_.begin(header, head, inbound)) return false;
    if (!body.empty()) std::memcpy(inbound.into.data(), body.data(), body.size());
    mailbox_.finish(inbound);
    return true;
  }
  bool deliver(Peer from, Tag tag, std::string head, std::string_view body) {
    return deliver(header(from, tag, 0, 0), std::move(head), body);
  }

  IntrusiveList<SendOp, SendQueueTag> sends;
  std::function<void(SendOp&)> on_send, on_withdraw;
  int room_made = 0;

 private:
  void start_send(SendOp& op) override {
    if (on_send)
      on_send(op);
    else
      sends.push_back(op);
  }
  void start_compute(ComputeOp& op) override {
    op.work();
    op.finish();
  }
  void wake_at(Time) override {}
  void withdraw(SendOp& op) override {
    if (on_withdraw) on_withdraw(op);
    static_cast<ListHook<SendQueueTag>&>(op).unlink();
  }
  void inbox_has_room() override { ++room_made; }

  Time now_{};
  std::deque<std::coroutine_handle<>> ready_;
};

}  // namespace talweg
