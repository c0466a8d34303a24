// Every bound on a queue, buffer, message or retry, in one place. Bounds that a user may move are settings of the job
// file and start from these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace talweg::limits {

// Frames.
constexpr uint32_t kMaxHeadBytes = 1u << 20;
constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 30;

// A node's inbox. Messages that no receive was posted for wait here; past the bound their connection is read no
// further.
constexpr size_t kUnexpectedBytes = size_t{64} << 20;
// Requests that wait to be accepted, per service; past the bound the caller is answered "overloaded".
constexpr size_t kQueuedRequests = 4096;

// Bytes in one shared-memory ring (one direction of one pair of nodes). Well beyond a core's second-level cache: what
// the writer is ahead has then moved to the shared cache, from where another core reads it more than twice as fast.
constexpr size_t kRingBytes = size_t{4} << 20;
// What one read takes beyond the posted buffer: small frames then need one system call for many.
constexpr size_t kReadAheadBytes = size_t{64} << 10;
// Bytes moved for one connection before the loop looks at the others.
constexpr size_t kFairShareBytes = size_t{4} << 20;

// A connection must introduce itself within this time.
constexpr Duration kHelloTimeout = seconds(5);
// Pause before a lost or refused connection is tried again, doubling up to the maximum.
constexpr Duration kRetryFirst = milliseconds(2);
constexpr Duration kRetryMax = milliseconds(250);

// Work whose estimate is below this runs on the node's own thread: a handover to the pool costs more than it saves.
constexpr double kInlineComputeSeconds = 0.005;

}  // namespace talweg::limits
