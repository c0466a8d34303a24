// Calls: a request to a service of another node and its reply. Heads are protobuf messages.
#pragma once

#include <google/protobuf/message_lite.h>

#include "io/io.h"

namespace talweg {

struct Call {
  Peer to = 0;
  Service service = 0;
  std::array<Bytes, 2> body = {};
  MutableBytes reply_into = {};  // the reply's body goes here
  bool own_reply = false;        // or into memory of its own
  Priority priority = Priority::kNormal;
};

// One try: posts the reply's receive, sends, waits.
Task<Result<Received>> call_once(Io& io, Call call, std::string head, Deadline deadline);

// Repeats lost, refused and overloaded tries until the deadline, with growing pauses. For services whose requests may
// be repeated without harm.
Task<Result<Received>> call(Io& io, Call call, std::string head, Deadline deadline);

template <class Reply>
struct Answer {
  Reply head;
  size_t body_bytes = 0;
  Buffer body;
};

std::string serialize(const google::protobuf::MessageLite& message);
Status parse_head(const std::string& head, google::protobuf::MessageLite* message, const char* what);

template <class Reply>
Task<Result<Answer<Reply>>> call(Io& io, Call request, const google::protobuf::MessageLite& head, Deadline deadline) {
  Result<Received> received = co_await call(io, request, serialize(head), deadline);
  if (!received.ok()) co_return received.status();
  Answer<Reply> answer;
  CO_TRY(parse_head(received->head, &answer.head, deadline.what));
  answer.body_bytes = received->body_bytes;
  answer.body = std::move(received->body);
  co_return answer;
}

// The reply to `request`: a head and a body, or a failure. A reply that cannot be delivered needs no care from the
// server: the caller learns of the lost connection itself.
SendOp reply(Io& io, const Request& request, const google::protobuf::MessageLite& head, Bytes body, Deadline deadline);
SendOp reply(Io& io, const Request& request, const Status& failure, Deadline deadline);

// Accepts requests of `service` for as long as the node runs, each handled by a task of its own.
using Handler = std::function<Task<>(Request)>;
Task<> serve(Io& io, Service service, Handler handler);

// All of `tasks` beside each other; the first failure in their order, when all have ended.
Task<Status> all(Executor& executor, std::vector<Task<Status>> tasks);

}  // namespace talweg
