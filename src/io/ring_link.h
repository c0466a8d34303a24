// RingLink: a link over two rings, one each way. The in-process and the shared-memory driver differ only in where the
// rings lie and how a peer's end is noticed.
#pragma once

#include "io/link.h"
#include "io/ring.h"

namespace talweg {

struct RingPair {
  Ring rings[2];
};

class RingLink : public Link {
 public:
  // `side` 0 writes ring 0 and reads ring 1; side 1 the other way. `memory` keeps the rings alive.
  RingLink(std::shared_ptr<RingPair> memory, int side, std::string name)
      : memory_(std::move(memory)),
        out_(memory_->rings[side]),
        in_(memory_->rings[1 - side]),
        writer_(out_),
        reader_(in_),
        name_(std::move(name)) {}
  ~RingLink() override {
    out_.closed.store(1, std::memory_order_release);
    in_.closed.store(1, std::memory_order_release);
    if (peer_bell_) peer_bell_->ring();
  }

  bool readable() const override { return !reader_.empty() || ended(); }
  bool writable() const override { return writer_.has_room() || ended(); }
  bool ended() const override { return peer_ended_ || in_.closed.load(std::memory_order_acquire) != 0; }
  Result<size_t> write(std::span<const Bytes> parts) override;
  Result<size_t> read(MutableBytes first, MutableBytes second) override;
  const std::string& name() const override { return name_; }
  int fd() const override { return -1; }
  void on_event(uint32_t) override {}

 protected:
  void set_peer_bell(std::shared_ptr<Bell> bell) {
    peer_bell_ = std::move(bell);
    peer_bell_->ring();
  }
  // A subclass learned that the peer is gone; what it wrote before is still read.
  void peer_ended() { peer_ended_ = true; }

 private:
  Status end_status() const { return error(Code::kUnavailable, "{} was closed by the other side", name_); }
  Status nonsense() const { return error(Code::kCorrupt, "{}: the ring's positions make no sense", name_); }

  std::shared_ptr<RingPair> memory_;
  Ring& out_;
  Ring& in_;
  RingWriter writer_;
  RingReader reader_;
  std::shared_ptr<Bell> peer_bell_;  // null until the other side has introduced itself
  bool peer_ended_ = false;
  std::string name_;
};

}  // namespace talweg
