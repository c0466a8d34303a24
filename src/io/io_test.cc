// Waits: deadlines, stopping, signals, the stall report, and calls across the lives of a node.
#include "io/io.h"

#include <gtest/gtest.h>

#include "io/rpc.h"
#include "io/test_io.h"

namespace talweg {
namespace {

constexpr Service kWork = 900;

TEST(Io, an_expired_wait_names_peer_purpose_step_and_time) {
  TestIo io;
  RecvOp op = io.recv(3, 5, {}, io.within(milliseconds(1500), "pull reply", 12));
  EXPECT_FALSE(op.await_ready());
  io.advance(milliseconds(1499));
  EXPECT_FALSE(op.await_ready());
  io.advance(milliseconds(21));
  ASSERT_TRUE(op.await_ready());
  const auto got = op.await_resume();
  EXPECT_EQ(got.status().code(), Code::kDeadline);
  EXPECT_EQ(got.status().message(), "receive from node 3 of 'pull reply' at step 12, for 1.520 s");
}

TEST(Io, waits_expire_each_at_its_own_time) {
  TestIo io;
  Signal signal;
  SignalOp second = io.wait(signal, io.within(seconds(2), "second"));
  SignalOp first = io.wait(signal, io.within(seconds(1), "first"));
  SignalOp also_first = io.wait(signal, io.within(seconds(1), "also first"));
  SleepOp third = io.sleep(seconds(3));
  for (Wait* wait : std::initializer_list<Wait*>{&second, &first, &also_first, &third}) wait->start();
  io.advance(seconds(1));
  EXPECT_TRUE(first.await_ready() && also_first.await_ready());
  EXPECT_FALSE(second.await_ready());
  io.advance(seconds(1));
  EXPECT_TRUE(second.await_ready());
  EXPECT_FALSE(third.await_ready());
  io.advance(seconds(1));
  EXPECT_TRUE(third.await_ready());
  EXPECT_TRUE(third.await_resume().ok()) << "a sleep's deadline is its success";
}

TEST(Io, a_sleep_in_a_node_that_stops_for_a_deadline_fails) {
  TestIo io;
  SleepOp sleep = io.sleep(seconds(1)), late = io.sleep(seconds(1));
  sleep.start();
  io.stop(Status(Code::kDeadline, "waited too long for worker 3"));
  late.start();
  ASSERT_TRUE(sleep.await_ready() && late.await_ready());
  EXPECT_EQ(sleep.await_resume().code(), Code::kDeadline);
  EXPECT_EQ(late.await_resume().code(), Code::kDeadline);
}

TEST(Io, the_end_of_one_expired_wait_may_end_the_others) {
  TestIo io;
  std::array<std::optional<SendOp>, 4> sends;
  for (auto& send : sends) {
    send.emplace(io, SendOp::Message{.to = 1, .tag = 5, .head = ""}, io.within(seconds(1), "send"));
  }
  // A connection that ends with its half-sent message takes those queued behind it along.
  io.on_withdraw = [&io, &sends](SendOp&) {
    io.on_withdraw = nullptr;
    for (size_t i : {1, 2}) sends[i]->finish(Status(Code::kUnavailable, "connection lost"));
  };
  for (auto& send : sends) send->start();
  io.advance(seconds(1));
  const Code expected[] = {Code::kDeadline, Code::kUnavailable, Code::kUnavailable, Code::kDeadline};
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(sends[i]->await_ready());
    EXPECT_EQ(sends[i]->await_resume().code(), expected[i]) << i;
  }
  EXPECT_TRUE(io.waits(Duration(0)).empty());
}

TEST(Io, stop_ends_all_waits_and_those_begun_later) {
  TestIo io;
  io.open(kWork);
  Signal signal;
  RecvOp recv = io.recv(1, 5, {}, io.within(seconds(1), "recv"));
  SendOp send = io.send(1, 5, "", {}, io.within(seconds(1), "send"));
  AcceptOp accept = io.accept(kWork, io.within(seconds(1), "accept"));
  SleepOp sleep = io.sleep(seconds(1));
  SignalOp wait = io.wait(signal, io.within(seconds(1), "wait"));
  for (Wait* op : std::initializer_list<Wait*>{&recv, &send, &accept, &sleep, &wait}) EXPECT_FALSE(op->await_ready());
  io.stop(Status(Code::kCancelled, "enough"));
  io.stop(Status(Code::kInvalid, "the first reason stays"));
  SendOp late = io.send(1, 5, "", {}, io.within(seconds(1), "send"));
  for (Wait* op : std::initializer_list<Wait*>{&recv, &send, &accept, &sleep, &wait, &late})
    EXPECT_TRUE(op->await_ready());
  EXPECT_EQ(recv.await_resume().status().message(), "enough");
  EXPECT_EQ(send.await_resume().code(), Code::kCancelled);
  EXPECT_EQ(accept.await_resume().status().code(), Code::kCancelled);
  EXPECT_EQ(sleep.await_resume().code(), Code::kCancelled);
  EXPECT_EQ(wait.await_resume().code(), Code::kCancelled);
  EXPECT_EQ(late.await_resume().code(), Code::kCancelled);
  EXPECT_TRUE(io.sends.empty());
}

TEST(Io, the_stall_report_tells_old_waits_longest_first) {
  TestIo io;
  Signal signal;
  SignalOp old = io.wait(signal, io.within(seconds(60), "old"));
  old.start();
  io.advance(seconds(2));
  SignalOp younger = io.wait(signal, io.within(seconds(60), "younger"));
  younger.start();
  io.advance(seconds(2));
  SignalOp fresh = io.wait(signal, io.within(seconds(60), "fresh"));
  fresh.start();
  const auto report = io.waits(seconds(1));
  ASSERT_EQ(report.size(), 2u);
  EXPECT_EQ(report[0], "wait 'old', for 4.000 s");
  EXPECT_EQ(report[1], "wait 'younger', for 2.000 s");
}

TEST(Io, a_message_past_the_limits_is_refused_before_it_costs_the_connection) {
  TestIo io;
  SendOp head = io.send(1, 5, std::string(limits::kMaxHeadBytes + 1, 'x'), {}, io.within(seconds(1), "huge"));
  ASSERT_TRUE(head.await_ready());
  EXPECT_EQ(head.await_resume().code(), Code::kInvalid);
  const std::byte byte{};
  const Bytes claimed(&byte, limits::kMaxBodyBytes + 1);
  SendOp body = io.send(1, 5, "", claimed, io.within(seconds(1), "huge"));
  ASSERT_TRUE(body.await_ready());
  EXPECT_EQ(body.await_resume().code(), Code::kInvalid);
  EXPECT_TRUE(io.sends.empty());
}

TEST(Io, a_destroyed_wait_is_in_no_list) {
  TestIo io;
  {
    SendOp send = io.send(1, 5, "", {}, io.within(seconds(1), "send"));
    RecvOp recv = io.recv(1, 5, {}, io.within(seconds(1), "recv"));
    send.start();
    recv.start();
  }
  EXPECT_TRUE(io.sends.empty());
  EXPECT_TRUE(io.waits(Duration(0)).empty());
  EXPECT_TRUE(io.deliver(1, 5, "kept", ""));
  io.advance(seconds(5));
}

Task<> ask(Io& io, Result<Received>& outcome) {
  outcome = co_await call_once(io, Call{.to = 1, .service = kWork}, "", io.within(seconds(9), "ask"));
}

TEST(Io, a_reply_to_an_earlier_life_completes_no_call_of_the_next) {
  uint64_t earlier_id = 0;
  for (const Incarnation life : {1'700'000'000'000'000u, 1'700'000'000'000'001u}) {
    TestIo io(0, life);
    Result<Received> outcome{Status(Code::kCancelled, "not yet")};
    TaskSet tasks(io);
    tasks.spawn(ask(io, outcome));
    io.run_ready();
    SendOp* request = io.sends.pop_front();
    ASSERT_NE(request, nullptr);
    const uint64_t id = request->message.id;
    request->finish({});
    io.run_ready();
    if (earlier_id != 0) {
      EXPECT_TRUE(io.deliver(1, kReplyBit | earlier_id, "for the earlier life", ""));
      io.run_ready();
      EXPECT_FALSE(outcome.ok());
    }
    EXPECT_TRUE(io.deliver(1, kReplyBit | id, "for this life", ""));
    io.run_ready();
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    EXPECT_EQ(outcome->head, "for this life");
    EXPECT_NE(id, earlier_id);
    earlier_id = id;
  }
}

TEST(Io, a_call_repeats_lost_and_overloaded_tries_until_its_deadline_and_then_tells_the_reason) {
  TestIo io;
  int tries = 0;
  io.on_send = [&tries](SendOp& op) {
    ++tries;
    op.finish(error(tries % 2 == 0 ? Code::kOverloaded : Code::kUnavailable, "try {} failed", tries));
  };
  Result<Received> outcome{Received{}};
  TaskSet tasks(io);
  tasks.spawn([](Io& io, Result<Received>& outcome) -> Task<> {
    outcome = co_await call(io, Call{.to = 1, .service = kWork}, "", io.within(seconds(2), "ask"));
  }(io, outcome));
  for (int i = 0; i < 3000; ++i) {
    io.run_ready();
    io.advance(milliseconds(1));
  }
  EXPECT_EQ(outcome.status().code(), Code::kDeadline);
  EXPECT_EQ(outcome.status().message(), fmt::format("call 'ask' to node 1: try {} failed", tries));
  EXPECT_GT(tries, 8);
  EXPECT_LT(tries, 20) << "the pauses grow";
}

TEST(Io, a_call_whose_last_try_gets_no_answer_tells_why_the_one_before_failed) {
  TestIo io;
  int tries = 0;
  io.on_send = [&io, &tries](SendOp& op) {
    if (++tries == 1)
      op.finish(Status(Code::kUnavailable, "connection refused"));
    else
      io.sends.push_back(op);
  };
  Result<Received> outcome{Received{}};
  TaskSet tasks(io);
  tasks.spawn([](Io& io, Result<Received>& outcome) -> Task<> {
    outcome = co_await call(io, Call{.to = 1, .service = kWork}, "", io.within(seconds(2), "ask"));
  }(io, outcome));
  for (int i = 0; i < 3; ++i) {
    io.run_ready();
    io.advance(seconds(1));
  }
  io.run_ready();
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(outcome.status().code(), Code::kDeadline);
  EXPECT_EQ(outcome.status().message(), "send to node 1 of 'ask', for 1.000 s; the try before: connection refused");
}

TEST(Io, a_call_does_not_repeat_what_cannot_succeed) {
  TestIo io;
  int tries = 0;
  io.on_send = [&tries](SendOp& op) {
    ++tries;
    op.finish(Status(Code::kNotFound, "no such node"));
  };
  Result<Received> outcome{Received{}};
  TaskSet tasks(io);
  tasks.spawn([](Io& io, Result<Received>& outcome) -> Task<> {
    outcome = co_await call(io, Call{.to = 1, .service = kWork}, "", io.within(seconds(2), "ask"));
  }(io, outcome));
  io.run_ready();
  EXPECT_EQ(outcome.status().code(), Code::kNotFound);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace talweg
