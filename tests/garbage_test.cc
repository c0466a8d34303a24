// Strangers at the door: whatever bytes and descriptors come in over TCP and the local socket, a node goes on serving
// its peers, counts what was wrong, and takes no memory for what is only claimed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/crc32c.h"
#include "io/host_io.h"
#include "io/ring_link.h"
#include "io/rpc.h"
#include "io/shared_memory.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"
#include "io/test_io.h"

namespace talweg {
namespace {

constexpr Service kEcho = 900;
constexpr std::string_view kJob = "the job's secret";
constexpr Incarnation kLife = 5000;
// Short enough to be waited for, long enough for an honest peer on a machine that is busy with other tests.
constexpr Duration kHelloTimeout = seconds(2);

// A raw connection to a node, under no rules.
class Raw {
 public:
  static Raw tcp(const std::string& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    const size_t colon = address.rfind(':');
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return Raw(AF_INET, SOCK_STREAM, &to, sizeof to);
  }
  static Raw local(const std::string& address) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string name = address.substr(address.rfind(':') + 1);
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    return Raw(AF_UNIX, SOCK_SEQPACKET, &to, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
  }

  // The node may close at any moment: what could not be sent does not matter.
  Raw& send(std::string_view bytes) {
    static_cast<void>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    return *this;
  }
  Raw& send_fds(const std::vector<int>& fds) {
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    char byte = 'T';
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    EXPECT_EQ(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL), 1);
    return *this;
  }
  // Waits for `count` bytes; fewer when the node closes first.
  std::string read(size_t count) {
    std::string got;
    while (got.size() < count && wait()) {
      char buffer[4096];
      const ssize_t n = ::recv(socket_.get(), buffer, std::min(sizeof buffer, count - got.size()), 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<size_t>(n));
    }
    return got;
  }
  bool is_closed_by_the_node() {
    while (wait()) {
      char buffer[4096];
      if (::recv(socket_.get(), buffer, sizeof buffer, 0) <= 0) return true;
    }
    return false;
  }

 private:
  Raw(int family, int type, const void* to, socklen_t length) : socket_(::socket(family, type | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::connect(socket_.get(), static_cast<const sockaddr*>(to), length), 0) << std::strerror(errno);
  }
  bool wait() const {
    pollfd poll{socket_.get(), POLLIN, 0};
    return ::poll(&poll, 1, 20'000) == 1;
  }
  Fd socket_;
};

std::string hello(Peer from, uint64_t connection = 1, std::string_view job = kJob, Incarnation life = kLife) {
  return frame_bytes({.kind = FrameKind::kHello, .id = connection, .incarnation = life, .from = from}, job, "");
}
std::string request(Peer from, uint32_t sequence, std::string_view body, Incarnation life = kLife) {
  return frame_bytes({.kind = FrameKind::kRequest,
                      .tag = kEcho,
                      .id = 70 + sequence,
                      .incarnation = life,
                      .from = from,
                      .sequence = sequence},
                     "head", body);
}
// Writes a value into a header and makes the checksum fit, as someone who knows the format would.
template <class T>
std::string forge(std::string frame, size_t offset, T value) {
  std::memcpy(frame.data() + offset, &value, sizeof value);
  const uint32_t crc = crc32c(bytes_of(std::string_view(frame).substr(0, kFrameHeaderBytes - 4)));
  std::memcpy(frame.data() + kFrameHeaderBytes - 4, &crc, sizeof crc);
  return frame;
}
constexpr size_t kVersionAt = 4, kKindAt = 6, kCodeAt = 7, kBodyBytesAt = 32, kHeadBytesAt = 40;

std::string random_bytes(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::string bytes(count, 0);
  for (char& byte : bytes) byte = static_cast<char>(rng.next());
  return bytes;
}

std::unique_ptr<HostIo> make_node(Peer self, const std::string& driver, Duration hello_timeout) {
  HostIoOptions options;
  options.self = self;
  options.job = kJob;
  options.hello_timeout = hello_timeout;
  options.unintroduced_links = 64;
  auto io = std::make_unique<HostIo>(options);
  auto transport = driver == "shm" ? shm::make_transport(io->bell()) : tcp::make_transport("127.0.0.1:0");
  EXPECT_TRUE(transport.ok()) << transport.status().text();
  io->add(std::move(*transport));
  return io;
}

Task<> echo(Io& io, Request request) {
  SendOp answer(io,
                {.to = request.from,
                 .tag = kReplyBit | request.id,
                 .head = request.head,
                 .body = {request.body.bytes(), Bytes()}},
                io.within(seconds(20), "echo"));
  // A stranger may be gone before its answer.
  static_cast<void>(co_await answer);
}

// Node 0 serves, on a thread of its own; node 1 is its good peer and stays connected through every attack.
class Garbage : public testing::Test {
 protected:
  void start(const std::string& driver, Duration hello_timeout = seconds(20)) {
    node_ = make_node(0, driver, hello_timeout);
    node_->open(kEcho);
    address_ = node_->address();
    good_peer_ = make_node(1, driver, seconds(20));
    good_peer_->learn(0, address_);
    thread_ = std::thread([this] {
      node_->run(serve(*node_, kEcho, [this](Request request) {
        ++served_;
        return echo(*node_, std::move(request));
      }));
    });
    expect_service();
  }
  ~Garbage() override {
    node_->from_outside([this] { node_->stop(Status(Code::kCancelled, "done")); });
    thread_.join();
  }

