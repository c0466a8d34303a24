// Timeline: the simulator's clock, its event queue, the coroutines that are ready to run, and the hash over all that
// has happened. Events happen in the order of (time, sequence); ready coroutines run in an order drawn from the seed,
// because no protocol may rely on a kinder one.
#pragma once

#include <coroutine>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "io/mailbox.h"

namespace talweg {

struct SimNode;

enum class EventKind : uint8_t {
  kResume,     // a ready coroutine ran
  kWake,       // a node's earliest deadline
  kComputed,   // the oldest piece of work of a node is done
  kInboxRoom,  // a node's mailbox may take what it refused
  kSent,       // the last byte of a message left
  kFirstByte,  // the first byte of a message came
  kArrived,    // the last byte did
  kConnect,    // the request for a connection came to the other end
  kRefused,    // the answer that nobody is there came back
  kReleased,   // what a partition held back comes through
  kAbort,      // a send was withdrawn half-way
  kCrash,
  kRestart,
  kDrop,
  kPartition,
  kHeal,
  kRandomDrop,
};

struct Event {
  Time at;
  uint64_t sequence;
  void* subject;
  uint32_t generation;  // of the subject: an event of a crashed node or a lost connection is void
  EventKind kind;

  template <class T>
  T& as() const {
    return *static_cast<T*>(subject);
  }
};

struct Ready {
  SimNode* node;
  std::coroutine_handle<> handle;
};

class Timeline {
 public:
  explicit Timeline(Rng scheduler) : scheduler_(scheduler) {}

  Time now() const { return now_; }
  void schedule(Time at, EventKind kind, void* subject, uint32_t generation = 0);
  bool has_event() const { return !events_.empty(); }
  Time next_time() const { return events_.front().at; }
  Event take_event();  // moves the clock

  void make_ready(SimNode& node, std::coroutine_handle<> handle) { ready_.push_back({&node, handle}); }
  bool has_ready() const { return !ready_.empty(); }
  Ready take_ready();
  void forget(const SimNode& node);  // its coroutines are gone

  void trace(EventKind kind, Peer node, Peer peer = 0, uint64_t tag = 0, uint64_t bytes = 0, uint32_t crc = 0);
  uint64_t trace_hash() const { return hash_; }
  int64_t traced() const { return traced_; }

 private:
  Time now_{};
  uint64_t sequence_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<Ready> ready_;
  Rng scheduler_;
  uint64_t hash_ = 0;
  int64_t traced_ = 0;
};

}  // namespace talweg
