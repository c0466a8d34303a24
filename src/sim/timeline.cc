#include "sim/timeline.h"

#include <algorithm>

#include "base/check.h"

namespace talweg {
namespace {

struct Later {
  bool operator()(const Event& a, const Event& b) const { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }
};

}  // namespace

void Timeline::schedule(Time at, EventKind kind, void* subject, uint32_t generation) {
  events_.push_back({std::max(at, now_), sequence_++, subject, generation, kind});
  std::push_heap(events_.begin(), events_.end(), Later());
}

Event Timeline::take_event() {
  CHECK(has_event());
  std::pop_heap(events_.begin(), events_.end(), Later());
  const Event event = events_.back();
  events_.pop_back();
  now_ = event.at;
  return event;
}

Ready Timeline::take_ready() {
  CHECK(has_ready());
  if (ready_.size() > 1) std::swap(ready_[scheduler_.below(ready_.size())], ready_.back());
  const Ready chosen = ready_.back();
  ready_.pop_back();
  return chosen;
}

void Timeline::forget(const SimNode& node) {
  std::erase_if(ready_, [&node](const Ready& ready) { return ready.node == &node; });
}

void Timeline::trace(EventKind kind, Peer node, Peer peer, uint64_t tag, uint64_t bytes, uint32_t crc) {
  hash_ = mix64(hash_ ^ static_cast<uint64_t>(now_.time_since_epoch().count()));
  hash_ = mix64(hash_ ^ (uint64_t{node} << 32 | peer));
  hash_ = mix64(hash_ ^ tag);
  hash_ = mix64(hash_ ^ (bytes << 8 | static_cast<uint64_t>(kind)));
  hash_ = mix64(hash_ ^ crc);
  ++traced_;
}

}  // namespace talweg
