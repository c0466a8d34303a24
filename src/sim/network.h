// The simulated network. A message is copied when it is sent, waits for its sender's host to put it on the wire, flies
// for one latency, waits for its receiver's host to take it off the wire, and is handed to the receiver's mailbox.
//
// A host has one network card: messages leave one after the other, and arrive one after the other, whole, in the order
// in which they were sent and their first bytes came. Nodes of one host have a pipe for each ordered pair instead. So
// messages of one sender to one receiver keep their order, and the time of simple patterns has a closed form
// (world_test).
//
// A connection joins each two nodes that ever talk. Losing it loses what is under way on it, fails its sends at both
// ends and tells both mailboxes; the next send makes it again, which takes one latency. A partition loses nothing: as
// TCP would, it holds messages until it heals. A full inbox holds its senders back the same way.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "io/frame.h"
#include "io/io.h"
#include "sim/config.h"
#include "sim/timeline.h"

namespace talweg {

struct Connection;
struct SimNode;

struct Message : ListHook<Message> {
  Connection* connection = nullptr;
  uint32_t side = 0;   // of the connection, the sender's
  uint32_t epoch = 0;  // of the connection, when it went to the wire
  FrameHeader header;
  std::string head;
  Buffer body;
  uint64_t wire_bytes = 0;
  uint32_t crc = 0;
  bool is_goodbye = false;  // carries nothing: the sender's process is gone
  bool blocked = false;     // waits for room in the receiver's inbox
  // The op that waits for this message to leave; none once it left or was withdrawn.
  IntrusiveList<SendOp, SendQueueTag> sender;
};
using MessageQueue = IntrusiveList<Message, Message>;

// Sends one message after the other.
struct Pipe {
  MessageQueue queue;
  Message* sending = nullptr;
};

struct Host {
  Pipe egress;
  Time ingress_free;
};

struct Direction {
  MessageQueue waiting;       // for the connection to be made, for a partition to heal, for room at the receiver
  MessageQueue held;          // arrived during a partition
  MessageQueue blocked;       // arrived at a full inbox
  Pipe local;                 // where both nodes are on one host
  bool crash_notice = false;  // the sender crashed and the receiver does not know yet
};

struct Connection {
  enum class State { kUp, kConnecting, kDown };

  std::array<SimNode*, 2> ends{};
  std::array<Direction, 2> directions;  // by the sender's side
  State state = State::kUp;
  uint32_t epoch = 0;  // grows whenever what is under way is lost
  uint32_t dialler = 0;
  bool dial_held = false;  // by a partition
  bool same_host = false;
};

class Network {
 public:
  Network(const SimConfig& config, Timeline& timeline, Rng faults);
  ~Network();

  void add(SimNode& node);
  SimNode* find(Peer id) const;

  void send(SimNode& from, SendOp& op);
  void withdraw(SimNode& from, SendOp& op);
  void on_event(const Event& event);
  void on_inbox_room(SimNode& node);

  // The process of `node` is gone already. A crash loses what is under way; an end in order lets it arrive.
  void on_crash(SimNode& node);
  void on_end(SimNode& node);

  void drop(Peer a, Peer b);
  void drop_one_at_random();
  void begin_partition(const PartitionFault& partition);
  void heal(const PartitionFault& partition);

 private:
  Connection& connect(SimNode& from, SimNode& to);
  Message& make_message(Connection& connection, uint32_t side);
  void recycle(Message& message);
  void recycle_all(MessageQueue& queue);

  Duration latency(const Connection& connection) const;
  Duration transfer_time(const Message& message) const;
  Pipe& pipe(Connection& connection, uint32_t side);
  bool cut(const Connection& connection) const;
  bool gate_open(const Connection& connection, uint32_t side) const;
  bool is_stale(const Message& message) const { return message.epoch != message.connection->epoch; }

  Message* find_unsent(SimNode& from, const SendOp& op);
  void submit(Message& message);
  void open_gate(Connection& connection, uint32_t side);
  void enqueue(Message& message);
  void start_next(Pipe& pipe);
  void on_sent(Message& message);
  void on_first_byte(Message& message);
  void on_arrived(Message& message);
  bool hand_over(Message& message);
  void on_goodbye(Connection& connection, uint32_t side);

  void dial(Connection& connection, uint32_t side);
  void on_connect(Connection& connection);
  void on_refused(Connection& connection);
  void on_released(Connection& connection);
  void lose(Connection& connection);
  void fail_sends(Connection& connection, uint32_t side, const Status& why);
  void fail_send(Message& message, const Status& why);

  void trace(EventKind kind, const Message& message);

  const SimConfig& config_;
  Timeline& timeline_;
  Rng faults_;
  std::unordered_map<Peer, SimNode*> nodes_;
  std::unordered_map<uint64_t, std::unique_ptr<Host>> hosts_;
  std::unordered_map<uint64_t, Connection*> by_pair_;  // never walked: its order is not ours to rely on
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<const PartitionFault*> partitions_;  // those in force
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<Message*> unused_;
};

}  // namespace talweg
