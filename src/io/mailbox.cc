#include "io/mailbox.h"

#include <deque>
#include <limits>

#include "base/limits.h"
#include "io/frame.h"
#include "io/io.h"

namespace talweg {

struct Mailbox::Unexpected : ListHook<UnexpectedTag> {
  Peer from;
  Tag tag;
  Code code;
  std::string head;
  Buffer body;
  // Its own size too: empty messages cost memory as well.
  static size_t cost(size_t head_bytes, size_t body_bytes) { return sizeof(Unexpected) + head_bytes + body_bytes; }
  size_t cost() const { return cost(head.size(), body.size()); }
};

struct Mailbox::OpenService {
  explicit OpenService(Service id) : id(id) {}
  Service id;
  IntrusiveList<AcceptOp, AcceptTag> waiting;
  std::deque<Request> queued;
};

Mailbox::Mailbox(Io& io) : io_(io) {}

Mailbox::~Mailbox() {
  for (auto& bucket : unexpected_) {
    while (Unexpected* message = bucket.pop_front()) delete message;
  }
}

void Mailbox::open(Service service) {
  if (find(service) == nullptr) services_.push_back(std::make_unique<OpenService>(service));
}

Mailbox::OpenService* Mailbox::find(Service service) {
  for (auto& open : services_) {
    if (open->id == service) return open.get();
  }
  return nullptr;
}

void Mailbox::post(AcceptOp& op) {
  OpenService* service = find(op.service);
  CHECK(service != nullptr);
  if (service->queued.empty()) {
    service->waiting.push_back(op);
    return;
  }
  op.request = std::move(service->queued.front());
  service->queued.pop_front();
  op.finish({});
}

void Mailbox::post(RecvOp& op) {
  auto& bucket = unexpected_[bucket_of(op.from, op.tag)];
  for (Unexpected* message = bucket.front(); message != nullptr; message = bucket.next(*message)) {
    if (message->from != op.from || message->tag != op.tag) continue;
    const std::unique_ptr<Unexpected> taken(message);
    unexpected_bytes_ -= message->cost();
    deliver(op, message->code, std::move(message->head), std::move(message->body));
    io_.inbox_has_room();
    return;
  }
  posted_[bucket_of(op.from, op.tag)].push_back(op);
  io_.inbox_has_room();
}

void Mailbox::withdraw(RecvOp& op) {
  static_cast<ListHook<PostedTag>&>(op).unlink();
  if (op.arriving == nullptr) return;
  Inbound& inbound = *std::exchange(op.arriving, nullptr);
  inbound.op = nullptr;
  inbound.discard = true;
  own_body(inbound, inbound.into.size());
}

RecvOp* Mailbox::match(Peer from, Tag tag) {
  auto& bucket = posted_[bucket_of(from, tag)];
  for (RecvOp* op = bucket.front(); op != nullptr; op = bucket.next(*op)) {
    if (op->from == from && op->tag == tag) return op;
  }
  return nullptr;
}

bool Mailbox::expects(const FrameHeader& header) {
  return header.kind != FrameKind::kMessage || (header.tag & kReplyBit) != 0 ||
         match(header.from, header.tag) != nullptr;
}

void Mailbox::own_body(Inbound& inbound, size_t body_bytes) {
  inbound.body = Buffer(body_bytes);
  inbound.into = inbound.body.bytes();
}

bool Mailbox::begin(const FrameHeader& header, std::string& head, Inbound& inbound) {
  inbound.from = header.from;
  inbound.tag = header.tag;
  inbound.is_request = header.kind == FrameKind::kRequest;
  inbound.id = header.id;
  inbound.code = header.code;
  inbound.op = nullptr;
  inbound.misfit = Status();
  inbound.discard = false;
  inbound.charged = 0;
  if (inbound.is_request ? !begin_request(inbound, header.body_bytes)
                         : !begin_message(inbound, head.size(), header.body_bytes)) {
    return false;
  }
  inbound.head = std::move(head);
  return true;
}

bool Mailbox::begin_request(Inbound& inbound, size_t body_bytes) {
  const bool is_service = inbound.tag <= std::numeric_limits<Service>::max();
  const OpenService* service = is_service ? find(static_cast<Service>(inbound.tag)) : nullptr;
  own_body(inbound, body_bytes);
  if (service == nullptr) {
    inbound.discard = true;
    io_.refuse(inbound.from, inbound.id, Code::kNotFound,
               fmt::format("node {} has no service {}", io_.self(), inbound.tag));
  } else if (service->queued.size() >= limits::kQueuedRequests) {
    inbound.discard = true;
    ++io_.counters_.overloaded;
    io_.refuse(inbound.from, inbound.id, Code::kOverloaded,
               fmt::format("{} requests wait at node {} already", service->queued.size(), io_.self()));
  }
  return true;
}

bool Mailbox::begin_message(Inbound& inbound, size_t head_bytes, size_t body_bytes) {
  if (RecvOp* op = match(inbound.from, inbound.tag)) {
    static_cast<ListHook<PostedTag>&>(*op).unlink();
    inbound.op = op;
    op->arriving = &inbound;
    if (!op->own_body && body_bytes <= op->into.size()) {
      inbound.into = op->into.first(body_bytes);
      return true;
    }
    if (!op->own_body && inbound.code == Code::kOk) {
      inbound.misfit = error(Code::kInvalid, "message '{}' from node {} has {} bytes, the posted buffer {}",
                             op->deadline().what, inbound.from, body_bytes, op->into.size());
    }
    own_body(inbound, body_bytes);
    return true;
  }
  // A reply that nobody awaits comes after its deadline; it is of no use to anyone.
  inbound.discard = (inbound.tag & kReplyBit) != 0;
  if (!inbound.discard) {
    const size_t cost = Unexpected::cost(head_bytes, body_bytes);
    if (unexpected_bytes_ + cost > limits::kUnexpectedBytes) return false;
    unexpected_bytes_ += inbound.charged = cost;
  }
  own_body(inbound, body_bytes);
  return true;
}

void Mailbox::deliver(RecvOp& op, Code code, std::string head, Buffer body) {
  if (code != Code::kOk) return op.finish(Status(code, std::move(head)));
  op.received.head = std::move(head);
  op.received.body_bytes = body.size();
  if (op.own_body) {
    op.received.body = std::move(body);
  } else if (body.size() <= op.into.size()) {
    if (!body.empty()) std::memcpy(op.into.data(), body.data(), body.size());
  } else {
    return op.finish(error(Code::kInvalid, "message '{}' from node {} has {} bytes, the posted buffer {}",
                           op.deadline().what, op.from, body.size(), op.into.size()));
  }
  op.finish({});
}

void Mailbox::finish(Inbound& inbound) {
  if (inbound.discard) {
    inbound.body = Buffer();
    return;
  }
  if (inbound.is_request) {
    OpenService& service = *find(static_cast<Service>(inbound.tag));
    Request request{.from = inbound.from,
                    .service = service.id,
                    .id = inbound.id,
                    .head = std::move(inbound.head),
                    .body = std::move(inbound.body)};
    if (AcceptOp* op = service.waiting.pop_front()) {
      op->request = std::move(request);
      op->finish({});
    } else {
      service.queued.push_back(std::move(request));
    }
    return;
  }
  if (RecvOp* op = std::exchange(inbound.op, nullptr)) {
    op->arriving = nullptr;
    if (!inbound.misfit.ok()) return op->finish(std::move(inbound.misfit));
    if (inbound.code != Code::kOk) return op->finish(Status(inbound.code, std::move(inbound.head)));
    op->received.head = std::move(inbound.head);
    op->received.body_bytes = inbound.into.size();
    op->received.body = std::move(inbound.body);
    return op->finish({});
  }
  if (RecvOp* op = match(inbound.from, inbound.tag)) {  // posted while the body was on its way
    static_cast<ListHook<PostedTag>&>(*op).unlink();
    release(inbound);
    return deliver(*op, inbound.code, std::move(inbound.head), std::move(inbound.body));
  }
  auto* message = new Unexpected;
  message->from = inbound.from;
  message->tag = inbound.tag;
  message->code = inbound.code;
  message->head = std::move(inbound.head);
  message->body = std::move(inbound.body);
  inbound.charged = 0;  // the message carries it now
  unexpected_[bucket_of(inbound.from, inbound.tag)].push_back(*message);
}

void Mailbox::abandon(Inbound& inbound, const Status& why) {
  if (RecvOp* op = std::exchange(inbound.op, nullptr)) {
    op->arriving = nullptr;
    op->finish(why);
  }
  release(inbound);
}

void Mailbox::release(Inbound& inbound) {
  if (inbound.charged == 0) return;
  unexpected_bytes_ -= std::exchange(inbound.charged, 0);
  io_.inbox_has_room();
}

void Mailbox::peer_restarted(Peer peer) {
  for (auto& bucket : unexpected_) {
    for (Unexpected* message = bucket.front(); message != nullptr;) {
      const std::unique_ptr<Unexpected> stale(message->from == peer ? message : nullptr);
      message = bucket.next(*message);
      if (stale != nullptr) unexpected_bytes_ -= stale->cost();
    }
  }
  io_.inbox_has_room();
}

void Mailbox::peer_lost(Peer peer, const Status& why) {
  for (auto& bucket : posted_) {
    for (RecvOp* op = bucket.front(); op != nullptr;) {
      RecvOp* following = bucket.next(*op);
      if (op->from == peer) op->finish(why.within(op->deadline().what));
      op = following;
    }
  }
}

}  // namespace talweg
