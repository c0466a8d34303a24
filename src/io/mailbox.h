// Mailbox: matches what arrives at a node with what the node awaits. All drivers share it, the simulator included, so
// they cannot differ in what a message means.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/intrusive_list.h"
#include "base/rng.h"
#include "base/status.h"

namespace talweg {

using Peer = uint32_t;         // a node's id within its job; the coordinator is 0
using Tag = uint64_t;          // chosen by the protocol; the top bit is Io's own
using Service = uint16_t;      // an entry point of a node, see io/services.h
using Incarnation = uint64_t;  // grows with every restart of a node

constexpr Tag kReplyBit = Tag{1} << 63;

struct Received {
  std::string head;
  size_t body_bytes = 0;  // written into the posted buffer
  Buffer body;            // or here, when the receive was posted without one
};

struct Request {
  Peer from = 0;
  Service service = 0;
  uint64_t id = 0;
  std::string head;
  Buffer body;
};

class Io;
class AcceptOp;
class RecvOp;
struct FrameHeader;
struct PostedTag;
struct AcceptTag;

// A message on its way in. The driver writes the body to `into`, which may move when the receive is withdrawn.
struct Inbound {
  MutableBytes into;

 private:
  friend class Mailbox;
  Peer from = 0;
  Tag tag = 0;  // or the service
  bool is_request = false;
  uint64_t id = 0;
  Code code = Code::kOk;
  std::string head;
  Buffer body;           // holds the body unless it goes to the posted buffer of `op`
  RecvOp* op = nullptr;  // the receive that gets it, when one was posted before the message came
  Status misfit;         // the posted buffer is too small
  size_t charged = 0;    // against the bound of what nobody has asked for yet
  bool discard = false;
};

class Mailbox {
 public:
  explicit Mailbox(Io& io);
  ~Mailbox();

  // Node side.
  void post(RecvOp& op);
  void post(AcceptOp& op);
  void withdraw(RecvOp& op);
  void open(Service service);

  // Driver side. Whether what comes now goes where it is wanted, without being kept for a receive still to be posted.
  bool expects(const FrameHeader& header);
  // A message's header and head are here: where does its body go? False: not now, the inbox is full; ask again once
  // there is room. `head` is taken only when the answer is true. `inbound` must not move until finish or abandon.
  bool begin(const FrameHeader& header, std::string& head, Inbound& inbound);
  void finish(Inbound& inbound);                      // the body is complete
  void abandon(Inbound& inbound, const Status& why);  // the connection was lost before it was
  void peer_lost(Peer peer, const Status& why);
  // The peer is in its next life: what its earlier one sent and nobody took is of no use now.
  void peer_restarted(Peer peer);

 private:
  struct UnexpectedTag;
  struct Unexpected;
  struct OpenService;
  static constexpr size_t kBuckets = 64;
  static size_t bucket_of(Peer from, Tag tag) { return mix64(tag * 31 + from) % kBuckets; }

  RecvOp* match(Peer from, Tag tag);
  OpenService* find(Service service);
  static void deliver(RecvOp& op, Code code, std::string head, Buffer body);
  bool begin_request(Inbound& inbound, size_t body_bytes);
  bool begin_message(Inbound& inbound, size_t head_bytes, size_t body_bytes);
  void release(Inbound& inbound);
  static void own_body(Inbound& inbound, size_t body_bytes);

  Io& io_;
  std::array<IntrusiveList<RecvOp, PostedTag>, kBuckets> posted_;
  std::array<IntrusiveList<Unexpected, UnexpectedTag>, kBuckets> unexpected_;
  size_t unexpected_bytes_ = 0;  // those on their way in included
  std::vector<std::unique_ptr<OpenService>> services_;
};

}  // namespace talweg
