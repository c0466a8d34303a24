// Point to point: one-way latency and throughput of each driver between two nodes, each a thread, beside what the
// machine gives at best: a bare ring without frames or nodes, and a plain blocking-socket loop. Every payload is
// checked.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <map>
#include <thread>
#include <vector>

#include "bench/bench.h"
#include "bench/measure.h"
#include "io/host_io.h"
#include "io/inproc/transport.h"
#include "io/ring.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"

namespace talweg::bench {
namespace {

struct Plan {
  size_t bytes;
  size_t messages;
};

// A payload whose first and last words change from message to message, so that a stale or torn one is seen.
void stamp(std::vector<uint64_t>& payload, uint64_t i) { payload.front() = payload.back() = mix64(i); }
void check(const std::vector<uint64_t>& payload, uint64_t i) {
  require(payload.front() == mix64(i) && payload.back() == mix64(i), "a message arrived with the wrong content");
}

Deadline patient(Io& io) { return io.within(seconds(60), "bench"); }

// Both sides know each other when this ends; a connection is made once, and is not what is measured.
Task<> meet(Io& io, Peer other) {
  const Status sent = co_await io.send(other, 3, {}, {}, patient(io));
  require(sent.ok(), sent.text());
  auto met = co_await io.recv(other, 3, {}, patient(io));
  require(met.ok(), "the other side did not come");
}

Task<> stream_out(Io& io, Plan plan, Clock::time_point& start) {
  co_await meet(io, 1);
  start = Clock::now();
  std::vector<uint64_t> payload(plan.bytes / 8, 3);
  for (size_t i = 0; i < plan.messages; ++i) {
    stamp(payload, i);
    const Status sent = co_await io.send(1, 1, {}, bytes_of(std::span<const uint64_t>(payload)), patient(io));
    require(sent.ok(), sent.text());
  }
  auto done = co_await io.recv(1, 2, {}, patient(io));
  require(done.ok(), "no final answer");
}

Task<> stream_in(Io& io, Plan plan) {
  co_await meet(io, 0);
  std::vector<uint64_t> payload(plan.bytes / 8);
  for (size_t i = 0; i < plan.messages; ++i) {
    auto received = co_await io.recv(0, 1, std::as_writable_bytes(std::span(payload)), patient(io));
    require(received.ok(), "a message did not arrive");
    check(payload, i);
  }
  const Status sent = co_await io.send(0, 2, {}, {}, patient(io));
  require(sent.ok(), sent.text());
}

Task<> exchange(Io& io, std::vector<uint64_t>& payload, size_t messages, bool first) {
  const Peer other = first ? 1 : 0;
  for (size_t i = 0; i < messages; ++i) {
    if (first) {
      stamp(payload, i);
      const Status sent = co_await io.send(other, 1, {}, bytes_of(std::span<const uint64_t>(payload)), patient(io));
      require(sent.ok(), sent.text());
    }
    auto received = co_await io.recv(other, 1, std::as_writable_bytes(std::span(payload)), patient(io));
    require(received.ok(), "a message did not arrive");
    check(payload, i);
    if (!first) {
      const Status sent = co_await io.send(other, 1, {}, bytes_of(std::span<const uint64_t>(payload)), patient(io));
      require(sent.ok(), sent.text());
    }
  }
}

// The first time round a ring costs a page fault every few messages; that is not what is measured either.
Task<> ping_pong(Io& io, Plan plan, bool first, Clock::time_point& start) {
  std::vector<uint64_t> payload(plan.bytes / 8);
  co_await meet(io, first ? 1 : 0);
  co_await exchange(io, payload, limits::kRingBytes / (plan.bytes + kFrameHeaderBytes), first);
  start = Clock::now();
  co_await exchange(io, payload, plan.messages, first);
}

std::unique_ptr<HostIo> make_node(Peer self, const std::string& driver, const std::shared_ptr<inproc::Hub>& hub) {
  HostIoOptions options;
  options.self = self;
  options.job = "bench";
  options.spin = milliseconds(1);
  auto io = std::make_unique<HostIo>(options);
  if (driver == "inproc") {
    io->add(inproc::make_transport(hub, std::to_string(self), io->bell()));
    return io;
  }
  auto transport = driver == "shm" ? shm::make_transport(io->bell()) : tcp::make_transport("127.0.0.1:0");
  require(transport.ok(), "no transport");
  io->add(std::move(*transport));
  return io;
}

double measure(const std::string& driver, Plan plan, bool latency) {
  const auto hub = inproc::make_hub();
  auto a = make_node(0, driver, hub), b = make_node(1, driver, hub);
  a->learn(1, b->address());
  b->learn(0, a->address());
  Clock::time_point start, other_start;
  std::thread other([&] { b->run(latency ? ping_pong(*b, plan, false, other_start) : stream_in(*b, plan)); });
  a->run(latency ? ping_pong(*a, plan, true, start) : stream_out(*a, plan, start));
  const double elapsed = seconds_since(start);
  other.join();
  return elapsed;
}

void read_fully(int fd, void* into, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(fd, static_cast<char*>(into) + done, bytes - done);
    require(n > 0, "the plain socket ended");
    done += static_cast<size_t>(n);
  }
}
void write_fully(int fd, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd, static_cast<const char*>(from) + done, bytes - done);
    require(n > 0, "the plain socket ended");
    done += static_cast<size_t>(n);
  }
}

