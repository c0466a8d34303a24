#include "io/rpc.h"

#include <algorithm>

namespace talweg {

Task<Result<Received>> call_once(Io& io, Call call, std::string head, Deadline deadline) {
  const uint64_t id = io.next_request_id();
  RecvOp reply(io, call.to, kReplyBit | id, call.reply_into, call.own_reply, deadline);
  reply.start();
  SendOp send(
      io,
      {.to = call.to, .is_request = true, .tag = call.service, .id = id, .head = std::move(head), .body = call.body},
      deadline);
  Status sent = co_await send;
  if (!sent.ok()) co_return sent;
  co_return co_await reply;
}

Task<Result<Received>> call(Io& io, Call call, std::string head, Deadline deadline) {
  Duration pause = limits::kRetryFirst;
  Status before;
  while (true) {
    Result<Received> result = co_await call_once(io, call, head, deadline);
    if (result.ok()) co_return result;
    const Code code = result.status().code();
    // The deadline of the last try alone would hide why the ones before it failed.
    if (code == Code::kDeadline && !before.ok()) {
      co_return error(code, "{}; the try before: {}", result.status().message(), before.message());
    }
    if (code != Code::kUnavailable && code != Code::kOverloaded) co_return result;
    if (io.now() + pause >= deadline.at) {
      co_return error(Code::kDeadline, "call '{}' to node {}: {}", deadline.what, call.to, result.status().message());
    }
    before = result.status();
    CO_TRY(co_await io.sleep(pause, "pause before a repeated call"));
    pause = std::min(pause * 2, limits::kRetryMax);
  }
}

std::string serialize(const google::protobuf::MessageLite& message) { return message.SerializeAsString(); }

Status parse_head(const std::string& head, google::protobuf::MessageLite* message, const char* what) {
  if (message->ParseFromString(head)) return {};
  return error(Code::kCorrupt, "the head of '{}' is not a {}", what, message->GetTypeName());
}

SendOp reply(Io& io, const Request& request, const google::protobuf::MessageLite& head, Bytes body, Deadline deadline) {
  return SendOp(io,
                {.to = request.from, .tag = kReplyBit | request.id, .head = serialize(head), .body = {body, Bytes()}},
                deadline);
}

SendOp reply(Io& io, const Request& request, const Status& failure, Deadline deadline) {
  CHECK(!failure.ok());
  return SendOp(io,
                {.to = request.from, .tag = kReplyBit | request.id, .code = failure.code(), .head = failure.message()},
                deadline);
}

Task<> serve(Io& io, Service service, Handler handler) {
  TaskSet handlers(io);
  while (true) {
    Result<Request> request = co_await io.accept(service, Deadline{Time::max(), "requests"});
    if (!request.ok()) break;
    handlers.spawn(handler(std::move(*request)));
  }
  co_await handlers.join();
}

namespace {
Task<> run_into(Task<Status> task, Status& outcome) { outcome = co_await std::move(task); }
}  // namespace

Task<Status> all(Executor& executor, std::vector<Task<Status>> tasks) {
  std::vector<Status> outcomes(tasks.size());
  TaskSet set(executor);
  for (size_t i = 0; i < tasks.size(); ++i) set.spawn(run_into(std::move(tasks[i]), outcomes[i]));
  co_await set.join();
  for (Status& outcome : outcomes) {
    if (!outcome.ok()) co_return std::move(outcome);
  }
  co_return Status();
}

}  // namespace talweg
