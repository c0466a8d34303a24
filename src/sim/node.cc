#include "sim/node.h"

#include <algorithm>
#include <cstring>

#include "sim/network.h"

namespace talweg {

SimIo::SimIo(SimNode& node, Surroundings& surroundings, Rng rng, Duration clock_offset)
    : Io(node.id, node.incarnation, rng),
      node_(node),
      surroundings_(surroundings),
      clock_offset_(clock_offset),
      stragglers_(stream(surroundings.config.seed, Purpose::kStragglers, node.id, node.incarnation)),
      compute_free_(surroundings.timeline.now()) {}

SimIo::~SimIo() { drop_housekeeping(); }

bool SimIo::deliver(Message& message) {
  Incarnation& met = met_[message.header.from];
  if (met != 0 && met < message.header.incarnation) mailbox_.peer_restarted(message.header.from);
  met = message.header.incarnation;
  Inbound inbound;
  if (!mailbox_.begin(message.header, message.head, inbound)) return false;
  if (!message.body.empty()) std::memcpy(inbound.into.data(), message.body.data(), message.body.size());
  ++counters_.messages_received;
  counters_.bytes_received += message.wire_bytes;
  mailbox_.finish(inbound);
  return true;
}

void SimIo::count_sent(const Message& message) {
  ++counters_.messages_sent;
  counters_.bytes_sent += message.wire_bytes;
}

void SimIo::start_send(SendOp& op) { surroundings_.network.send(node_, op); }
void SimIo::withdraw(SendOp& op) { surroundings_.network.withdraw(node_, op); }

void SimIo::inbox_has_room() {
  if (node_.blocked_messages == 0 || node_.room_event_pending) return;
  node_.room_event_pending = true;
  surroundings_.timeline.schedule(surroundings_.timeline.now(), EventKind::kInboxRoom, &node_, generation());
}

void SimIo::wake_at(Time when) {
  surroundings_.timeline.schedule(when - clock_offset_, EventKind::kWake, &node_, generation());
}

void SimIo::on_wake() {
  if (now() >= earliest_deadline()) expire();
}

void SimIo::start_compute(ComputeOp& op) {
  op.work();
  const Duration takes = duration_of(op.cost);
  node_.compute_busy += takes;
  compute_free_ = std::max(compute_free_, surroundings_.timeline.now()) + takes;
  computing_.emplace_back().push_back(op);
  surroundings_.timeline.schedule(compute_free_, EventKind::kComputed, &node_, generation());
}

void SimIo::on_computed() {
  CHECK(!computing_.empty());
  ComputeOp* op = computing_.front().pop_front();
  computing_.pop_front();
  if (op != nullptr) op->finish();
}

Duration SimIo::duration_of(const Cost& cost) {
  const SimCompute& compute = surroundings_.config.compute;
  double took_s = std::max(cost.flops / (compute.gflops * 1e9), cost.bytes / (compute.memory_gbytes_per_s * 1e9));
  if (std::ranges::find(compute.slow_nodes, self_) != compute.slow_nodes.end()) took_s *= compute.slow_factor;
  const Duration since_start = surroundings_.timeline.now().time_since_epoch();
  for (const SlowFault& slow : surroundings_.faults.slow) {
    if (slow.node == self_ && since_start >= slow.at && since_start < slow.at + slow.lasts) took_s *= slow.factor;
  }
  if (compute.straggler_sigma > 0) took_s *= stragglers_.lognormal(compute.straggler_sigma);
  return from_seconds(took_s);
}

}  // namespace talweg