// The least a TCP program can do: blocking sockets, one write and one read loop per message.
double measure_plain_sockets(Plan plan, bool latency) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(listener, 1) == 0,
          "listen");
  socklen_t length = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const int out = ::socket(AF_INET, SOCK_STREAM, 0);
  require(::connect(out, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
  const int in = ::accept(listener, nullptr, nullptr);
  const int on = 1;
  for (int fd : {out, in}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto start = Clock::now();
  std::thread other([&] {
    std::vector<uint64_t> payload(plan.bytes / 8);
    for (size_t i = 0; i < plan.messages; ++i) {
      read_fully(in, payload.data(), plan.bytes);
      check(payload, i);
      if (latency) write_fully(in, payload.data(), plan.bytes);
    }
  });
  std::vector<uint64_t> payload(plan.bytes / 8, 3);
  for (size_t i = 0; i < plan.messages; ++i) {
    stamp(payload, i);
    write_fully(out, payload.data(), plan.bytes);
    if (latency) read_fully(out, payload.data(), plan.bytes);
  }
  other.join();
  const double elapsed = seconds_since(start);
  for (int fd : {out, in, listener}) ::close(fd);
  return elapsed;
}

void ring_write(RingWriter& writer, const std::vector<uint64_t>& payload) {
  Bytes rest = bytes_of(std::span<const uint64_t>(payload));
  while (!rest.empty()) {
    rest = rest.subspan(*writer.write(rest));
    writer.publish();
  }
}
void ring_read(RingReader& reader, std::vector<uint64_t>& payload) {
  MutableBytes rest = std::as_writable_bytes(std::span(payload));
  while (!rest.empty()) rest = rest.subspan(*reader.read(rest));
}

double measure_bare_ring(Plan plan, bool latency) {
  const auto there = std::make_unique<Ring>(), back = std::make_unique<Ring>();
  const auto start = Clock::now();
  std::thread other([&] {
    RingReader reader(*there);
    RingWriter writer(*back);
    std::vector<uint64_t> payload(plan.bytes / 8);
    for (size_t i = 0; i < plan.messages; ++i) {
      ring_read(reader, payload);
      check(payload, i);
      if (latency) ring_write(writer, payload);
    }
  });
  RingWriter writer(*there);
  RingReader reader(*back);
  std::vector<uint64_t> payload(plan.bytes / 8, 3);
  for (size_t i = 0; i < plan.messages; ++i) {
    stamp(payload, i);
    ring_write(writer, payload);
    if (latency) ring_read(reader, payload);
  }
  other.join();
  return seconds_since(start);
}

double run_one(const std::string& driver, Plan plan, bool latency) {
  if (driver == "bare ring") return measure_bare_ring(plan, latency);
  return driver == "plain sockets" ? measure_plain_sockets(plan, latency) : measure(driver, plan, latency);
}

}  // namespace

int io(int rounds) {
  const std::vector<std::string> drivers = {"inproc", "shm", "bare ring", "tcp", "plain sockets"};
  fmt::print("{:<14} {:>9}  median (least .. most) of {}\n", "", "bytes", rounds);
  for (const bool latency : {true, false}) {
    const std::vector<Plan> plans =
        latency ? std::vector<Plan>{{64, 20000}} : std::vector<Plan>{{4096, 50000}, {65536, 20000}, {1 << 20, 2000}};
    for (const Plan plan : plans) {
      std::map<std::string, Figure> figures;
      for (int round = 0; round < rounds; ++round) {
        for (const auto& driver : drivers) {
          const double elapsed = run_one(driver, plan, latency);
          const auto n = static_cast<double>(plan.messages);
          figures[driver].add(latency ? elapsed / n / 2 * 1e6 : n * static_cast<double>(plan.bytes) / elapsed / 1e9);
        }
      }
      for (const auto& driver : drivers) {
        fmt::print("{:<14} {:>9}  {} {}\n", driver, plan.bytes, figures[driver].text(),
                   latency ? "us one way" : "GB/s");
      }
    }
  }
  return 0;
}

}  // namespace talweg::bench