  void expect_service() {
    good_peer_->run([](Io& io) -> Task<> {
      const std::string body = random_bytes(9, 100'000);
      Call request{.to = 0, .service = kEcho, .body = {bytes_of(body), Bytes()}, .own_reply = true};
      auto answer = co_await call_once(io, request, "good", io.within(seconds(20), "good peer"));
      EXPECT_TRUE(answer.ok()) << answer.status().text();
      if (!answer.ok()) co_return;
      EXPECT_EQ(text_of(answer->body.bytes()), body);
    }(*good_peer_));
  }
  IoCounters counters() {
    std::promise<IoCounters> promise;
    node_->from_outside([this, &promise] { promise.set_value(node_->counters()); });
    return promise.get_future().get();
  }
  // The node must end the connection, count it, and serve on.
  void expect_refused(Raw& raw, const char* what) {
    EXPECT_TRUE(raw.is_closed_by_the_node()) << what;
    EXPECT_EQ(counters().bad_frames, ++bad_frames_) << what;
    expect_service();
  }
  void attack(const char* what, const std::string& bytes) {
    Raw raw = Raw::tcp(address_);
    raw.send(bytes);
    expect_refused(raw, what);
  }
  // Rings' memory, a bell's memory, an event: what a local peer hands over.
  void attack_locally(const char* what, const std::vector<int>& fds) {
    Raw raw = Raw::local(address_);
    raw.send_fds(fds);
    expect_refused(raw, what);
  }

  std::string address_;
  uint64_t bad_frames_ = 0;
  std::atomic<uint64_t> served_ = 0;

 private:
  std::unique_ptr<HostIo> node_, good_peer_;
  std::thread thread_;
};

TEST_F(Garbage, frames_that_are_not_right_cost_their_connection_only) {
  start("tcp");
  for (uint64_t seed = 1; seed <= 20; ++seed) attack("random bytes", random_bytes(seed, 64 + seed * 100));
  const std::string good = hello(7);
  std::string flipped = good;
  flipped[60] ^= 1;
  attack("wrong magic", "HTTP" + good.substr(4));
  attack("wrong checksum", flipped);
  attack("wrong version", forge(good, kVersionAt, uint16_t{2}));
  attack("unknown kind", forge(good, kKindAt, uint8_t{9}));
  attack("unknown code", forge(good, kCodeAt, uint8_t{200}));
  attack("huge head", forge(good, kHeadBytesAt, ~uint32_t{0}));
  attack("large head of a stranger", forge(good, kHeadBytesAt, limits::kMaxHeadBytes));
  attack("huge body", forge(good, kBodyBytesAt, ~uint64_t{0}));
  attack("a frame before the introduction", request(7, 0, "body"));
  attack("another job's secret", hello(7, 1, "the job's secrex"));
  attack("no secret", hello(7, 1, ""));
  attack("the node's own name", hello(0));
  EXPECT_EQ(served_, 1 + bad_frames_) << "only the good peer was served";
}

TEST_F(Garbage, an_introduced_peer_is_trusted_no_more_than_a_stranger) {
  start("tcp");
  uint64_t connection = 0;
  const auto attack_introduced = [&](const char* what, const std::string& bytes) {
    attack(what, hello(7, ++connection) + bytes);
  };
  attack_introduced("two introductions", hello(7));
  attack_introduced(
      "two introductions, numbered",
      frame_bytes({.kind = FrameKind::kHello, .id = 9, .incarnation = kLife, .from = 7, .sequence = 1}, kJob, ""));
  attack_introduced("a forged sender", request(1, 1, "body"));
  attack_introduced("a forged life", request(7, 1, "body", kLife + 1));
  attack_introduced("a skipped frame", request(7, 2, "body"));
  attack_introduced("a repeated frame", request(7, 1, "body") + request(7, 1, "body"));
  attack_introduced("huge head", forge(request(7, 1, ""), kHeadBytesAt, limits::kMaxHeadBytes + 1));
  attack_introduced("huge body", forge(request(7, 1, ""), kBodyBytesAt, limits::kMaxBodyBytes + 1));
  std::string changed = request(7, 1, "");
  changed.back() ^= 1;
  attack_introduced("a changed head", changed);
  attack("an earlier life", hello(7, 100, kJob, kLife - 1));
}

TEST_F(Garbage, a_recorded_stream_is_not_taken_a_second_time_and_a_real_reconnection_is) {
  start("tcp");
  const std::string recorded = hello(7, 1) + request(7, 1, "pay once");
  const std::string answer_like = hello(0) + request(0, 1, "pay once");
  Raw peer = Raw::tcp(address_);
  peer.send(recorded);
  EXPECT_EQ(peer.read(answer_like.size()).size(), answer_like.size());
  const uint64_t served = served_;

  attack("the recorded stream again", recorded);
  EXPECT_EQ(served_, served + 1) << "the good peer alone was served";

  peer.send(request(7, 2, "still here"));
  EXPECT_NE(peer.read(kFrameHeaderBytes + 14).find("still here"), std::string::npos);

  Raw again = Raw::tcp(address_);
  again.send(hello(7, 2) + request(7, 1, "pay once"));
  EXPECT_EQ(again.read(answer_like.size()).size(), answer_like.size());
  EXPECT_TRUE(peer.is_closed_by_the_node()) << "the new connection replaces the old one";
  EXPECT_EQ(counters().bad_frames, bad_frames_);
}

TEST_F(Garbage, a_stream_cut_anywhere_leaves_nothing_behind) {
  start("tcp");
  uint64_t connection = 0;
  const size_t length = (hello(7) + request(7, 1, "body")).size();
  for (size_t cut = 0; cut < length; cut += 7) {
    const std::string stream = hello(7, ++connection) + request(7, 1, "body");
    Raw::tcp(address_).send(std::string_view(stream).substr(0, cut));
  }
  expect_service();
  EXPECT_EQ(counters().bad_frames, 0u);
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST_F(Garbage, a_claimed_length_takes_no_memory_before_its_bytes_come) {
  start("tcp");
  const size_t before = resident_bytes();
  std::vector<Raw> liars;
  for (Peer peer = 10; peer < 16; ++peer) {
    liars.push_back(Raw::tcp(address_));
    liars.back().send(hello(peer) + forge(request(peer, 1, ""), kBodyBytesAt, limits::kMaxBodyBytes) + "a few bytes");
    EXPECT_EQ(liars.back().read(hello(0).size()).size(), hello(0).size());
  }
  expect_service();
  EXPECT_LT(resident_bytes(), before + limits::kMaxBodyBytes) << "six times as much was claimed";
  liars.clear();
  expect_service();
}

TEST_F(Garbage, silent_connections_are_dropped) {
  start("tcp", kHelloTimeout);
  std::vector<Raw> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(Raw::tcp(address_));
  silent[0].send(hello(7).substr(0, 30));
  for (Raw& raw : silent) EXPECT_TRUE(raw.is_closed_by_the_node());
  expect_service();
  EXPECT_EQ(counters().bad_frames, 0u);
}

TEST_F(Garbage, two_hundred_connections_at_once_do_not_keep_a_peer_from_being_served) {
  start("tcp", kHelloTimeout);
  std::vector<Raw> crowd;
  for (uint64_t i = 0; i < 200; ++i) {
    crowd.push_back(Raw::tcp(address_));
    if (i % 2 == 0) crowd.back().send(random_bytes(i, 500));
  }
  expect_service();
  for (Raw& raw : crowd) EXPECT_TRUE(raw.is_closed_by_the_node());
  EXPECT_EQ(counters().bad_frames, 100u);
  expect_service();
}

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

Fd memory_of(size_t bytes, bool sealed = true) {
  if (sealed) return Fd(create_shared_memory("garbage", bytes));
  Fd fd(::memfd_create("garbage", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  return fd;
}

TEST_F(Garbage, descriptors_that_are_not_right_cost_their_connection_and_are_closed) {
  start("shm");
  const Fd rings = memory_of(sizeof(RingPair)), unsealed = memory_of(sizeof(RingPair), false), small = memory_of(100);
  const Fd bell = memory_of(4096), event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), blocking(::eventfd(0, EFD_CLOEXEC));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const size_t before = open_descriptors();
  Raw junk = Raw::local(address_);
  expect_refused(junk.send("junk"), "bytes without descriptors");
  attack_locally("one descriptor", {rings.get()});
  attack_locally("two descriptors", {rings.get(), bell.get()});
  for (int i = 0; i < 10; ++i) attack_locally("four descriptors", {rings.get(), bell.get(), event.get(), null.get()});
  attack_locally("many descriptors", std::vector<int>(100, null.get()));
  attack_locally("unsealed rings", {unsealed.get(), bell.get(), event.get()});
  attack_locally("small rings", {small.get(), bell.get(), event.get()});
  attack_locally("a device for rings", {null.get(), bell.get(), event.get()});
  attack_locally("a small bell", {rings.get(), small.get(), event.get()});
  attack_locally("an event that blocks", {rings.get(), bell.get(), blocking.get()});
  EXPECT_LE(open_descriptors(), before + 3) << "more than the socket of the first attack and the good peer's bell";
}

TEST_F(Garbage, rings_that_are_not_right_cost_their_connection) {
  start("shm");
  const Fd bell = memory_of(4096), event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const auto attack_rings = [&](const char* what, const std::function<void(Ring&)>& spoil) {
    const Fd memory = memory_of(sizeof(RingPair));
    auto* rings = static_cast<RingPair*>(map_shared_memory(memory.get(), sizeof(RingPair)));
    ASSERT_NE(rings, nullptr);
    spoil(rings->rings[0]);
    attack_locally(what, {memory.get(), bell.get(), event.get()});
    ::munmap(static_cast<void*>(rings), sizeof(RingPair));
  };
  attack_rings("a position past the ring", [](Ring& ring) { ring.written = limits::kRingBytes + 1; });
  attack_rings("a huge position", [](Ring& ring) { ring.written = ~uint64_t{0}; });
  const auto write = [](Ring& ring, const std::string& bytes) {
    RingWriter writer(ring);
    EXPECT_EQ(writer.write(bytes_of(bytes)), bytes.size());
    writer.publish();
  };
  attack_rings("random bytes", [&write](Ring& ring) {
    const std::string junk = random_bytes(3, 1000);
    write(ring, junk);
  });
  attack_rings("another job's secret", [&write](Ring& ring) {
    const std::string wrong = hello(7, 1, "the job's secrex");
    write(ring, wrong);
  });
}

TEST_F(Garbage, local_connections_that_end_early_or_say_nothing_are_dropped) {
  start("shm", kHelloTimeout);
  for (int i = 0; i < 20; ++i) Raw::local(address_);
  const Fd rings = memory_of(sizeof(RingPair)), bell = memory_of(4096), event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  for (int i = 0; i < 20; ++i) Raw::local(address_).send_fds({rings.get(), bell.get(), event.get()});
  Raw silent = Raw::local(address_), silent_later = Raw::local(address_);
  silent_later.send_fds({rings.get(), bell.get(), event.get()});
  EXPECT_TRUE(silent.is_closed_by_the_node());
  EXPECT_TRUE(silent_later.is_closed_by_the_node());
  expect_service();
  EXPECT_EQ(counters().bad_frames, 0u);
}

}  // namespace
}  // namespace talweg
