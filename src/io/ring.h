// Ring: a byte stream from one writer to one reader through memory both see. Each side keeps its own position to itself
// and publishes it in the ring; what the other side published is checked before use, as it may be another process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/limits.h"
#include "io/fence.h"

namespace talweg {

// Apart by two cache lines: processors fetch lines in pairs, and each side writes its own.
struct Ring {
  alignas(128) std::atomic<uint64_t> written{0};
  alignas(128) std::atomic<uint64_t> read{0};
  alignas(128) std::atomic<uint32_t> writer_waits{0};
  std::atomic<uint32_t> closed{0};
  alignas(128) std::byte data[limits::kRingBytes];
};
static_assert((limits::kRingBytes & (limits::kRingBytes - 1)) == 0);

// What is published at once: large enough to cost little, small enough that both sides copy at the same time.
constexpr size_t kRingPieceBytes = size_t{32} << 10;

class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(ring) {}

  // How many bytes of `from` went in; none when the other side published nonsense. The reader sees whole pieces at
  // once, and what is left of the last one after `publish`.
  std::optional<size_t> write(Bytes from) {
    size_t done = 0;
    while (done < from.size()) {
      const auto room = free_bytes(from.size() - done);
      if (!room) return std::nullopt;
      if (*room == 0) break;
      const size_t n = std::min({*room, from.size() - done, kRingPieceBytes});
      copy_in(from.subspan(done, n));
      written_ += n;
      done += n;
      if (written_ - published_ >= kRingPieceBytes) publish();
    }
    return done;
  }
  void publish() {
    published_ = written_;
    ring_.written.store(written_, std::memory_order_release);
  }
  // A nonsensical position counts as room, so that a write comes to see it.
  bool has_room() const { return written_ - ring_.read.load(std::memory_order_acquire) != limits::kRingBytes; }
  // Asks the reader to ring when there is room again. Look at has_room() after this.
  void ask_for_room() {
    ring_.writer_waits.store(1, std::memory_order_relaxed);
    full_fence();
  }

 private:
  std::optional<size_t> free_bytes(size_t wanted) {
    size_t used = written_ - read_;
    if (limits::kRingBytes - used < wanted) {
      read_ = ring_.read.load(std::memory_order_acquire);
      used = written_ - read_;
      if (used > limits::kRingBytes) return std::nullopt;
    }
    return limits::kRingBytes - used;
  }
  void copy_in(Bytes from) {
    const size_t at = written_ & (limits::kRingBytes - 1);
    const size_t first = std::min(from.size(), limits::kRingBytes - at);
    std::memcpy(ring_.data + at, from.data(), first);
    if (first < from.size()) std::memcpy(ring_.data, from.data() + first, from.size() - first);
  }

  Ring& ring_;
  uint64_t written_ = 0, published_ = 0;
  uint64_t read_ = 0;  // as last seen
};

class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(ring) {}

  bool empty() const { return ring_.written.load(std::memory_order_acquire) == read_; }

  std::optional<size_t> read(MutableBytes into) {
    size_t done = 0;
    fullest_ = 0;
    while (done < into.size()) {
      const uint64_t ready = ring_.written.load(std::memory_order_acquire) - read_;
      if (ready > limits::kRingBytes) return std::nullopt;
      if (ready == 0) break;
      fullest_ = std::max(fullest_, ready);
      const size_t n = std::min({static_cast<size_t>(ready), into.size() - done, kRingPieceBytes});
      copy_out(into.subspan(done, n));
      read_ += n;
      ring_.read.store(read_, std::memory_order_release);
      done += n;
    }
    return done;
  }
  // Whether the writer asked for room and there is enough of it to be worth waking it. It asks only when the ring is
  // full, so the read that brings the ring below its half finds it above: no other has to look.
  bool writer_wants_room() {
    if (fullest_ <= limits::kRingBytes / 2) return false;
    full_fence();
    if (ring_.writer_waits.load(std::memory_order_relaxed) == 0) return false;
    if (ring_.written.load(std::memory_order_relaxed) - read_ > limits::kRingBytes / 2) return false;
    return ring_.writer_waits.exchange(0) != 0;
  }

 private:
  void copy_out(MutableBytes into) {
    const size_t at = read_ & (limits::kRingBytes - 1);
    const size_t first = std::min(into.size(), limits::kRingBytes - at);
    std::memcpy(into.data(), ring_.data + at, first);
    if (first < into.size()) std::memcpy(into.data() + first, ring_.data, into.size() - first);
  }

  Ring& ring_;
  uint64_t read_ = 0;
  uint64_t fullest_ = 0;  // during the last read
};

}  // namespace talweg
