// What every driver must do, run unchanged on each of them, the simulator included.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "io/host_io.h"
#include "io/inproc/transport.h"
#include "io/rpc.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"
#include "sim/world.h"

namespace talweg {
namespace {

using Main = std::function<Task<>(Io&)>;

constexpr Service kEcho = 900;

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  // Runs one node per main, ids from 0, each knowing the others' addresses.
  void run(std::vector<Main> mains) {
    if (GetParam() == "sim")
      run_simulated(mains);
    else
      run_on_threads(mains);
  }

 private:
  void run_simulated(const std::vector<Main>& mains) {
    World world(SimConfig{}, Faults{});
    for (size_t i = 0; i < mains.size(); ++i) {
      world.add_node(static_cast<Peer>(i), [main = mains[i]](Io& io) {
        io.open(kEcho);
        return main(io);
      });
    }
    const Status outcome = world.run();
    EXPECT_TRUE(outcome.ok()) << outcome.text();
  }

  void run_on_threads(const std::vector<Main>& mains) {
    const auto hub = inproc::make_hub();
    std::vector<std::unique_ptr<HostIo>> nodes;
    for (size_t i = 0; i < mains.size(); ++i) {
      HostIoOptions options;
      options.self = static_cast<Peer>(i);
      options.job = "conformance";
      nodes.push_back(std::make_unique<HostIo>(options));
      nodes.back()->open(kEcho);
      nodes.back()->add(make_transport(hub, *nodes.back()));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (size_t j = 0; j < nodes.size(); ++j) nodes[i]->learn(static_cast<Peer>(j), nodes[j]->address());
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      threads.emplace_back([&, i] {
        nodes[i]->run(mains[i](*nodes[i]));
        nodes[i].reset();  // as a process that ends
      });
    }
    for (auto& thread : threads) thread.join();
  }

