#include "sim/world.h"

#include <algorithm>
#include <cmath>

#include "sim/network.h"

namespace talweg {
namespace {

constexpr size_t kReportedWaits = 16;  // per node, in the error of a stuck run

}  // namespace

World::World(SimConfig config, Faults faults)
    : config_(std::move(config)),
      faults_(std::move(faults)),
      timeline_(stream(config_.seed, Purpose::kScheduler)),
      fault_rng_(stream(config_.seed, Purpose::kFaults)),
      network_(std::make_unique<Network>(config_, timeline_, stream(config_.seed, Purpose::kFaults, 1))),
      surroundings_{config_, faults_, timeline_, *network_} {}

World::~World() {
  for (auto& node : nodes_) {
    if (node->running()) end(*node, SimNode::State::kCrashed);
  }
}

void World::add_node(Peer id, Main main) {
  CHECK(network_->find(id) == nullptr);
  SimNode& node = *nodes_.emplace_back(std::make_unique<SimNode>());
  node.id = id;
  node.main = std::move(main);
  network_->add(node);
}

Time World::now() const { return timeline_.now(); }
uint64_t World::trace_hash() const { return timeline_.trace_hash(); }
int64_t World::events() const { return timeline_.traced(); }

Status World::run() {
  TRY(check_faults());
  schedule_faults();
  for (auto& node : nodes_) start(*node);
  unfinished_ = nodes_.size();
  const Time last{config_.limits.virtual_time};
  while (unfinished_ > 0) {
    if (timeline_.traced() > config_.limits.events) return stuck(fmt::format("{} events", config_.limits.events));
    // All that happens now comes before any coroutine sees a part of it: which of them runs first is then up to the
    // seed.
    if (timeline_.has_event() && timeline_.next_time() == timeline_.now()) {
      on_event(timeline_.take_event());
    } else if (timeline_.has_ready()) {
      run_ready();
    } else if (!timeline_.has_event()) {
      return stuck("nothing can happen any more");
    } else if (timeline_.next_time() > last) {
      return stuck("the limit of virtual time");
    } else {
      on_event(timeline_.take_event());
    }
  }
  return {};
}

void World::run_ready() {
  const Ready ready = timeline_.take_ready();
  SimNode& node = *ready.node;
  timeline_.trace(EventKind::kResume, node.id);
  ready.handle.resume();
  if (!node.tasks->empty()) return;
  end(node, SimNode::State::kEnded);
  network_->on_end(node);
  --unfinished_;
}

void World::start(SimNode& node) {
  ++node.incarnation;
  node.state = SimNode::State::kRunning;
  const auto longest = static_cast<uint64_t>(config_.clock_offset.count());
  Rng clock = stream(config_.seed, Purpose::kClock, node.id, node.incarnation);
  const Duration offset(static_cast<Duration::rep>(clock.below(longest + 1)));
  const Rng rng = stream(config_.seed, Purpose::kNode, node.id, node.incarnation);
  node.io = std::make_unique<SimIo>(node, surroundings_, rng, offset);
  node.tasks = std::make_unique<TaskSet>(*node.io);
  node.tasks->spawn(node.main(*node.io));
}

void World::end(SimNode& node, SimNode::State state) {
  node.state = state;
  node.past = stats(node.id);
  node.tasks.reset();
  node.io.reset();
  node.room_event_pending = false;
  // Last: destructors in the tasks may have made others ready.
  timeline_.forget(node);
}

NodeStats World::stats(Peer id) const {
  const SimNode* node = network_->find(id);
  CHECK(node != nullptr);
  NodeStats sum = node->past;
  sum.compute_busy = node->compute_busy;
  sum.incarnations = node->incarnation;
  if (node->io == nullptr) return sum;
  const IoCounters& io = node->io->counters();
  sum.io.messages_sent += io.messages_sent;
  sum.io.messages_received += io.messages_received;
  sum.io.bytes_sent += io.bytes_sent;
  sum.io.bytes_received += io.bytes_received;
  sum.io.bad_frames += io.bad_frames;
  sum.io.overloaded += io.overloaded;
  return sum;
}

// ---- events ----

void World::on_event(const Event& event) {
  switch (event.kind) {
    case EventKind::kWake:
    case EventKind::kComputed:
    case EventKind::kInboxRoom: return on_node_event(event);
    case EventKind::kCrash:
    case EventKind::kRestart:
    case EventKind::kDrop:
    case EventKind::kPartition:
    case EventKind::kHeal:
    case EventKind::kRandomDrop: return on_fault(event);
    default: return network_->on_event(event);
  }
}

void World::on_node_event(const Event& event) {
  SimNode& node = event.as<SimNode>();
  if (!node.running() || event.generation != static_cast<uint32_t>(node.incarnation)) return;
  timeline_.trace(event.kind, node.id);
  if (event.kind == EventKind::kWake) return node.io->on_wake();
  if (event.kind == EventKind::kComputed) return node.io->on_computed();
  node.room_event_pending = false;
  network_->on_inbox_room(node);
}

void World::on_fault(const Event& event) {
  timeline_.trace(event.kind, 0);
  switch (event.kind) {
    case EventKind::kCrash: {
      const CrashFault& crash = event.as<CrashFault>();
      SimNode& node = *network_->find(crash.node);
      if (!node.running()) return;
      end(node, SimNode::State::kCrashed);
      network_->on_crash(node);
      if (!crash.restart_after.has_value())
        --unfinished_;
      else
        timeline_.schedule(timeline_.now() + *crash.restart_after, EventKind::kRestart, &node);
      return;
    }
    case EventKind::kRestart: return start(event.as<SimNode>());
    case EventKind::kDrop: return network_->drop(event.as<DropFault>().a, event.as<DropFault>().b);
    case EventKind::kPartition: return network_->begin_partition(event.as<PartitionFault>());
    case EventKind::kHeal: return network_->heal(event.as<PartitionFault>());
    default: network_->drop_one_at_random(); return schedule_random_drop();
  }
}

// ---- faults ----

Status World::check_faults() const {
  const auto check = [this](std::string_view kind, Peer id) -> Status {
    if (network_->find(id) != nullptr) return {};
    return error(Code::kInvalid, "faults.{}: there is no node {}", kind, id);
  };
  for (const CrashFault& crash : faults_.crash) TRY(check("crash", crash.node));
  for (const DropFault& drop : faults_.drop_connection) {
    TRY(check("drop_connection", drop.a));
    TRY(check("drop_connection", drop.b));
  }
  for (const PartitionFault& partition : faults_.partition) {
    for (const Peer id : partition.nodes) TRY(check("partition", id));
  }
  for (const SlowFault& slow : faults_.slow) TRY(check("slow", slow.node));
  return {};
}

void World::schedule_faults() {
  for (CrashFault& crash : faults_.crash) timeline_.schedule(Time(crash.at), EventKind::kCrash, &crash);
  for (DropFault& drop : faults_.drop_connection) timeline_.schedule(Time(drop.at), EventKind::kDrop, &drop);
  for (PartitionFault& partition : faults_.partition) {
    timeline_.schedule(Time(partition.at), EventKind::kPartition, &partition);
    timeline_.schedule(Time(partition.at + partition.lasts), EventKind::kHeal, &partition);
  }
  if (faults_.random_drops.per_second > 0) schedule_random_drop();
}

void World::schedule_random_drop() {
  const double pause_s = -std::log(1.0 - fault_rng_.uniform()) / faults_.random_drops.per_second;
  const Time at = timeline_.now() + from_seconds(pause_s);
  if (at <= Time(faults_.random_drops.until)) timeline_.schedule(at, EventKind::kRandomDrop, nullptr);
}

Status World::stuck(std::string why) const {
  std::string text = fmt::format("the run did not end: {}, at {:.6f} s (seed {})", why,
                                 to_seconds(timeline_.now().time_since_epoch()), config_.seed);
  for (const auto& node : nodes_) {
    if (!node->running()) continue;
    const std::vector<std::string> waits = node->io->waits(Duration(0));
    if (waits.empty()) text += fmt::format("\n  node {}: waits for nothing", node->id);
    for (size_t i = 0; i < std::min(waits.size(), kReportedWaits); ++i) {
      text += fmt::format("\n  node {}: {}", node->id, waits[i]);
    }
    if (waits.size() > kReportedWaits)
      text += fmt::format("\n  node {}: and {} more", node->id, waits.size() - kReportedWaits);
  }
  return Status(Code::kDeadline, std::move(text));
}

}  // namespace talweg
