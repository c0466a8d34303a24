// What arrives meets what is awaited: bounds, misfits, late replies, withdrawals, lost and restarted peers.
#include "io/mailbox.h"

#include <gtest/gtest.h>

#include "io/rpc.h"
#include "io/test_io.h"

namespace talweg {
namespace {

constexpr Service kWork = 900;

template <class Op>
auto result_of(Op& op) {
  EXPECT_TRUE(op.await_ready());
  return op.await_resume();
}

Deadline later(const Io& io, const char* what = "test") { return io.within(seconds(10), what, 3); }

MutableBytes writable(std::string& text) { return {reinterpret_cast<std::byte*>(text.data()), text.size()}; }

TEST(Mailbox, a_message_goes_to_the_first_receive_of_its_peer_and_tag) {
  TestIo io;
  std::string first(8, '-'), second(8, '-'), other(8, '-');
  RecvOp elsewhere = io.recv(2, 5, writable(other), later(io));
  RecvOp a = io.recv(1, 5, writable(first), later(io));
  RecvOp b = io.recv(1, 5, writable(second), later(io));
  for (RecvOp* op : {&elsewhere, &a, &b}) op->start();
  EXPECT_TRUE(io.deliver(1, 5, "h1", "one"));
  EXPECT_TRUE(io.deliver(1, 5, "h2", "two"));
  const auto got_a = result_of(a), got_b = result_of(b);
  ASSERT_TRUE(got_a.ok() && got_b.ok());
  EXPECT_EQ(got_a->head, "h1");
  EXPECT_EQ(got_a->body_bytes, 3u);
  EXPECT_EQ(first.substr(0, 3), "one");
  EXPECT_EQ(got_b->head, "h2");
  EXPECT_EQ(second.substr(0, 3), "two");
  EXPECT_FALSE(elsewhere.await_ready());
}

TEST(Mailbox, an_unexpected_message_waits_for_its_receive) {
  TestIo io;
  EXPECT_TRUE(io.deliver(1, 5, "head", "body"));
  RecvOp op = io.recv_owned(1, 5, later(io));
  const auto got = result_of(op);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->head, "head");
  EXPECT_EQ(text_of(got->body.bytes()), "body");
}

TEST(Mailbox, a_receive_posted_while_the_body_is_on_its_way_gets_it) {
  TestIo io;
  Inbound inbound;
  std::string head = "head";
  ASSERT_TRUE(io.mailbox().begin(TestIo::header(1, 5, 4, 4), head, inbound));
  std::string into(4, '-');
  RecvOp op = io.recv(1, 5, writable(into), later(io));
  EXPECT_FALSE(op.await_ready());
  std::memcpy(inbound.into.data(), "body", 4);
  io.mailbox().finish(inbound);
  ASSERT_TRUE(result_of(op).ok());
  EXPECT_EQ(into, "body");
}

TEST(Mailbox, past_the_bound_messages_wait_outside_until_one_is_taken) {
  TestIo io;
  const std::string body(limits::kUnexpectedBytes / 4, 'x');
  for (Tag tag = 0; tag < 3; ++tag) ASSERT_TRUE(io.deliver(1, tag, "", body));
  EXPECT_FALSE(io.deliver(1, 3, "", body));
  EXPECT_TRUE(io.deliver(1, 4, "small", "fits"));

  std::string into(body.size(), '-');
  RecvOp wanted = io.recv(1, 3, writable(into), later(io));
  wanted.start();
  EXPECT_GT(io.room_made, 0);
  EXPECT_TRUE(io.deliver(1, 3, "", body)) << "a message that is awaited needs no room";
  EXPECT_TRUE(result_of(wanted).ok());

  EXPECT_FALSE(io.deliver(1, 3, "", body));
  RecvOp taken = io.recv_owned(1, 0, later(io));
  EXPECT_TRUE(result_of(taken).ok());
  EXPECT_TRUE(io.deliver(1, 3, "", body));
}

TEST(Mailbox, heads_and_bodies_on_their_way_count_against_the_bound) {
  TestIo io;
  const size_t half = limits::kUnexpectedBytes / 2;
  Inbound arriving;
  std::string head(limits::kMaxHeadBytes, 'h');
  ASSERT_TRUE(io.mailbox().begin(TestIo::header(1, 1, head.size(), half), head, arriving));
  const std::string body(half - limits::kMaxHeadBytes / 2, 'x');
  EXPECT_FALSE(io.deliver(2, 2, "", body));
  const int before = io.room_made;
  io.mailbox().abandon(arriving, Status(Code::kUnavailable, "lost"));
  EXPECT_GT(io.room_made, before);
  EXPECT_TRUE(io.deliver(2, 2, "", body));
}

TEST(Mailbox, empty_messages_count_too) {
  TestIo io;
  size_t taken = 0;
  while (taken < limits::kUnexpectedBytes && io.deliver(1, taken % 100, "", "")) ++taken;
  EXPECT_GT(taken, 100'000u);
  EXPECT_LT(taken, limits::kUnexpectedBytes / 64);
}

TEST(Mailbox, a_message_larger_than_the_posted_buffer_is_an_error_before_and_after_it_came) {
  TestIo io;
  std::string small(3, '-');
  RecvOp early = io.recv(1, 5, writable(small), later(io, "gradient"));
  early.start();
  EXPECT_TRUE(io.deliver(1, 5, "", "four"));
  EXPECT_TRUE(io.deliver(1, 6, "", "four"));
  RecvOp late = io.recv(1, 6, writable(small), later(io, "gradient"));
  for (RecvOp* op : {&early, &late}) {
    const auto got = result_of(*op);
    EXPECT_EQ(got.status().code(), Code::kInvalid);
    EXPECT_NE(got.status().message().find("'gradient' from node 1 has 4 bytes, the posted buffer 3"), std::string::npos)
        << got.status().text();
  }
  EXPECT_EQ(small, "---");
}

TEST(Mailbox, a_failure_travels_as_code_and_text) {
  TestIo io;
  RecvOp op = io.recv(1, kReplyBit | 8, {}, later(io));
  op.start();
  FrameHeader header = TestIo::header(1, kReplyBit | 8, 0, 0);
  header.code = Code::kFull;
  EXPECT_TRUE(io.deliver(header, "the disk is full", ""));
  EXPECT_EQ(result_of(op).status().text(), Status(Code::kFull, "the disk is full").text());
}

TEST(Mailbox, a_reply_nobody_awaits_is_dropped_and_takes_no_room) {
  TestIo io;
  const std::string body(limits::kUnexpectedBytes / 2, 'x');
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(io.deliver(1, kReplyBit | 7, "late", body));
  RecvOp op = io.recv(1, kReplyBit | 7, {}, later(io));
  EXPECT_FALSE(op.await_ready());
  EXPECT_TRUE(io.deliver(1, 3, "", body));
}

TEST(Mailbox, a_receive_withdrawn_while_its_body_arrives_is_written_to_no_more) {
  TestIo io;
  std::string into(6, '-'), head;
  Inbound inbound;
  {
    RecvOp op = io.recv(1, 5, writable(into), later(io));
    op.start();
    ASSERT_TRUE(io.mailbox().begin(TestIo::header(1, 5, 0, 6), head, inbound));
    EXPECT_EQ(static_cast<void*>(inbound.into.data()), static_cast<void*>(into.data()));
    std::memcpy(inbound.into.data(), "abc", 3);
  }
  into = "------";
  ASSERT_EQ(inbound.into.size(), 6u);
  EXPECT_NE(static_cast<void*>(inbound.into.data()), static_cast<void*>(into.data()));
  std::memcpy(inbound.into.data() + 3, "def", 3);
  io.mailbox().finish(inbound);
  EXPECT_EQ(into, "------");
  RecvOp next = io.recv(1, 5, writable(into), later(io));
  EXPECT_FALSE(next.await_ready()) << "half of the message is gone, so all of it is";
}

TEST(Mailbox, a_deadline_while_the_body_arrives_ends_the_receive_once) {
  TestIo io;
  std::string into(6, '-'), head;
  Inbound inbound;
  RecvOp op = io.recv(1, 5, writable(into), io.within(seconds(1), "slow"));
  op.start();
  ASSERT_TRUE(io.mailbox().begin(TestIo::header(1, 5, 0, 6), head, inbound));
  io.advance(seconds(2));
  EXPECT_EQ(result_of(op).status().code(), Code::kDeadline);
  io.mailbox().abandon(inbound, Status(Code::kUnavailable, "lost"));
}

TEST(Mailbox, a_lost_connection_ends_the_arriving_receive_and_those_posted_for_the_peer_only) {
  TestIo io;
  std::string into(6, '-'), head;
  Inbound inbound;
  RecvOp arriving = io.recv(1, 5, writable(into), later(io));
  RecvOp posted = io.recv(1, 6, {}, later(io, "weights"));
  RecvOp other = io.recv(2, 6, {}, later(io));
  for (RecvOp* op : {&arriving, &posted, &other}) op->start();
  ASSERT_TRUE(io.mailbox().begin(TestIo::header(1, 5, 0, 6), head, inbound));
  const Status why(Code::kUnavailable, "connection to node 1 is lost");
  io.mailbox().abandon(inbound, why);
  io.mailbox().peer_lost(1, why);
  EXPECT_EQ(result_of(arriving).status().code(), Code::kUnavailable);
  EXPECT_EQ(result_of(posted).status().message(), "weights: connection to node 1 is lost");
  EXPECT_FALSE(other.await_ready());
}

TEST(Mailbox, what_an_earlier_life_of_a_peer_sent_does_not_meet_a_receive_of_the_next) {
  TestIo io;
  const std::string body(limits::kUnexpectedBytes / 2, 'x');
  EXPECT_TRUE(io.deliver(1, 5, "old", body));
  EXPECT_TRUE(io.deliver(2, 5, "of another", ""));
  io.mailbox().peer_restarted(1);
  RecvOp op = io.recv_owned(1, 5, later(io));
  EXPECT_FALSE(op.await_ready());
  EXPECT_TRUE(io.deliver(1, 5, "new", ""));
  EXPECT_EQ(result_of(op)->head, "new");
  RecvOp other = io.recv_owned(2, 5, later(io));
  EXPECT_EQ(result_of(other)->head, "of another");
  EXPECT_TRUE(io.deliver(1, 6, "", body));
  EXPECT_FALSE(io.deliver(1, 6, "", body)) << "the room of dropped messages is given back, once";
}

TEST(Mailbox, requests_queue_up_to_their_bound_and_are_then_refused) {
  TestIo io;
  io.open(kWork);
  FrameHeader header = TestIo::header(1, kWork, 0, 0);
  header.kind = FrameKind::kRequest;
  for (size_t i = 0; i < limits::kQueuedRequests + 2; ++i) {
    header.id = i;
    EXPECT_TRUE(io.deliver(header, std::to_string(i), "body"));
  }
  EXPECT_EQ(io.counters().overloaded, 2u);
  io.run_ready();
  SendOp* refusal = io.sends.front();
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->message.to, 1u);
  EXPECT_EQ(refusal->message.tag, kReplyBit | limits::kQueuedRequests);
  EXPECT_EQ(refusal->message.code, Code::kOverloaded);
  for (size_t i = 0; i < limits::kQueuedRequests; ++i) {
    AcceptOp op = io.accept(kWork, later(io));
    const auto request = result_of(op);
    ASSERT_TRUE(request.ok());
    EXPECT_EQ(request->id, i);
    EXPECT_EQ(text_of(request->body.bytes()), "body");
  }
}

TEST(Mailbox, a_service_number_that_does_not_fit_is_no_service) {
  TestIo io;
  io.open(kWork);
  FrameHeader header = TestIo::header(1, 65536 + kWork, 0, 0);
  header.kind = FrameKind::kRequest;
  EXPECT_TRUE(io.deliver(header, "", ""));
  AcceptOp op = io.accept(kWork, later(io));
  EXPECT_FALSE(op.await_ready());
  io.run_ready();
  ASSERT_NE(io.sends.front(), nullptr);
  EXPECT_EQ(io.sends.front()->message.code, Code::kNotFound);
}

TEST(Mailbox, refusals_that_cannot_be_sent_do_not_pile_up) {
  TestIo io;
  FrameHeader header = TestIo::header(1, kWork, 0, 0);
  header.kind = FrameKind::kRequest;
  for (size_t i = 0; i < 2 * limits::kQueuedRequests; ++i) EXPECT_TRUE(io.deliver(header, "", ""));
  io.run_ready();
  size_t waiting = 0;
  for (SendOp* op = io.sends.front(); op != nullptr; op = io.sends.next(*op)) ++waiting;
  EXPECT_EQ(waiting, limits::kQueuedRequests);
  io.advance(seconds(2));
  io.run_ready();
  EXPECT_TRUE(io.deliver(header, "", ""));
  io.run_ready();
  EXPECT_NE(io.sends.front(), nullptr) << "when the old ones have gone there is room for new ones";
}

}  // namespace
}  // namespace talweg
