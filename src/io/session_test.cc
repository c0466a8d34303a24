// A session over a link that gives and takes what the test says: every boundary, bad frames, stalls, broken-off sends.
#include "io/session.h"

#include <gtest/gtest.h>

#include "io/test_io.h"

namespace talweg {
namespace {

constexpr Incarnation kOwnLife = 1000, kPeerLife = 2000;
constexpr uint64_t kConnection = 4;

struct Wire {
  std::string to_read, written;
  size_t read_at_once = SIZE_MAX, write_at_once = SIZE_MAX, write_room = SIZE_MAX;
  size_t reads = 0;
  bool ended = false;
};

class FakeLink final : public Link {
 public:
  FakeLink(Wire& wire, size_t read_ahead) : wire_(wire), read_ahead_(read_ahead) {}
  int fd() const override { return -1; }
  void on_event(uint32_t) override {}
  bool readable() const override { return !wire_.to_read.empty() || wire_.ended; }
  bool writable() const override { return wire_.write_room > 0 || wire_.ended; }
  bool ended() const override { return wire_.ended; }
  Result<size_t> write(std::span<const Bytes> parts) override {
    if (wire_.ended) return Status(Code::kUnavailable, "closed by the other side");
    size_t left = std::min(wire_.write_at_once, wire_.write_room), done = 0;
    for (const Bytes part : parts) {
      const size_t n = std::min(left - done, part.size());
      wire_.written += text_of(part.first(n));
      done += n;
    }
    if (wire_.write_room != SIZE_MAX) wire_.write_room -= done;
    return done;
  }
  Result<size_t> read(MutableBytes first, MutableBytes second) override {
    ++wire_.reads;
    if (wire_.to_read.empty() && wire_.ended) return Status(Code::kUnavailable, "closed by the other side");
    const size_t n = std::min({wire_.read_at_once, wire_.to_read.size(), first.size() + second.size()});
    const size_t into_first = std::min(n, first.size());
    std::memcpy(first.data(), wire_.to_read.data(), into_first);
    if (n > into_first) std::memcpy(second.data(), wire_.to_read.data() + into_first, n - into_first);
    wire_.to_read.erase(0, n);
    return n;
  }
  size_t read_ahead_bytes() const override { return read_ahead_; }
  const std::string& name() const override { return name_; }

 private:
  Wire& wire_;
  size_t read_ahead_;
  std::string name_ = "fake";
};

std::string hello(std::string_view job = "job", uint64_t connection = kConnection, Peer from = 1) {
  return frame_bytes({.kind = FrameKind::kHello, .id = connection, .incarnation = kPeerLife, .from = from}, job, "");
}

std::string message(uint32_t sequence, Tag tag, std::string_view head, std::string_view body) {
  return frame_bytes({.tag = tag, .incarnation = kPeerLife, .from = 1, .sequence = sequence}, head, body);
}

class SessionTest : public testing::Test {
 protected:
  Session& open(std::optional<Peer> expected, size_t read_ahead = 0) {
    session_ = std::make_unique<Session>(std::make_unique<FakeLink>(wire, read_ahead), identity_, expected,
                                         expected ? kConnection : 0, io.mailbox(), io.mutable_counters(), io.now());
    io.on_send = [this](SendOp& op) { session_->enqueue(op); };
    io.on_withdraw = [this](SendOp& op) { session_->withdraw(op); };
    return *session_;
  }
  // Dialled and answered.
  Session& open_usable(size_t read_ahead = 0) {
    Session& session = open(1, read_ahead);
    wire.to_read = hello();
    EXPECT_TRUE(session.pump().ok());
    EXPECT_TRUE(session.usable());
    wire.written.clear();
    return session;
  }
  void expect_end(Code code, std::string_view reason) {
    Result<bool> moved = session_->pump();
    ASSERT_FALSE(moved.ok()) << reason;
    EXPECT_EQ(moved.status().code(), code) << moved.status().text();
    EXPECT_NE(moved.status().message().find(reason), std::string::npos) << moved.status().text();
  }
  Deadline later(const char* what = "test") const { return io.within(seconds(10), what); }
  std::string received(Tag tag) {
    RecvOp op = io.recv_owned(1, tag, later());
    if (!op.await_ready()) return "nothing";
    const auto got = op.await_resume();
    return got.ok() ? got->head + "|" + std::string(text_of(got->body.bytes())) : got.status().text();
  }

  NodeIdentity identity_{.self = 0, .incarnation = kOwnLife, .job = "job"};

