#include "sim/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/crc32c.h"
#include "base/limits.h"
#include "sim/node.h"

namespace talweg {
namespace {

using State = Connection::State;

uint32_t side_of(const Connection& connection, const SimNode& node) { return connection.ends[0] == &node ? 0 : 1; }

uint64_t pair_of(Peer a, Peer b) { return uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

Status connection_lost(const SimNode& peer) { return error(Code::kUnavailable, "connection to node {} lost", peer.id); }

}  // namespace

Network::Network(const SimConfig& config, Timeline& timeline, Rng faults)
    : config_(config), timeline_(timeline), faults_(faults) {}
Network::~Network() = default;

void Network::add(SimNode& node) {
  auto& host = hosts_[node.id / static_cast<uint64_t>(config_.nodes_per_host)];
  if (host == nullptr) host = std::make_unique<Host>();
  node.host = host.get();
  nodes_[node.id] = &node;
}

SimNode* Network::find(Peer id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second;
}

Connection& Network::connect(SimNode& from, SimNode& to) {
  Connection*& known = by_pair_[pair_of(from.id, to.id)];
  if (known != nullptr) return *known;
  known = connections_.emplace_back(std::make_unique<Connection>()).get();
  known->ends = {&from, &to};
  known->same_host = from.host == to.host;
  // The first connection costs nothing, so that the time of a pattern does not depend on who has met whom.
  known->state = to.running() ? State::kUp : State::kDown;
  from.connections.push_back(known);
  if (&from != &to) to.connections.push_back(known);
  return *known;
}

Message& Network::make_message(Connection& connection, uint32_t side) {
  if (unused_.empty()) unused_.push_back(messages_.emplace_back(std::make_unique<Message>()).get());
  Message& message = *unused_.back();
  unused_.pop_back();
  message.connection = &connection;
  message.side = side;
  message.header = FrameHeader{.incarnation = connection.ends[side]->incarnation, .from = connection.ends[side]->id};
  message.wire_bytes = kFrameHeaderBytes;
  message.crc = 0;
  message.is_goodbye = false;
  return message;
}

void Network::recycle(Message& message) {
  message.unlink();
  message.sender.clear();
  if (std::exchange(message.blocked, false)) --message.connection->ends[1 - message.side]->blocked_messages;
  message.head.clear();
  message.body = Buffer();
  unused_.push_back(&message);
}

void Network::recycle_all(MessageQueue& queue) {
  while (Message* message = queue.front()) recycle(*message);
}

Duration Network::latency(const Connection& connection) const {
  return connection.same_host ? config_.network.same_host_latency : config_.network.latency;
}

Duration Network::transfer_time(const Message& message) const {
  const SimNetwork& network = config_.network;
  const double gbps = message.connection->same_host ? network.same_host_bandwidth_gbps : network.bandwidth_gbps;
  return Duration(std::llround(static_cast<double>(message.wire_bytes) * 8.0 / gbps));
}

Pipe& Network::pipe(Connection& connection, uint32_t side) {
  return connection.same_host ? connection.directions[side].local : connection.ends[side]->host->egress;
}

bool Network::cut(const Connection& connection) const {
  return std::ranges::any_of(partitions_, [&connection](const PartitionFault* partition) {
    const auto inside = [partition](const SimNode* node) {
      return std::ranges::find(partition->nodes, node->id) != partition->nodes.end();
    };
    return inside(connection.ends[0]) != inside(connection.ends[1]);
  });
}

bool Network::gate_open(const Connection& connection, uint32_t side) const {
  return connection.state == State::kUp && connection.directions[side].blocked.empty() && !cut(connection);
}

void Network::trace(EventKind kind, const Message& message) {
  const auto& ends = message.connection->ends;
  timeline_.trace(kind, ends[message.side]->id, ends[1 - message.side]->id, message.header.tag, message.wire_bytes,
                  message.crc);
}

// ---- the way of a message ----

void Network::send(SimNode& from, SendOp& op) {
  SimNode* to = find(op.message.to);
  if (to == nullptr) return op.finish(error(Code::kNotFound, "there is no node {}", op.message.to));
  const size_t body_bytes = op.message.body_bytes();
  if (op.message.head.size() > limits::kMaxHeadBytes || body_bytes > limits::kMaxBodyBytes) {
    return op.finish(error(Code::kInvalid, "a message of {} + {} bytes to node {}, at most {} + {} are allowed",
                           op.message.head.size(), body_bytes, to->id, limits::kMaxHeadBytes, limits::kMaxBodyBytes));
  }
  Connection& connection = connect(from, *to);
  Message& message = make_message(connection, side_of(connection, from));
  message.header.kind = op.message.is_request ? FrameKind::kRequest : FrameKind::kMessage;
  message.header.code = op.message.code;
  message.header.tag = op.message.tag;
  message.header.id = op.message.id;
  message.header.head_bytes = static_cast<uint32_t>(op.message.head.size());
  message.header.body_bytes = body_bytes;
  message.head = op.message.head;
  message.crc = crc32c(bytes_of(message.head));
  if (body_bytes > 0) message.body = Buffer(body_bytes);
  size_t written = 0;
  for (const Bytes part : op.message.body) {
    if (!part.empty()) std::memcpy(message.body.data() + written, part.data(), part.size());
    written += part.size();
  }
  message.crc = crc32c(message.body.bytes(), message.crc);
  message.wire_bytes += message.head.size() + body_bytes;
  message.sender.push_back(op);
  submit(message);
}

void Network::submit(Message& message) {
  Connection& connection = *message.connection;
  const uint32_t side = message.side;
  if (gate_open(connection, side)) return enqueue(message);
  connection.directions[side].waiting.push_back(message);
  // Who has not heard of the peer's crash yet still writes to the lost connection.
  const bool believes_up = connection.directions[1 - side].crash_notice;
  if (connection.state == State::kDown && !believes_up) dial(connection, side);
}

void Network::open_gate(Connection& connection, uint32_t side) {
  if (!gate_open(connection, side)) return;
  while (Message* message = connection.directions[side].waiting.pop_front()) enqueue(*message);
}

void Network::enqueue(Message& message) {
  message.epoch = message.connection->epoch;
  Pipe& way = pipe(*message.connection, message.side);
  way.queue.push_back(message);
  if (way.sending == nullptr) start_next(way);
}

void Network::start_next(Pipe& way) {
  Message* next = way.queue.pop_front();
  way.sending = next;
  if (next == nullptr) return;
  const Time sent = timeline_.now() + transfer_time(*next);
  timeline_.schedule(sent, EventKind::kSent, next);
  if (next->connection->same_host) {
    timeline_.schedule(sent + latency(*next->connection), EventKind::kArrived, next);
  } else {
    timeline_.schedule(timeline_.now() + latency(*next->connection), EventKind::kFirstByte, next);
  }
}

void Network::on_sent(Message& message) {
  Pipe& way = pipe(*message.connection, message.side);
  CHECK(way.sending == &message);
  SimNode& from = *message.connection->ends[message.side];
  if (SendOp* op = message.sender.pop_front()) {
    from.io->count_sent(message);
    op->finish({});
  }
  start_next(way);
}

void Network::on_first_byte(Message& message) {
  // A lost message ends at kArrived like any other, which is never before its kSent.
  const bool lost = is_stale(message);
  Time& ingress_free = message.connection->ends[1 - message.side]->host->ingress_free;
  const Time arrived = (lost ? timeline_.now() : std::max(timeline_.now(), ingress_free)) + transfer_time(message);
  if (!lost) ingress_free = arrived;
  timeline_.schedule(arrived, EventKind::kArrived, &message);
}

void Network::on_arrived(Message& message) {
  if (is_stale(message)) return recycle(message);
  Connection& connection = *message.connection;
  Direction& direction = connection.directions[message.side];
  if (!direction.held.empty() || cut(connection)) return direction.held.push_back(message);
  SimNode& to = *connection.ends[1 - message.side];
  if (!to.running()) return recycle(message);
  if (direction.blocked.empty() && hand_over(message)) return;
  message.blocked = true;
  ++to.blocked_messages;
  direction.blocked.push_back(message);
}

bool Network::hand_over(Message& message) {
  if (message.is_goodbye) {
    on_goodbye(*message.connection, message.side);
  } else if (!message.connection->ends[1 - message.side]->io->deliver(message)) {
    return false;
  }
  recycle(message);
  return true;
}

void Network::on_inbox_room(SimNode& node) {
  for (Connection* connection : node.connections) {
    const uint32_t side = connection->ends[0] == connection->ends[1] ? 0 : 1 - side_of(*connection, node);
    MessageQueue& blocked = connection->directions[side].blocked;
    while (!blocked.empty() && hand_over(*blocked.front())) {
    }
    open_gate(*connection, side);
  }
}

// A withdrawn send that is on the wire has gone in part: nothing sensible can follow it on its connection. The loss is
// an event of its own, because withdrawals come from inside Io's walks over its waits.
void Network::withdraw(SimNode& from, SendOp& op) {
  Message* message = from.running() ? find_unsent(from, op) : nullptr;
  static_cast<ListHook<SendQueueTag>&>(op).unlink();
  // What a process wrote before its end, its kernel still sends.
  if (message == nullptr) return;
  if (message->linked()) return recycle(*message);
  timeline_.schedule(timeline_.now(), EventKind::kAbort, message->connection, message->epoch);
}

Message* Network::find_unsent(SimNode& from, const SendOp& op) {
  Connection& connection = connect(from, *find(op.message.to));
  const uint32_t side = side_of(connection, from);
  Pipe& way = pipe(connection, side);
  if (way.sending != nullptr && way.sending->sender.front() == &op) return way.sending;
  for (MessageQueue* queue : {&connection.directions[side].waiting, &way.queue}) {
    for (Message* message = queue->front(); message != nullptr; message = queue->next(*message)) {
      if (message->sender.front() == &op) return message;
    }
  }
  return nullptr;
}

// ---- connections ----

void Network::on_event(const Event& event) {
  switch (event.kind) {
    case EventKind::kSent:
    case EventKind::kFirstByte:
    case EventKind::kArrived: {
      Message& message = event.as<Message>();
      trace(event.kind, message);
      if (event.kind == EventKind::kSent) return on_sent(message);
      if (event.kind == EventKind::kFirstByte) return on_first_byte(message);
      return on_arrived(message);
    }
    default: break;
  }
  Connection& connection = event.as<Connection>();
  timeline_.trace(event.kind, connection.ends[0]->id, connection.ends[1]->id);
  if (event.kind == EventKind::kReleased) return on_released(connection);
  if (event.generation != connection.epoch) return;
  if (event.kind == EventKind::kConnect) return on_connect(connection);
  if (event.kind == EventKind::kRefused) return on_refused(connection);
  CHECK(event.kind == EventKind::kAbort);
  lose(connection);
}

void Network::dial(Connection& connection, uint32_t side) {
  connection.state = State::kConnecting;
  connection.dialler = side;
  timeline_.schedule(timeline_.now() + latency(connection), EventKind::kConnect, &connection, connection.epoch);
}

void Network::on_connect(Connection& connection) {
  if (cut(connection)) {
    connection.dial_held = true;
    return;
  }
  if (!connection.ends[1 - connection.dialler]->running()) {
    timeline_.schedule(timeline_.now() + latency(connection), EventKind::kRefused, &connection, connection.epoch);
    return;
  }
  connection.state = State::kUp;
  for (const uint32_t side : {0u, 1u}) open_gate(connection, side);
}

void Network::on_refused(Connection& connection) {
  const uint32_t dialler = connection.dialler, other = 1 - dialler;
  connection.state = State::kDown;
  fail_sends(connection, dialler, error(Code::kUnavailable, "node {} does not answer", connection.ends[other]->id));
  // It may have been restarted while the answer was on its way.
  if (!connection.directions[other].waiting.empty()) dial(connection, other);
}

void Network::on_released(Connection& connection) {
  if (cut(connection)) return;
  for (Direction& direction : connection.directions) {
    MessageQueue arrived;
    arrived.take(direction.held);
    while (Message* message = arrived.pop_front()) on_arrived(*message);
  }
}

void Network::on_goodbye(Connection& connection, uint32_t side) {
  const uint32_t other = 1 - side;
  connection.directions[side].crash_notice = false;
  if (connection.state == State::kUp) {  // after a crash it is down already
    connection.state = State::kDown;
    ++connection.epoch;
  }
  recycle_all(connection.directions[other].held);
  const Status why = connection_lost(*connection.ends[side]);
  fail_sends(connection, other, why);
  connection.ends[other]->io->lost(connection.ends[side]->id, why);
}

void Network::fail_sends(Connection& connection, uint32_t side, const Status& why) {
  MessageQueue& waiting = connection.directions[side].waiting;
  while (Message* message = waiting.front()) fail_send(*message, why);
  const auto ours = [&](const Message& message) { return message.connection == &connection && message.side == side; };
  Pipe& way = pipe(connection, side);
  for (Message* message = way.queue.front(); message != nullptr;) {
    Message* following = way.queue.next(*message);
    if (ours(*message)) fail_send(*message, why);
    message = following;
  }
  if (way.sending == nullptr || !ours(*way.sending)) return;
  if (SendOp* op = way.sending->sender.pop_front()) op->finish(why);
}

void Network::fail_send(Message& message, const Status& why) {
  SendOp* op = message.sender.pop_front();
  recycle(message);
  if (op != nullptr) op->finish(why);
}

void Network::lose(Connection& connection) {
  if (connection.state != State::kUp) return;
  connection.state = State::kDown;
  ++connection.epoch;
  for (const uint32_t side : {0u, 1u}) {
    recycle_all(connection.directions[side].held);
    recycle_all(connection.directions[side].blocked);
    SimNode& peer = *connection.ends[1 - side];
    const Status why = connection_lost(peer);
    fail_sends(connection, side, why);
    if (connection.ends[side]->running()) connection.ends[side]->io->lost(peer.id, why);
  }
}

// ---- faults ----

void Network::on_crash(SimNode& node) {
  for (Connection* connection : node.connections) {
    const uint32_t side = side_of(*connection, node);
    Direction& from_node = connection->directions[side];
    Direction& to_node = connection->directions[1 - side];
    SimNode& peer = *connection->ends[1 - side];
    const bool peer_must_hear = connection->state != State::kDown || from_node.crash_notice || !to_node.waiting.empty();
    connection->state = State::kDown;
    ++connection->epoch;
    connection->dial_held = false;
    to_node.crash_notice = false;
    for (Direction& direction : connection->directions) {
      recycle_all(direction.held);
      recycle_all(direction.blocked);
    }
    fail_sends(*connection, side, connection_lost(peer));
    if (!peer_must_hear || !peer.running()) continue;
    from_node.crash_notice = true;
    Message& goodbye = make_message(*connection, side);
    goodbye.is_goodbye = true;
    goodbye.epoch = connection->epoch;
    timeline_.schedule(timeline_.now() + latency(*connection), EventKind::kArrived, &goodbye);
  }
}

void Network::on_end(SimNode& node) {
  for (Connection* connection : node.connections) {
    const uint32_t side = side_of(*connection, node);
    if (connection->state == State::kDown || !connection->ends[1 - side]->running()) continue;
    // Behind all that was sent before.
    Message& goodbye = make_message(*connection, side);
    goodbye.is_goodbye = true;
    submit(goodbye);
  }
}

void Network::drop(Peer a, Peer b) {
  const auto found = by_pair_.find(pair_of(a, b));
  if (found != by_pair_.end()) lose(*found->second);
}

void Network::drop_one_at_random() {
  std::vector<Connection*> up;
  for (auto& connection : connections_) {
    if (connection->state == State::kUp && connection->ends[0] != connection->ends[1]) up.push_back(connection.get());
  }
  if (!up.empty()) lose(*up[faults_.below(up.size())]);
}

void Network::begin_partition(const PartitionFault& partition) { partitions_.push_back(&partition); }

void Network::heal(const PartitionFault& partition) {
  std::erase(partitions_, &partition);
  for (auto& connection : connections_) {
    if (cut(*connection)) continue;
    const bool any_held =
        std::ranges::any_of(connection->directions, [](const Direction& d) { return !d.held.empty(); });
    const Time soon = timeline_.now() + latency(*connection);
    if (any_held) timeline_.schedule(soon, EventKind::kReleased, connection.get());
    // After what was held: a restarted node's connection must not come before the news of its crash.
    if (std::exchange(connection->dial_held, false)) {
      timeline_.schedule(soon, EventKind::kConnect, connection.get(), connection->epoch);
    }
    for (const uint32_t side : {0u, 1u}) open_gate(*connection, side);
  }
}

}  // namespace talweg