  std::unique_ptr<Transport> make_transport(const std::shared_ptr<inproc::Hub>& hub, HostIo& io) {
    if (GetParam() == "inproc") return inproc::make_transport(hub, std::to_string(io.self()), io.bell());
    auto made = GetParam() == "shm" ? shm::make_transport(io.bell()) : tcp::make_transport("127.0.0.1:0");
    EXPECT_TRUE(made.ok()) << made.status().text();
    return std::move(*made);
  }
};

Deadline soon(Io& io, const char* what = "test") { return io.within(seconds(20), what, 7); }

std::vector<uint32_t> pattern(size_t words, uint32_t seed) {
  std::vector<uint32_t> values(words);
  for (size_t i = 0; i < words; ++i) values[i] = static_cast<uint32_t>(mix64(i * 977 + seed));
  return values;
}

Task<> send_pattern(Io& io, Peer to, Tag tag, size_t words) {
  const auto values = pattern(words, static_cast<uint32_t>(tag));
  const Status sent = co_await io.send(to, tag, "head", bytes_of(std::span<const uint32_t>(values)), soon(io));
  EXPECT_TRUE(sent.ok()) << sent.text();
}

Task<> expect_pattern(Io& io, Peer from, Tag tag, size_t words) {
  std::vector<uint32_t> values(words);
  auto received = co_await io.recv(from, tag, std::as_writable_bytes(std::span(values)), soon(io));
  EXPECT_TRUE(received.ok()) << received.status().text();
  if (!received.ok()) co_return;
  EXPECT_EQ(received->head, "head");
  EXPECT_EQ(received->body_bytes, words * 4);
  EXPECT_EQ(values, pattern(words, static_cast<uint32_t>(tag)));
}

// Ends the test in order: a node that went early would take its connections along.
Task<> meet(Io& io, Peer other) {
  SendOp send = io.send(other, 999, "", {}, soon(io, "meet"));
  send.start();
  auto met = co_await io.recv(other, 999, {}, soon(io, "meet"));
  EXPECT_TRUE(met.ok()) << met.status().text();
  const Status sent = co_await send;
  EXPECT_TRUE(sent.ok()) << sent.text();
}

TEST_P(Conformance, messages_of_every_size_arrive_whole) {
  static constexpr size_t kWords[] = {0, 1, 16, 1000, 40'000, 1'000'003};
  run({[](Io& io) -> Task<> {
         for (size_t i = 0; i < std::size(kWords); ++i) co_await send_pattern(io, 1, 10 + i, kWords[i]);
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> {
         for (size_t i = 0; i < std::size(kWords); ++i) co_await expect_pattern(io, 0, 10 + i, kWords[i]);
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, receives_meet_messages_by_tag_and_not_by_arrival) {
  run({[](Io& io) -> Task<> {
         for (Tag tag = 1; tag <= 20; ++tag) co_await send_pattern(io, 1, tag, 100 * tag);
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> {
         for (Tag tag = 20; tag >= 1; --tag) co_await expect_pattern(io, 0, tag, 100 * tag);
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, messages_under_one_tag_keep_their_order) {
  run({[](Io& io) -> Task<> {
         for (uint32_t i = 0; i < 500; ++i) {
           const Status sent = co_await io.send(1, 5, std::to_string(i), {}, soon(io));
           EXPECT_TRUE(sent.ok()) << sent.text();
         }
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> {
         for (uint32_t i = 0; i < 500; ++i) {
           auto received = co_await io.recv(0, 5, {}, soon(io));
           EXPECT_TRUE(received.ok()) << received.status().text();
           EXPECT_EQ(received.ok() ? received->head : "", std::to_string(i));
         }
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, both_directions_at_once_with_more_than_the_buffers_hold) {
  const auto exchange = [](Peer other) {
    return [other](Io& io) -> Task<> {
      return [](Io& io, Peer other) -> Task<> {
        TaskSet sends(io);
        for (Tag tag = 1; tag <= 8; ++tag) sends.spawn(send_pattern(io, other, tag, 500'000));
        for (Tag tag = 1; tag <= 8; ++tag) co_await expect_pattern(io, other, tag, 500'000);
        co_await sends.join();
        co_await meet(io, other);
      }(io, other);
    };
  };
  run({exchange(1), exchange(0)});
}

TEST_P(Conformance, a_message_too_large_for_its_buffer_is_an_error_that_says_so) {
  run({[](Io& io) -> Task<> {
         co_await send_pattern(io, 1, 1, 100);
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> {
         std::array<std::byte, 8> small;
         auto received = co_await io.recv(0, 1, small, soon(io, "gradient"));
         EXPECT_FALSE(received.ok());
         EXPECT_EQ(received.status().code(), Code::kInvalid);
         EXPECT_NE(received.status().message().find("gradient"), std::string::npos) << received.status().text();
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, a_passed_deadline_names_peer_purpose_step_and_time) {
  run({[](Io& io) -> Task<> {
         auto received = co_await io.recv(1, 77, {}, io.within(milliseconds(30), "weights", 12));
         EXPECT_FALSE(received.ok());
         EXPECT_EQ(received.status().code(), Code::kDeadline);
         for (const char* part : {"node 1", "weights", "step 12", "0.0"}) {
           EXPECT_NE(received.status().message().find(part), std::string::npos) << received.status().text();
         }
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> { co_await meet(io, 0); }});
}

TEST_P(Conformance, a_receive_withdrawn_by_its_deadline_does_not_take_the_next_message) {
  run({[](Io& io) -> Task<> {
         auto none = co_await io.recv(1, 3, {}, io.within(milliseconds(20), "early"));
         EXPECT_EQ(none.status().code(), Code::kDeadline);
         co_await meet(io, 1);
         co_await expect_pattern(io, 1, 3, 50);
         co_await meet(io, 1);
       },
       [](Io& io) -> Task<> {
         co_await meet(io, 0);
         co_await send_pattern(io, 0, 3, 50);
         co_await meet(io, 0);
       }});
}

Task<> echo(Io& io, Request request) {
  std::vector<std::byte> doubled(request.body.bytes().begin(), request.body.bytes().end());
  doubled.insert(doubled.end(), request.body.bytes().begin(), request.body.bytes().end());
  SendOp answer(
      io, {.to = request.from, .tag = kReplyBit | request.id, .head = "re:" + request.head, .body = {doubled, Bytes()}},
      soon(io));
  const Status sent = co_await answer;
  EXPECT_TRUE(sent.ok()) << sent.text();
}

Task<> one_call(Io& io, uint32_t i) {
  const auto values = pattern(i * 10, i);
  std::vector<uint32_t> twice(values.size() * 2);
  Call request{.to = 0,
               .service = kEcho,
               .body = {bytes_of(std::span<const uint32_t>(values)), Bytes()},
               .reply_into = std::as_writable_bytes(std::span(twice))};
  auto answer = co_await call(io, request, std::to_string(i), soon(io));
  EXPECT_TRUE(answer.ok()) << answer.status().text();
  if (!answer.ok()) co_return;
  EXPECT_EQ(answer->head, "re:" + std::to_string(i));
  EXPECT_EQ(answer->body_bytes, twice.size() * 4);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), twice.begin() + static_cast<long>(values.size())));
}

TEST_P(Conformance, many_calls_at_once_each_get_their_own_reply) {
  const Main client = [](Io& io) -> Task<> {
    TaskSet calls(io);
    for (uint32_t i = 0; i < 200; ++i) calls.spawn(one_call(io, i));
    co_await calls.join();
    co_await meet(io, 0);
  };
  run({[](Io& io) -> Task<> {
         TaskSet server(io);
         server.spawn(serve(io, kEcho, [&io](Request request) { return echo(io, std::move(request)); }));
         for (Peer peer = 1; peer <= 3; ++peer) co_await meet(io, peer);
         io.stop(Status(Code::kCancelled, "done"));
         co_await server.join();
       },
       client, client, client});
}

TEST_P(Conformance, a_call_to_a_service_that_is_not_open_is_refused) {
  run({[](Io& io) -> Task<> { co_await meet(io, 1); },
       [](Io& io) -> Task<> {
         auto answer = co_await call(io, Call{.to = 0, .service = 901}, "", soon(io));
         EXPECT_EQ(answer.status().code(), Code::kNotFound) << answer.status().text();
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, requests_past_the_bound_are_answered_overloaded) {
  run({[](Io& io) -> Task<> { co_await meet(io, 1); },
       [](Io& io) -> Task<> {
         TaskSet calls(io);
         static std::atomic<int> overloaded;
         overloaded = 0;
         for (size_t i = 0; i < limits::kQueuedRequests + 10; ++i) {
           calls.spawn([](Io& io) -> Task<> {
             auto answer = co_await call_once(io, Call{.to = 0, .service = kEcho}, "", io.within(seconds(2), "flood"));
             overloaded += answer.status().code() == Code::kOverloaded;
           }(io));
         }
         co_await calls.join();
         EXPECT_EQ(overloaded, 10);
         co_await meet(io, 0);
       }});
}

TEST_P(Conformance, a_peer_that_ends_fails_the_receives_posted_for_it) {
  run({[](Io& io) -> Task<> {
         co_await send_pattern(io, 1, 1, 10);
         auto never = co_await io.recv(1, 2, {}, soon(io, "answer"));
         EXPECT_EQ(never.status().code(), Code::kUnavailable) << never.status().text();
         EXPECT_NE(never.status().message().find("node 1"), std::string::npos) << never.status().text();
       },
       [](Io& io) -> Task<> { co_await expect_pattern(io, 0, 1, 10); }});
}

TEST_P(Conformance, stop_ends_every_wait_at_once) {
  run({[](Io& io) -> Task<> {
    TaskSet waits(io);
    static std::atomic<int> cancelled;
    cancelled = 0;
    for (Tag tag = 0; tag < 5; ++tag) {
      waits.spawn([](Io& io, Tag tag) -> Task<> {
        auto received = co_await io.recv(0, 100 + tag, {}, soon(io));
        cancelled += received.status().code() == Code::kCancelled;
      }(io, tag));
    }
    const Status slept = co_await io.sleep(milliseconds(5));
    EXPECT_TRUE(slept.ok());
    EXPECT_EQ(io.waits(milliseconds(1)).size(), 5u);
    io.stop(Status(Code::kCancelled, "enough"));
    co_await waits.join();
    EXPECT_EQ(cancelled, 5);
    auto late = co_await io.recv(0, 1, {}, soon(io));
    EXPECT_EQ(late.status().code(), Code::kCancelled);
  }});
}

TEST_P(Conformance, a_stall_report_names_whom_a_wait_is_for_its_purpose_step_and_age_and_no_idle_service) {
  run({[](Io& io) -> Task<> {
    TaskSet waits(io);
    waits.spawn([](Io& io) -> Task<> {
      auto received = co_await io.recv(3, 100, {}, io.within(seconds(20), "weights", 12));
      EXPECT_EQ(received.status().code(), Code::kCancelled);
    }(io));
    waits.spawn([](Io& io) -> Task<> {
      auto request = co_await io.accept(kEcho, Deadline{Time::max(), "requests"});
      EXPECT_EQ(request.status().code(), Code::kCancelled);
    }(io));
    const Status slept = co_await io.sleep(milliseconds(30));
    EXPECT_TRUE(slept.ok());
    const auto stalls = io.stalls(milliseconds(20));
    EXPECT_EQ(stalls.size(), 1u);
    for (const char* part : {"node 3", "weights", "step 12", "for 0."}) {
      EXPECT_NE(stalls.front().find(part), std::string::npos) << stalls.front();
    }
    EXPECT_EQ(io.stalls(seconds(10)).size(), 0u);
    io.stop(Status(Code::kCancelled, "enough"));
    co_await waits.join();
  }});
}

TEST_P(Conformance, a_signal_wakes_all_that_wait_on_it) {
  run({[](Io& io) -> Task<> {
    Signal signal;
    int woken = 0;
    TaskSet waiters(io);
    for (int i = 0; i < 3; ++i) {
      waiters.spawn([](Io& io, Signal& signal, int& woken) -> Task<> {
        const Status waited = co_await io.wait(signal, soon(io));
        EXPECT_TRUE(waited.ok());
        ++woken;
      }(io, signal, woken));
    }
    const Status slept = co_await io.sleep(milliseconds(1));
    EXPECT_TRUE(slept.ok());
    EXPECT_EQ(woken, 0);
    signal.notify();
    co_await waiters.join();
    EXPECT_EQ(woken, 3);
  }});
}

TEST_P(Conformance, compute_runs_the_work_and_returns_after_it) {
  run({[](Io& io) -> Task<> {
    int done = 0;
    co_await io.compute(Cost{.flops = 10}, [&done] { done = 1; });
    EXPECT_EQ(done, 1);
    co_await io.compute(Cost{.flops = 1e9}, [&done] { done = 2; });
    EXPECT_EQ(done, 2);
  }});
}

INSTANTIATE_TEST_SUITE_P(Drivers, Conformance, testing::Values("inproc", "shm", "tcp", "sim"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace talweg