 public:
  TestIo io{0, kOwnLife};
  Wire wire;

 private:
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, the_dialler_introduces_itself_and_waits_for_the_answer_before_it_sends) {
  Session& session = open(1);
  SendOp op = io.send(1, 5, "head", bytes_of("body"), later());
  op.start();
  EXPECT_TRUE(*session.pump());
  const std::string own_hello =
      frame_bytes({.kind = FrameKind::kHello, .id = kConnection, .incarnation = kOwnLife, .from = 0}, "job", "");
  EXPECT_EQ(wire.written, own_hello);
  EXPECT_FALSE(op.await_ready());
  wire.to_read = hello();
  EXPECT_TRUE(*session.pump());
  EXPECT_TRUE(*session.pump());
  EXPECT_EQ(wire.written,
            own_hello + frame_bytes({.tag = 5, .incarnation = kOwnLife, .from = 0, .sequence = 1}, "head", "body"));
  ASSERT_TRUE(op.await_ready());
  EXPECT_TRUE(op.await_resume().ok());
  EXPECT_FALSE(session.has_work());
}

TEST_F(SessionTest, the_accepting_side_says_nothing_until_it_adopts) {
  Session& session = open(std::nullopt);
  wire.to_read = hello() + message(1, 5, "early", "");
  EXPECT_TRUE(*session.pump());
  EXPECT_TRUE(session.parked());
  EXPECT_EQ(session.peer(), 1u);
  EXPECT_EQ(session.peer_incarnation(), kPeerLife);
  EXPECT_EQ(session.connection(), kConnection);
  EXPECT_TRUE(wire.written.empty());
  EXPECT_FALSE(session.has_work());
  session.adopt();
  EXPECT_TRUE(session.has_work());
  EXPECT_TRUE(*session.pump());
  EXPECT_EQ(wire.written,
            frame_bytes({.kind = FrameKind::kHello, .id = kConnection, .incarnation = kOwnLife, .from = 0}, "job", ""));
  EXPECT_EQ(received(5), "early|");
}

TEST_F(SessionTest, frames_arrive_whole_however_the_bytes_are_cut) {
  const std::string stream = message(1, 5, "head", "body") + message(2, 6, "", "") + message(3, 7, "", "only body") +
                             message(4, 8, "only head", "");
  for (const size_t read_ahead : {0, 1, 50, 65536}) {
    for (const size_t at_once : {1, 2, 3, 63, 64, 65, 100, 1000}) {
      wire = Wire{};
      Session& session = open_usable(read_ahead);
      wire.read_at_once = at_once;
      wire.to_read = stream;
      while (session.has_work()) ASSERT_TRUE(session.pump().ok());
      EXPECT_EQ(received(5), "head|body");
      EXPECT_EQ(received(6), "|");
      EXPECT_EQ(received(7), "|only body");
      EXPECT_EQ(received(8), "only head|");
    }
  }
}

TEST_F(SessionTest, a_stream_cut_at_every_byte_goes_on_where_it_was) {
  const std::string stream = message(1, 5, "head", "body") + message(2, 6, "more", "again");
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    wire = Wire{};
    Session& session = open_usable(cut % 2 == 0 ? 16 : 0);
    wire.to_read = stream.substr(0, cut);
    while (session.has_work()) ASSERT_TRUE(session.pump().ok());
    wire.to_read = stream.substr(cut);
    while (session.has_work()) ASSERT_TRUE(session.pump().ok());
    EXPECT_EQ(received(5), "head|body") << cut;
    EXPECT_EQ(received(6), "more|again") << cut;
  }
}

TEST_F(SessionTest, writes_of_any_size_give_the_same_bytes) {
  const std::string expected =
      frame_bytes({.tag = 5, .incarnation = kOwnLife, .from = 0, .sequence = 1}, "head", "body and more") +
      frame_bytes({.kind = FrameKind::kRequest, .tag = 9, .id = 77, .incarnation = kOwnLife, .from = 0, .sequence = 2},
                  "", "");
  for (size_t at_once = 1; at_once <= expected.size(); ++at_once) {
    wire = Wire{};
    Session& session = open_usable();
    wire.write_at_once = at_once;
    SendOp first(io, {.to = 1, .tag = 5, .head = "head", .body = {bytes_of("body"), bytes_of(" and more")}}, later());
    SendOp second(io, {.to = 1, .is_request = true, .tag = 9, .id = 77, .head = ""}, later());
    first.start();
    second.start();
    while (session.has_work()) ASSERT_TRUE(session.pump().ok());
    EXPECT_EQ(wire.written, expected) << at_once;
    EXPECT_TRUE(first.await_ready() && second.await_ready());
  }
}

TEST_F(SessionTest, many_small_frames_cost_one_read) {
  Session& session = open_usable(65536);
  for (uint32_t i = 1; i <= 100; ++i) wire.to_read += message(i, i, "h", "b");
  wire.reads = 0;
  while (session.has_work()) ASSERT_TRUE(session.pump().ok());
  EXPECT_LE(wire.reads, 2u);
  for (Tag tag = 1; tag <= 100; ++tag) EXPECT_EQ(received(tag), "h|b");
}

TEST_F(SessionTest, a_body_is_read_straight_into_the_posted_buffer) {
  Session& session = open_usable();
  std::string into(9, '-');
  RecvOp op = io.recv(1, 5, {reinterpret_cast<std::byte*>(into.data()), into.size()}, later());
  op.start();
  const std::string whole = message(1, 5, "", "nine here");
  wire.to_read = whole.substr(0, whole.size() - 5);
  ASSERT_TRUE(session.pump().ok());
  EXPECT_EQ(into, "nine-----");
  EXPECT_FALSE(op.await_ready());
  wire.to_read = whole.substr(whole.size() - 5);
  ASSERT_TRUE(session.pump().ok());
  EXPECT_TRUE(op.await_ready());
  EXPECT_EQ(into, "nine here");
}

TEST_F(SessionTest, a_full_inbox_stops_reading_but_not_writing_and_goes_on_when_there_is_room) {
  Session& session = open_usable();
  const std::string big(limits::kUnexpectedBytes / 2, 'x');
  wire.to_read = message(1, 5, "", big);
  while (session.has_work()) ASSERT_TRUE(session.pump().ok());
  wire.to_read = message(2, 6, "second", big) + message(3, 7, "third", "");
  while (session.has_work()) ASSERT_TRUE(session.pump().ok());
  EXPECT_TRUE(session.stalled());
  EXPECT_FALSE(wire.to_read.empty());

  wire.write_room = 10;
  SendOp op = io.send(1, 1, "goes out", {}, later());
  op.start();
  EXPECT_TRUE(session.has_work());
  ASSERT_TRUE(session.pump().ok());
  EXPECT_FALSE(session.has_work()) << "no room to write and not reading: sleeping must be possible";
  wire.write_room = SIZE_MAX;
  EXPECT_TRUE(session.has_work());
  ASSERT_TRUE(session.pump().ok());
  EXPECT_TRUE(op.await_ready());

  session.retry_stalled();
  EXPECT_TRUE(session.has_work());
  ASSERT_TRUE(session.pump().ok());
  EXPECT_TRUE(session.stalled()) << "there is still no room";
  EXPECT_EQ(received(5).size(), big.size() + 1);
  session.retry_stalled();
  while (session.has_work()) ASSERT_TRUE(session.pump().ok());
  EXPECT_EQ(received(6), "second|" + big);
  EXPECT_EQ(received(7), "third|");
}

TEST_F(SessionTest, a_half_sent_withdrawn_op_ends_the_session_and_finishes_once) {
  for (const bool by_deadline : {true, false}) {
    wire = Wire{};
    Session& session = open_usable();
    wire.write_room = kFrameHeaderBytes + 2;
    std::optional<SendOp> half(std::in_place, io, SendOp::Message{.to = 1, .tag = 5, .head = "head"},
                               io.within(seconds(1), "half"));
    SendOp behind = io.send(1, 6, "", {}, later("behind"));
    half->start();
    behind.start();
    ASSERT_TRUE(session.pump().ok());
    if (by_deadline) {
      io.advance(seconds(1));
      ASSERT_TRUE(half->await_ready());
      EXPECT_EQ(half->await_resume().code(), Code::kDeadline);
    }
    half.reset();
    wire.write_room = SIZE_MAX;
    const std::string before = wire.written;
    EXPECT_TRUE(session.has_work());
    expect_end(Code::kUnavailable, "half-way");
    EXPECT_EQ(wire.written, before);
    session.close(Status(Code::kUnavailable, "connection lost"));
    ASSERT_TRUE(behind.await_ready());
    EXPECT_EQ(behind.await_resume().message(), "behind: connection lost");
  }
}

TEST_F(SessionTest, a_withdrawn_op_of_which_nothing_went_leaves_the_session_whole) {
  Session& session = open_usable();
  wire.write_room = 0;
  std::optional<SendOp> never(std::in_place, io, SendOp::Message{.to = 1, .tag = 5, .head = "never"}, later());
  SendOp next = io.send(1, 6, "next", {}, later());
  never->start();
  next.start();
  ASSERT_TRUE(session.pump().ok());
  never.reset();
  wire.write_room = SIZE_MAX;
  ASSERT_TRUE(session.pump().ok());
  EXPECT_EQ(wire.written, frame_bytes({.tag = 6, .incarnation = kOwnLife, .from = 0, .sequence = 1}, "next", ""));
  EXPECT_TRUE(next.await_ready());
}

// Sends under the tags, the urgent ones among them marked, and the tags in the order in which their frames went out.
struct Sends {
  Sends(TestIo& io, std::initializer_list<std::pair<Tag, Priority>> messages, Deadline deadline) {
    for (const auto& [tag, priority] : messages) {
      ops.push_back(std::make_unique<SendOp>(
          io, SendOp::Message{.to = 1, .tag = tag, .priority = priority, .head = "head"}, deadline));
      ops.back()->start();
    }
  }
  std::vector<std::unique_ptr<SendOp>> ops;
};
constexpr size_t kSentFrame = kFrameHeaderBytes + 4;

std::vector<Tag> tags_of(const std::string& written) {
  std::vector<Tag> tags;
  for (size_t at = 0; at + kSentFrame <= written.size(); at += kSentFrame) {
    std::array<std::byte, kFrameHeaderBytes> bytes;
    std::memcpy(bytes.data(), written.data() + at, bytes.size());
    const Result<FrameHeader> header = decode_frame(bytes);
    EXPECT_TRUE(header.ok()) << header.status().text();
    if (!header.ok()) break;
    EXPECT_EQ(header->sequence, tags.size() + 1);
    tags.push_back(header->tag);
  }
  return tags;
}
constexpr Priority kUrgent = Priority::kUrgent, kNormal = Priority::kNormal;

TEST_F(SessionTest, urgent_messages_overtake_what_waits_and_keep_their_own_order) {
  Session& session = open_usable();
  wire.write_room = 0;
  const Sends sends(io, {{1, kNormal}, {2, kNormal}, {11, kUrgent}, {3, kNormal}, {12, kUrgent}}, later());
  wire.write_room = SIZE_MAX;
  while (session.has_work()) ASSERT_TRUE(session.pump().ok());
  EXPECT_EQ(tags_of(wire.written), (std::vector<Tag>{11, 12, 1, 2, 3}));
  for (const auto& op : sends.ops) {
    ASSERT_TRUE(op->await_ready());
    EXPECT_TRUE(op->await_resume().ok());
  }
}

TEST_F(SessionTest, an_urgent_message_waits_for_the_frame_that_is_going_out) {
  for (size_t out = 1; out < kSentFrame; ++out) {
    wire = Wire{};
    Session& session = open_usable();
    wire.write_room = out;
    const Sends normal(io, {{1, kNormal}, {2, kNormal}}, later());
    ASSERT_TRUE(session.pump().ok());
    const Sends urgent(io, {{11, kUrgent}}, later());
    wire.write_room = SIZE_MAX;
    while (session.has_work()) ASSERT_TRUE(session.pump().ok());
    EXPECT_EQ(tags_of(wire.written), (std::vector<Tag>{1, 11, 2})) << out << " bytes were out";
  }
}

TEST_F(SessionTest, a_session_that_takes_over_keeps_both_queues) {
  Session& given_up = open(1);
  const Sends sends(io, {{1, kNormal}, {11, kUrgent}, {2, kNormal}, {12, kUrgent}}, later());
  Wire other_wire;
  Session other(std::make_unique<FakeLink>(other_wire, 0), identity_, 1, kConnection, io.mailbox(),
                io.mutable_counters(), io.now());
  other.take_queue(given_up);
  given_up.close(Status(Code::kUnavailable, "given up"));
  other_wire.to_read = hello();
  ASSERT_TRUE(other.pump().ok());
  other_wire.written.clear();
  while (other.has_work()) ASSERT_TRUE(other.pump().ok());
  EXPECT_EQ(tags_of(other_wire.written), (std::vector<Tag>{11, 12, 1, 2}));
  for (const auto& op : sends.ops) {
    ASSERT_TRUE(op->await_ready());
    EXPECT_TRUE(op->await_resume().ok());
  }
}

TEST_F(SessionTest, a_session_that_ends_fails_the_sends_of_both_queues) {
  Session& session = open(1);
  const Sends sends(io, {{1, kNormal}, {11, kUrgent}}, later("send"));
  session.close(Status(Code::kUnavailable, "connection lost"));
  for (const auto& op : sends.ops) {
    ASSERT_TRUE(op->await_ready());
    EXPECT_EQ(op->await_resume().message(), "send: connection lost");
  }
}

TEST_F(SessionTest, what_the_other_side_wrote_before_its_end_is_read_though_a_write_fails) {
  Session& session = open_usable();
  SendOp op = io.send(1, 5, "", {}, later());
  op.start();
  wire.to_read = message(1, 6, "last", "words") + message(2, 7, "and", "more") + message(3, 8, "", "");
  wire.ended = true;
  expect_end(Code::kUnavailable, "closed");
  EXPECT_EQ(received(6), "last|words");
  EXPECT_EQ(received(7), "and|more");
  EXPECT_EQ(received(8), "|");
  session.close(Status(Code::kUnavailable, "connection lost"));
  EXPECT_EQ(op.await_resume().code(), Code::kUnavailable);
}

TEST_F(SessionTest, an_end_in_the_middle_of_a_body_fails_its_receive) {
  Session& session = open_usable();
  RecvOp op = io.recv_owned(1, 5, later());
  op.start();
  const std::string whole = message(1, 5, "", "body");
  wire.to_read = whole.substr(0, whole.size() - 1);
  wire.ended = true;
  expect_end(Code::kUnavailable, "closed");
  EXPECT_FALSE(op.await_ready());
  session.close(Status(Code::kUnavailable, "connection lost"));
  ASSERT_TRUE(op.await_ready());
  EXPECT_EQ(op.await_resume().status().code(), Code::kUnavailable);
}

TEST_F(SessionTest, introductions_that_are_not_right_are_refused) {
  open(std::nullopt), wire.to_read = message(0, 5, "", "");
  expect_end(Code::kCorrupt, "before the introduction");
  open(std::nullopt), wire.to_read = hello("jab");
  expect_end(Code::kInvalid, "another job");
  open(std::nullopt), wire.to_read = hello("another job");
  expect_end(Code::kInvalid, "another job");
  open(std::nullopt), wire.to_read = frame_bytes({.kind = FrameKind::kHello, .incarnation = kPeerLife, .from = 1},
                                                 "job", "with a body");
  expect_end(Code::kCorrupt, "with a body");
  open(1), wire.to_read = hello("job", kConnection, 2);
  expect_end(Code::kInvalid, "dialled node 1, but node 2 answered");
  open(1), wire.to_read = hello("job", kConnection - 1);
  expect_end(Code::kInvalid, "answer to connection 3, this is 4");
}

TEST_F(SessionTest, a_stranger_that_claims_a_long_introduction_is_refused_at_its_header) {
  open(std::nullopt);
  const std::string large(limits::kMaxHeadBytes, 'x');
  wire.to_read = frame_bytes({.kind = FrameKind::kHello, .incarnation = kPeerLife, .from = 1}, large, "")
                     .substr(0, kFrameHeaderBytes);
  expect_end(Code::kInvalid, "another job");
}

TEST_F(SessionTest, frames_that_are_not_right_end_the_session) {
  open_usable(), wire.to_read = hello();
  expect_end(Code::kCorrupt, "frame 0 where frame 1");
  open_usable(), wire.to_read = frame_bytes(
                     {.kind = FrameKind::kHello, .incarnation = kPeerLife, .from = 1, .sequence = 1}, "job", "");
  expect_end(Code::kCorrupt, "a second introduction");
  open_usable(), wire.to_read = message(1, 5, "", "") + message(1, 5, "", "");
  expect_end(Code::kCorrupt, "frame 1 where frame 2");
  open_usable(), wire.to_read = message(2, 5, "", "");
  expect_end(Code::kCorrupt, "frame 2 where frame 1");
  open_usable(), wire.to_read = frame_bytes({.tag = 5, .incarnation = kPeerLife, .from = 2, .sequence = 1}, "", "");
  expect_end(Code::kCorrupt, "in the name of node 2");
  open_usable(), wire.to_read = frame_bytes({.tag = 5, .incarnation = kPeerLife + 1, .from = 1, .sequence = 1}, "", "");
  expect_end(Code::kCorrupt, "in the name of");
  open_usable(), wire.to_read = message(1, 5, "head", "");
  wire.to_read[kFrameHeaderBytes] ^= 1;
  expect_end(Code::kCorrupt, "head checksum");
}

}  // namespace
}  // namespace talweg
