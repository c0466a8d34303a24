// What the simulated driver promises: a run is a function of its seed, time has closed forms, faults do what they say.
#include "sim/world.h"

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "io/rpc.h"
#include "sim/network.h"

namespace talweg {
namespace {

using google::protobuf::StringValue;

constexpr Tag kData = 7;
constexpr Service kEcho = 100;
constexpr size_t kMegabyte = 1'000'000;

SimConfig one_byte_per_ns() {
  SimConfig config;
  config.network.bandwidth_gbps = 8;
  config.network.latency = milliseconds(1);
  config.network.same_host_bandwidth_gbps = 80;
  config.network.same_host_latency = microseconds(1);
  config.limits.virtual_time = seconds(1000);
  return config;
}

Task<> idle(Io&) { co_return; }

Task<> send_bytes(Io& io, Peer to, size_t bytes, int count = 1) {
  const std::vector<std::byte> body(bytes);
  for (int i = 0; i < count; ++i) {
    const Status sent = co_await io.send(to, kData, "", body, io.within(seconds(900), "data"));
    EXPECT_TRUE(sent.ok()) << sent.text();
  }
}

Task<Status> receive_bytes(Io& io, Peer from, size_t bytes) {
  std::vector<std::byte> into(bytes);
  Result<Received> received = co_await io.recv(from, kData, into, io.within(seconds(900), "data"));
  if (!received.ok()) co_return received.status();
  EXPECT_EQ(received->body_bytes, bytes);
  co_return Status();
}

Task<> receive_from(Io& io, Peer from, size_t bytes) {
  const Status status = co_await receive_bytes(io, from, bytes);
  EXPECT_TRUE(status.ok()) << status.text();
}

Task<> receive_from_each(Io& io, std::vector<Peer> senders, size_t bytes) {
  std::vector<Task<Status>> receives;
  for (const Peer sender : senders) receives.push_back(receive_bytes(io, sender, bytes));
  const Status status = co_await all(io, std::move(receives));
  EXPECT_TRUE(status.ok()) << status.text();
}

// Answers `count` requests with their own head, then ends.
Task<> echo(Io& io, int count) {
  io.open(kEcho);
  for (int i = 0; i < count; ++i) {
    Result<Request> request = co_await io.accept(kEcho, Deadline{Time::max(), "requests"});
    if (!request.ok()) co_return;
    StringValue answer;
    answer.set_value(request->head);
    const Status sent = co_await reply(io, *request, answer, {}, io.within(seconds(10), "echo"));
    static_cast<void>(sent);
  }
}

Task<Status> call_echo(Io& io, Peer to, std::string text, Duration patience) {
  Call request;
  request.to = to;
  request.service = kEcho;
  Result<Received> received = co_await call(io, request, text, io.within(patience, "echo"));
  if (!received.ok()) co_return received.status();
  StringValue answer;
  CO_TRY(parse_head(received->head, &answer, "echo"));
  EXPECT_EQ(answer.value(), text);
  co_return Status();
}

double run_seconds(World& world) {
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return to_seconds(world.now().time_since_epoch());
}

void expect_near(double seconds, double expected) { EXPECT_NEAR(seconds, expected, expected * 0.01); }

// ---- a run is a function of its seed ----

struct Outcome {
  uint64_t hash;
  std::vector<Peer> order;
  Time end;
};

// Everyone sends to everyone, with work, stragglers, random bytes and lost connections in between.
Task<> chatter(Io& io, Peer nodes, std::vector<Peer>* order) {
  order->push_back(io.self());
  for (int round = 0; round < 5; ++round) {
    co_await io.compute(Cost{.flops = 1e6}, [] {});
    const std::string head = std::to_string(io.rng().next());
    for (Peer peer = 0; peer < nodes; ++peer) {
      const Status sent = co_await io.send(peer, kData, head, {}, io.within(seconds(1), "chatter"));
      static_cast<void>(sent);
    }
    for (Peer peer = 0; peer < nodes; ++peer) {
      Result<Received> received = co_await io.recv(peer, kData, {}, io.within(milliseconds(20), "chatter"));
      static_cast<void>(received);
    }
  }
}

Outcome run_chatter(uint64_t seed) {
  SimConfig config;
  config.seed = seed;
  config.compute.straggler_sigma = 0.3;
  config.nodes_per_host = 2;
  config.clock_offset = seconds(5);
  Faults faults;
  faults.random_drops = {.per_second = 1000, .until = seconds(1)};
  faults.crash.push_back({.node = 2, .at = microseconds(300), .restart_after = milliseconds(1)});
  std::vector<Peer> order;
  World world(config, faults);
  for (Peer id = 0; id < 6; ++id) {
    world.add_node(id, [&order](Io& io) { return chatter(io, 6, &order); });
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return {world.trace_hash(), order, world.now()};
}

TEST(World, the_same_seed_gives_the_same_run) {
  const Outcome first = run_chatter(42), second = run_chatter(42);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.order, second.order);
  EXPECT_EQ(first.end, second.end);
}

TEST(World, another_seed_gives_another_run) {
  EXPECT_NE(run_chatter(42).hash, run_chatter(43).hash);
  EXPECT_NE(run_chatter(42).end, run_chatter(43).end);
}

TEST(World, the_trace_hash_sees_every_byte_of_a_message) {
  const auto hash_of = [](const std::string& text) {
    World world(SimConfig(), {});
    world.add_node(0, [&text](Io& io) -> Task<> {
      const Status sent = co_await io.send(1, kData, "", bytes_of(text), io.within(seconds(1), "data"));
      EXPECT_TRUE(sent.ok());
    });
    world.add_node(1, [](Io& io) -> Task<> {
      Result<Received> received = co_await io.recv_owned(0, kData, io.within(seconds(1), "data"));
      EXPECT_TRUE(received.ok());
    });
    EXPECT_TRUE(world.run().ok());
    return world.trace_hash();
  };
  EXPECT_EQ(hash_of("one byte"), hash_of("one byte"));
  EXPECT_NE(hash_of("one byte"), hash_of("one bytE"));
}

TEST(World, ready_coroutines_run_in_an_order_drawn_from_the_seed) {
  std::vector<std::vector<Peer>> orders;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SimConfig config;
    config.seed = seed;
    std::vector<Peer> order;
    World world(config, {});
    for (Peer id = 0; id < 8; ++id) {
      world.add_node(id, [&order](Io& io) -> Task<> {
        order.push_back(io.self());
        co_return;
      });
    }
    EXPECT_TRUE(world.run().ok());
    orders.push_back(order);
  }
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(std::unique(orders.begin(), orders.end()), orders.end());
}

TEST(World, each_node_has_random_numbers_of_its_own) {
  std::vector<uint64_t> drawn;
  World world(SimConfig(), {});
  for (Peer id = 0; id < 4; ++id) {
    world.add_node(id, [&drawn](Io& io) -> Task<> {
      drawn.push_back(io.rng().next());
      co_return;
    });
  }
  EXPECT_TRUE(world.run().ok());
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end());
}

// ---- time ----

TEST(World, a_message_takes_its_bytes_over_the_bandwidth_and_one_latency) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) { return send_bytes(io, 1, 10 * kMegabyte); });
  world.add_node(1, [](Io& io) { return receive_from(io, 0, 10 * kMegabyte); });
  expect_near(run_seconds(world), 0.010 + 0.001);
  EXPECT_EQ(world.stats(0).io.messages_sent, 1u);
  EXPECT_EQ(world.stats(1).io.bytes_received, 10 * kMegabyte + kFrameHeaderBytes);
}

TEST(World, a_send_completes_when_its_last_byte_has_left) {
  Time sent_at{};
  World world(one_byte_per_ns(), {});
  world.add_node(0, [&sent_at](Io& io) -> Task<> {
    co_await send_bytes(io, 1, 10 * kMegabyte);
    sent_at = io.now();
  });
  world.add_node(1, [](Io& io) { return receive_from(io, 0, 10 * kMegabyte); });
  EXPECT_TRUE(world.run().ok());
  expect_near(to_seconds(sent_at.time_since_epoch()), 0.010);
}

TEST(World, many_senders_to_one_receiver_share_its_bandwidth) {
  World world(one_byte_per_ns(), {});
  std::vector<Peer> senders;
  for (Peer id = 1; id <= 8; ++id) {
    senders.push_back(id);
    world.add_node(id, [](Io& io) { return send_bytes(io, 0, 10 * kMegabyte); });
  }
  world.add_node(0, [&senders](Io& io) { return receive_from_each(io, senders, 10 * kMegabyte); });
  expect_near(run_seconds(world), 8 * 0.010 + 0.001);
}

TEST(World, one_sender_to_many_receivers_is_bound_by_its_own_bandwidth) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) -> Task<> {
    TaskSet sends(io);
    for (Peer to = 1; to <= 8; ++to) sends.spawn(send_bytes(io, to, 10 * kMegabyte));
    co_await sends.join();
  });
  for (Peer id = 1; id <= 8; ++id) {
    world.add_node(id, [](Io& io) { return receive_from(io, 0, 10 * kMegabyte); });
  }
  expect_near(run_seconds(world), 8 * 0.010 + 0.001);
}

TEST(World, the_messages_of_a_ring_step_go_beside_each_other) {
  constexpr Peer kNodes = 16;
  World world(one_byte_per_ns(), {});
  for (Peer id = 0; id < kNodes; ++id) {
    world.add_node(id, [](Io& io) -> Task<> {
      TaskSet sends(io);
      sends.spawn(send_bytes(io, (io.self() + 1) % kNodes, 10 * kMegabyte));
      co_await receive_from(io, (io.self() + kNodes - 1) % kNodes, 10 * kMegabyte);
      co_await sends.join();
    });
  }
  expect_near(run_seconds(world), 0.010 + 0.001);
}

TEST(World, nodes_of_one_host_do_not_use_the_network_card) {
  SimConfig config = one_byte_per_ns();
  config.nodes_per_host = 2;
  World world(config, {});
  world.add_node(0, [](Io& io) -> Task<> {
    TaskSet sends(io);
    sends.spawn(send_bytes(io, 1, 10 * kMegabyte));  // within the host: a tenth of the time
    sends.spawn(send_bytes(io, 2, 10 * kMegabyte));
    co_await sends.join();
  });
  double local_s = 0;
  world.add_node(1, [&local_s](Io& io) -> Task<> {
    co_await receive_from(io, 0, 10 * kMegabyte);
    local_s = to_seconds(io.now().time_since_epoch());
  });
  world.add_node(2, [](Io& io) { return receive_from(io, 0, 10 * kMegabyte); });
  expect_near(run_seconds(world), 0.010 + 0.001);
  expect_near(local_s, 0.001);
}

TEST(World, messages_of_one_sender_arrive_in_order) {
  constexpr int kCount = 200;
  World world(one_byte_per_ns(), {});
  for (const Peer sender : {Peer{1}, Peer{2}}) {
    world.add_node(sender, [](Io& io) -> Task<> {
      for (int i = 0; i < kCount; ++i) {
        const std::vector<std::byte> body(io.rng().below(100'000));
        const Status sent = co_await io.send(0, kData, std::to_string(i), body, io.within(seconds(10), "data"));
        EXPECT_TRUE(sent.ok());
      }
    });
  }
  world.add_node(0, [](Io& io) -> Task<> {
    for (int i = 0; i < kCount; ++i) {
      for (Peer sender = 1; sender <= 2; ++sender) {
        Result<Received> received = co_await io.recv_owned(sender, kData, io.within(seconds(10), "data"));
        EXPECT_TRUE(received.ok());
        EXPECT_EQ(received.ok() ? received->head : "", std::to_string(i));
      }
    }
  });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_node_can_send_to_itself) {
  World world(one_byte_per_ns(), {});
  world.add_node(5, [](Io& io) -> Task<> {
    co_await send_bytes(io, 5, 1000);
    co_await receive_from(io, 5, 1000);
  });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, clocks_of_nodes_differ_when_asked_to) {
  SimConfig config;
  config.clock_offset = seconds(100);
  std::vector<Time> starts(2);
  World world(config, {});
  for (Peer id = 0; id < 2; ++id) {
    world.add_node(id, [&starts](Io& io) -> Task<> {
      starts[io.self()] = io.now();
      EXPECT_TRUE((co_await io.sleep(seconds(3))).ok());
      EXPECT_EQ(io.now() - starts[io.self()], seconds(3));
    });
  }
  expect_near(run_seconds(world), 3);
  EXPECT_NE(starts[0], starts[1]);
}

// ---- work ----

Task<> work(Io& io, double flops, double bytes, int pieces) {
  for (int i = 0; i < pieces; ++i) co_await io.compute(Cost{.flops = flops, .bytes = bytes}, [] {});
}

double work_seconds(SimConfig config, Faults faults, double flops, double bytes, int pieces) {
  World world(config, faults);
  world.add_node(0, [=](Io& io) { return work(io, flops, bytes, pieces); });
  return run_seconds(world);
}

TEST(World, work_takes_the_longer_of_its_operations_and_its_bytes) {
  SimConfig config;
  config.compute.gflops = 2;
  config.compute.memory_gbytes_per_s = 5;
  expect_near(work_seconds(config, {}, 4e9, 1e9, 1), 2);
  expect_near(work_seconds(config, {}, 1e9, 20e9, 1), 4);
}

TEST(World, pieces_of_work_of_one_node_queue_while_its_tasks_go_on) {
  SimConfig config;
  config.compute.gflops = 1;
  double slept_s = 0;
  World world(config, {});
  world.add_node(0, [&slept_s](Io& io) -> Task<> {
    TaskSet pieces(io);
    for (int i = 0; i < 3; ++i) pieces.spawn(work(io, 1e9, 0, 1));
    EXPECT_TRUE((co_await io.sleep(milliseconds(500))).ok());
    slept_s = to_seconds(io.now().time_since_epoch());
    co_await pieces.join();
  });
  expect_near(run_seconds(world), 3);
  expect_near(slept_s, 0.5);
  EXPECT_EQ(world.stats(0).compute_busy, seconds(3));
}

TEST(World, stragglers_slow_nodes_and_slow_spells_take_longer) {
  SimConfig config;
  config.compute.gflops = 1;
  expect_near(work_seconds(config, {}, 1e9, 0, 100), 100);

  SimConfig straggling = config;
  straggling.compute.straggler_sigma = 1;  // the mean factor is exp(1/2)
  EXPECT_GT(work_seconds(straggling, {}, 1e9, 0, 100), 120);

  SimConfig slow_node = config;
  slow_node.compute.slow_nodes = {0};
  slow_node.compute.slow_factor = 3;
  expect_near(work_seconds(slow_node, {}, 1e9, 0, 100), 300);

  Faults spell;
  spell.slow.push_back({.node = 0, .factor = 2, .at = seconds(50), .lasts = seconds(20)});
  expect_near(work_seconds(config, spell, 1e9, 0, 100), 110);
}

TEST(World, work_whose_task_is_gone_ends_without_harm) {
  SimConfig config;
  config.compute.gflops = 1;
  World world(config, {});
  world.add_node(0, [](Io& io) -> Task<> {
    {
      TaskSet abandoned(io);
      abandoned.spawn(work(io, 1e9, 0, 1));
      EXPECT_TRUE((co_await io.sleep(milliseconds(1))).ok());
    }
    co_await work(io, 1e9, 0, 1);
  });
  expect_near(run_seconds(world), 2);
}

// ---- deadlines and limits ----

TEST(World, a_deadline_names_the_peer_the_purpose_and_the_time) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) -> Task<> {
    Result<Received> received = co_await io.recv(3, kData, {}, io.within(milliseconds(1500), "gradient", 12));
    EXPECT_EQ(received.status().code(), Code::kDeadline);
    EXPECT_EQ(received.status().message(), "receive from node 3 of 'gradient' at step 12, for 1.500 s");
  });
  world.add_node(3, [](Io& io) -> Task<> { EXPECT_TRUE((co_await io.sleep(seconds(2))).ok()); });
  expect_near(run_seconds(world), 2);
}

TEST(World, a_run_in_which_nothing_can_happen_ends_with_all_waits_named) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) -> Task<> {
    EXPECT_TRUE((co_await io.sleep(seconds(1))).ok());
    Result<Received> received = co_await io.recv(1, kData, {}, Deadline{Time::max(), "gradient"});
    static_cast<void>(received);
  });
  world.add_node(1, [](Io& io) -> Task<> {
    Result<Received> received = co_await io.recv(0, kData, {}, Deadline{Time::max(), "weights"});
    static_cast<void>(received);
  });
  const Status status = world.run();
  EXPECT_EQ(status.code(), Code::kDeadline);
  EXPECT_NE(status.message().find("nothing can happen any more"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("node 0: receive from node 1 of 'gradient', for 0.000 s"), std::string::npos);
  EXPECT_NE(status.message().find("node 1: receive from node 0 of 'weights', for 1.000 s"), std::string::npos);
}

TEST(World, a_run_that_goes_on_for_ever_ends_at_its_limits) {
  const auto run = [](SimLimits limits, Duration pause) {
    SimConfig config;
    config.limits = limits;
    World world(config, {});
    world.add_node(0, [pause](Io& io) -> Task<> {
      while (true) EXPECT_TRUE((co_await io.sleep(pause, "tick")).ok());
    });
    return world.run();
  };
  const Status late = run({.virtual_time = seconds(60)}, seconds(1));
  EXPECT_NE(late.message().find("virtual time"), std::string::npos);
  EXPECT_NE(late.message().find("node 0: sleep 'tick'"), std::string::npos) << late.message();
  const Status busy = run({.events = 1000}, Duration(0));
  EXPECT_NE(busy.message().find("1000 events"), std::string::npos) << busy.message();
}

TEST(World, faults_must_name_nodes_that_exist) {
  Faults faults;
  faults.crash.push_back({.node = 9, .at = seconds(1), .restart_after = std::nullopt});
  World world(SimConfig(), faults);
  world.add_node(0, idle);
  EXPECT_EQ(world.run().message(), "faults.crash: there is no node 9");
}

TEST(World, a_send_to_a_node_that_is_not_there_fails) {
  World world(SimConfig(), {});
  world.add_node(0, [](Io& io) -> Task<> {
    const Status sent = co_await io.send(8, kData, "", {}, io.within(seconds(1), "data"));
    EXPECT_EQ(sent.code(), Code::kNotFound);
  });
  EXPECT_TRUE(world.run().ok());
}

// ---- faults ----

TEST(World, what_a_node_sent_before_its_end_arrives_and_then_its_connections_are_lost) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) { return send_bytes(io, 1, kMegabyte, 3); });
  world.add_node(1, [](Io& io) -> Task<> {
    for (int i = 0; i < 3; ++i) co_await receive_from(io, 0, kMegabyte);
    const Status fourth = co_await receive_bytes(io, 0, kMegabyte);
    EXPECT_EQ(fourth.code(), Code::kUnavailable);
    EXPECT_EQ(fourth.message(), "data: connection to node 0 lost");
    const Time asked = io.now();
    const Status sent = co_await io.send(0, kData, "", {}, io.within(seconds(1), "data"));
    EXPECT_EQ(sent.code(), Code::kUnavailable);
    EXPECT_EQ(io.now() - asked, milliseconds(2));  // a round trip
  });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_crash_destroys_the_tasks_of_its_node_and_tells_its_peers_one_latency_later) {
  struct Marker {
    bool* destroyed;
    ~Marker() { *destroyed = true; }
  };
  bool destroyed = false;
  Faults faults;
  faults.crash.push_back({.node = 0, .at = seconds(1), .restart_after = std::nullopt});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [&destroyed](Io& io) -> Task<> {
    const Marker marker{&destroyed};
    co_await send_bytes(io, 1, 1000);
    co_await receive_from(io, 1, 1000);
    ADD_FAILURE() << "the node must not get here";
  });
  world.add_node(1, [&destroyed](Io& io) -> Task<> {
    co_await receive_from(io, 0, 1000);
    const Status status = co_await receive_bytes(io, 0, 1000);
    EXPECT_EQ(status.code(), Code::kUnavailable) << status.text();
    EXPECT_EQ(io.now(), Time(milliseconds(1001)));
    EXPECT_TRUE(destroyed);
  });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_crash_in_the_middle_of_everything_leaves_nothing_dangling) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SimConfig config = one_byte_per_ns();
    config.seed = seed;
    config.nodes_per_host = 1 + static_cast<int64_t>(seed % 3);
    config.network.bandwidth_gbps = 1;  // sends outlast their deadlines
    Rng rng(seed);
    Faults faults;
    for (int i = 0; i < 6; ++i) {
      const Duration at(static_cast<Duration::rep>(rng.below(40'000'000)));
      faults.crash.push_back({.node = static_cast<Peer>(rng.below(5)), .at = at, .restart_after = at / 7});
      faults.partition.push_back({.nodes = {static_cast<Peer>(rng.below(5))}, .at = at * 2, .lasts = milliseconds(3)});
    }
    faults.random_drops = {.per_second = 300, .until = seconds(1)};
    World world(config, faults);
    for (Peer id = 0; id < 5; ++id) {
      world.add_node(id, [](Io& io) -> Task<> {
        TaskSet tasks(io);
        for (Peer peer = 0; peer < 5; ++peer) {
          tasks.spawn([](Io& io, Peer peer) -> Task<> {
            std::vector<std::byte> body(io.rng().below(200'000)), into(200'000);
            for (int i = 0; i < 10; ++i) {
              RecvOp receive = io.recv(peer, kData, into, io.within(milliseconds(5), "data"));
              receive.start();
              const Status sent = co_await io.send(peer, kData, "", body, io.within(milliseconds(5), "data"));
              static_cast<void>(sent);
              co_await io.compute(Cost{.flops = 1e5}, [] {});
              Result<Received> received = co_await receive;
              static_cast<void>(received);
            }
          }(io, peer));
        }
        co_await tasks.join();
      });
    }
    const Status status = world.run();
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(World, a_message_kept_from_an_earlier_life_does_not_meet_a_receive_of_the_next) {
  std::string head;
  Faults faults;
  faults.crash.push_back({.node = 0, .at = milliseconds(5), .restart_after = milliseconds(1)});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    const Status sent = co_await io.send(1, kData, std::to_string(io.incarnation()), {}, io.within(seconds(1), "data"));
    EXPECT_TRUE(sent.ok()) << sent.text();
    const Status slept = co_await io.sleep(milliseconds(50));
    EXPECT_TRUE(slept.ok());
  });
  world.add_node(1, [&head](Io& io) -> Task<> {
    const Status slept = co_await io.sleep(milliseconds(20));
    EXPECT_TRUE(slept.ok());
    Result<Received> received = co_await io.recv_owned(0, kData, io.within(seconds(1), "data"));
    EXPECT_TRUE(received.ok()) << received.status().text();
    if (received.ok()) head = received->head;
  });
  EXPECT_TRUE(world.run().ok());
  EXPECT_EQ(head, "2");
}

TEST(World, a_restarted_node_has_a_higher_incarnation_and_nothing_of_the_old_one_arrives) {
  std::vector<Incarnation> incarnations;
  std::vector<std::string> heads;
  Faults faults;
  // The old life's message is under way for 10 ms when it crashes at 5 ms.
  faults.crash.push_back({.node = 0, .at = milliseconds(5), .restart_after = milliseconds(1)});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [&incarnations](Io& io) -> Task<> {
    incarnations.push_back(io.incarnation());
    const std::vector<std::byte> body(10 * kMegabyte);
    const Status sent =
        co_await io.send(1, kData, std::to_string(io.incarnation()), body, io.within(seconds(1), "data"));
    EXPECT_TRUE(sent.ok()) << sent.text();
  });
  world.add_node(1, [&heads](Io& io) -> Task<> {
    while (heads.empty()) {
      Result<Received> received = co_await io.recv_owned(0, kData, io.within(seconds(1), "data"));
      if (received.ok()) heads.push_back(received->head);
      EXPECT_TRUE(received.ok() || received.status().code() == Code::kUnavailable) << received.status().text();
    }
  });
  EXPECT_TRUE(world.run().ok());
  EXPECT_EQ(incarnations, (std::vector<Incarnation>{1, 2}));
  EXPECT_EQ(heads, (std::vector<std::string>{"2"}));
  EXPECT_EQ(world.stats(0).incarnations, 2u);
}

TEST(World, a_call_to_a_node_that_is_down_succeeds_once_it_is_back) {
  Faults faults;
  faults.crash.push_back({.node = 1, .at = Duration(0), .restart_after = milliseconds(300)});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    EXPECT_TRUE((co_await io.sleep(milliseconds(1))).ok());
    const Status once = co_await io.send(1, kData, "", {}, io.within(seconds(1), "data"));
    EXPECT_EQ(once.text(), "unavailable: node 1 does not answer");
    const Status called = co_await call_echo(io, 1, "hello", seconds(5));
    EXPECT_TRUE(called.ok()) << called.text();
    EXPECT_GE(io.now(), Time(milliseconds(300)));
  });
  world.add_node(1, [](Io& io) { return echo(io, 1); });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_lost_connection_fails_what_is_pending_and_a_call_is_repeated) {
  Faults faults;
  faults.drop_connection.push_back({.a = 0, .b = 1, .at = microseconds(1500)});  // the reply is under way
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    Call request;
    request.to = 1;
    request.service = kEcho;
    Result<Received> once = co_await call_once(io, request, "hello", io.within(seconds(1), "echo"));
    EXPECT_EQ(once.status().text(), "unavailable: echo: connection to node 1 lost");
    EXPECT_EQ(io.now(), Time(microseconds(1500)));
    const Status called = co_await call_echo(io, 1, "again", seconds(1));
    EXPECT_TRUE(called.ok()) << called.text();
    EXPECT_GE(io.now(), Time(microseconds(1500 + 3000)));  // one latency to connect, two for the call
    EXPECT_LE(io.now(), Time(microseconds(1500 + 3001)));
  });
  world.add_node(1, [](Io& io) { return echo(io, 2); });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_lost_connection_fails_sends_in_progress_and_behind_them) {
  Faults faults;
  faults.drop_connection.push_back({.a = 0, .b = 1, .at = milliseconds(5)});
  int failed = 0;
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [&failed](Io& io) -> Task<> {
    TaskSet sends(io);
    for (int i = 0; i < 3; ++i) {
      sends.spawn([](Io& io, int* failed) -> Task<> {
        const std::vector<std::byte> body(10 * kMegabyte);
        const Status sent = co_await io.send(1, kData, "", body, io.within(seconds(1), "data"));
        EXPECT_EQ(sent.text(), "unavailable: connection to node 1 lost");
        EXPECT_EQ(io.now(), Time(milliseconds(5)));
        ++*failed;
      }(io, &failed));
    }
    co_await sends.join();
  });
  world.add_node(1, [](Io& io) -> Task<> {
    const Status status = co_await receive_bytes(io, 0, 10 * kMegabyte);
    EXPECT_EQ(status.code(), Code::kUnavailable);
  });
  EXPECT_TRUE(world.run().ok());
  EXPECT_EQ(failed, 3);
}

TEST(World, a_send_given_up_half_way_costs_the_connection_and_one_not_begun_costs_nothing) {
  World world(one_byte_per_ns(), {});
  world.add_node(0, [](Io& io) -> Task<> {
    const std::vector<std::byte> body(10 * kMegabyte);
    SendOp first = io.send(1, kData, "first", body, io.within(milliseconds(50), "data"));
    SendOp second = io.send(1, kData, "second", body, io.within(milliseconds(5), "data"));
    first.start();
    const Status not_begun = co_await second;
    EXPECT_EQ(not_begun.text(), "deadline passed: send to node 1 of 'data', for 0.005 s");
    const Status whole = co_await first;
    EXPECT_TRUE(whole.ok()) << whole.text();
    const Status half = co_await io.send(1, kData, "third", body, io.within(milliseconds(5), "data"));
    EXPECT_EQ(half.code(), Code::kDeadline);
  });
  world.add_node(1, [](Io& io) -> Task<> {
    Result<Received> first = co_await io.recv_owned(0, kData, io.within(seconds(1), "data"));
    EXPECT_TRUE(first.ok());
    EXPECT_EQ(first.ok() ? first->head : "", "first");
    Result<Received> second = co_await io.recv_owned(0, kData, io.within(seconds(1), "data"));
    EXPECT_EQ(second.status().code(), Code::kUnavailable);
    EXPECT_LT(io.now(), Time(milliseconds(20)));
  });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, a_partition_delays_messages_and_loses_none) {
  Faults faults;
  faults.partition.push_back({.nodes = {1}, .at = milliseconds(10), .lasts = milliseconds(500)});
  std::vector<std::string> heads;
  Time last{};
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    for (int i = 0; i < 20; ++i) {  // some before, one or two under way, most during
      const Status sent = co_await io.send(1, kData, std::to_string(i), {}, io.within(seconds(1), "data"));
      EXPECT_TRUE(sent.ok()) << sent.text();
      EXPECT_TRUE((co_await io.sleep(microseconds(700))).ok());
    }
    const Status through = co_await io.send(2, kData, "not cut", {}, io.within(seconds(1), "data"));
    EXPECT_TRUE(through.ok());
  });
  world.add_node(1, [&](Io& io) -> Task<> {
    for (int i = 0; i < 20; ++i) {
      Result<Received> received = co_await io.recv(0, kData, {}, io.within(seconds(2), "data"));
      EXPECT_TRUE(received.ok()) << received.status().text();
      if (received.ok()) heads.push_back(received->head);
      if (i == 14) last = io.now();
    }
  });
  world.add_node(2, [](Io& io) -> Task<> {
    Result<Received> received = co_await io.recv(0, kData, {}, io.within(seconds(2), "data"));
    EXPECT_TRUE(received.ok());
  });
  EXPECT_TRUE(world.run().ok());
  ASSERT_EQ(heads.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(heads[static_cast<size_t>(i)], std::to_string(i));
  EXPECT_GE(last, Time(milliseconds(510)));
}

TEST(World, a_partition_outlasts_the_deadlines_of_those_it_cuts_off) {
  Faults faults;
  faults.partition.push_back({.nodes = {1}, .at = Duration(0), .lasts = seconds(10)});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    const Status called = co_await call_echo(io, 1, "hello", seconds(2));
    EXPECT_EQ(called.code(), Code::kDeadline);
    EXPECT_EQ(io.now(), Time(seconds(2)));
    const Status later = co_await call_echo(io, 1, "hello", seconds(20));
    EXPECT_TRUE(later.ok()) << later.text();
    EXPECT_GE(io.now(), Time(seconds(10)));
  });
  world.add_node(1, [](Io& io) { return echo(io, 1); });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, the_news_of_a_crash_does_not_pass_a_partition) {
  Faults faults;
  faults.partition.push_back({.nodes = {1}, .at = milliseconds(100), .lasts = seconds(1)});
  faults.crash.push_back({.node = 1, .at = milliseconds(200), .restart_after = milliseconds(50)});
  World world(one_byte_per_ns(), faults);
  world.add_node(0, [](Io& io) -> Task<> {
    const Status called = co_await call_echo(io, 1, "first", seconds(1));
    EXPECT_TRUE(called.ok()) << called.text();
    const Status waited = co_await receive_bytes(io, 1, 1);
    EXPECT_EQ(waited.code(), Code::kUnavailable);
    EXPECT_GE(io.now(), Time(milliseconds(1100)));
    const Status again = co_await call_echo(io, 1, "second", seconds(5));
    EXPECT_TRUE(again.ok()) << again.text();
  });
  world.add_node(1, [](Io& io) { return echo(io, io.incarnation() == 1 ? 2 : 1); });
  EXPECT_TRUE(world.run().ok());
}

TEST(World, random_drops_lose_no_repeated_call) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimConfig config;
    config.seed = seed;
    Faults faults;
    faults.random_drops = {.per_second = 200, .until = seconds(2)};
    World world(config, faults);
    world.add_node(0, [](Io& io) -> Task<> {
      io.open(kEcho);
      TaskSet server(io);
      server.spawn(serve(io, kEcho, [&io](Request request) -> Task<> {
        StringValue answer;
        answer.set_value(request.head);
        const Status sent = co_await reply(io, request, answer, {}, io.within(seconds(1), "echo"));
        static_cast<void>(sent);
      }));
      EXPECT_TRUE((co_await io.sleep(seconds(60))).ok());
      io.stop(Status(Code::kCancelled, "done"));
      co_await server.join();
    });
    for (Peer id = 1; id <= 4; ++id) {
      world.add_node(id, [](Io& io) -> Task<> {
        for (int i = 0; i < 100; ++i) {
          const Status called = co_await call_echo(io, 0, std::to_string(i), seconds(10));
          EXPECT_TRUE(called.ok()) << called.text();
        }
      });
    }
    const Status status = world.run();
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

// ---- bounds ----

TEST(World, a_full_inbox_holds_its_senders_back_and_loses_nothing) {
  constexpr size_t kBytes = 16 << 20;
  constexpr int kCount = 12;  // three times what the inbox takes
  Time all_sent{};
  World world(one_byte_per_ns(), {});
  world.add_node(0, [&all_sent](Io& io) -> Task<> {
    co_await send_bytes(io, 1, kBytes, kCount);
    all_sent = io.now();
  });
  world.add_node(1, [](Io& io) -> Task<> {
    EXPECT_TRUE((co_await io.sleep(seconds(5))).ok());
    for (int i = 0; i < kCount; ++i) co_await receive_from(io, 0, kBytes);
  });
  EXPECT_TRUE(world.run().ok());
  EXPECT_GT(all_sent, Time(seconds(5)));
}

TEST(World, requests_past_the_bound_are_answered_overloaded) {
  constexpr size_t kExtra = 10;
  size_t overloaded = 0, answered = 0;
  World world(SimConfig(), {});
  world.add_node(0, [&](Io& io) -> Task<> {
    TaskSet calls(io);
    for (size_t i = 0; i < limits::kQueuedRequests + kExtra; ++i) {
      calls.spawn([](Io& io, size_t* overloaded, size_t* answered) -> Task<> {
        Call request;
        request.to = 1;
        request.service = kEcho;
        Result<Received> received = co_await call_once(io, request, "hello", io.within(seconds(60), "echo"));
        if (received.ok())
          ++*answered;
        else if (received.status().code() == Code::kOverloaded)
          ++*overloaded;
      }(io, &overloaded, &answered));
    }
    co_await calls.join();
  });
  world.add_node(1, [](Io& io) -> Task<> {
    io.open(kEcho);
    EXPECT_TRUE((co_await io.sleep(seconds(1))).ok());
    co_await echo(io, static_cast<int>(limits::kQueuedRequests));
  });
  EXPECT_TRUE(world.run().ok());
  EXPECT_EQ(overloaded, kExtra);
  EXPECT_EQ(answered, limits::kQueuedRequests);
  EXPECT_EQ(world.stats(1).io.overloaded, kExtra);
}

TEST(World, two_hundred_nodes_call_one) {
  constexpr Peer kNodes = 200;
  constexpr int kCalls = 100;
  SimConfig config;
  config.nodes_per_host = 4;
  World world(config, {});
  world.add_node(0, [](Io& io) { return echo(io, (kNodes - 1) * kCalls); });
  for (Peer id = 1; id < kNodes; ++id) {
    world.add_node(id, [](Io& io) -> Task<> {
      for (int i = 0; i < kCalls; ++i) {
        const Status called = co_await call_echo(io, 0, std::to_string(i), seconds(60));
        EXPECT_TRUE(called.ok()) << called.text();
      }
    });
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_GE(world.stats(0).io.messages_received, (kNodes - 1) * kCalls);
  EXPECT_GT(world.events(), 100'000);
}

// ---- settings ----

TEST(SimConfig, reads_a_scenario) {
  const auto config = config_from_text<SimConfig>(
      "seed: 7\nnodes_per_host: 4\nnetwork: {bandwidth_gbps: 100, latency: 5us}\n"
      "compute: {gflops: 1000, straggler_sigma: 0.2, slow_nodes: [3, 5]}\nlimits: {virtual_time: 60s}\n",
      "scenario.yaml");
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->network.latency, microseconds(5));
  EXPECT_EQ(config->compute.slow_nodes, (std::vector<Peer>{3, 5}));
  const auto again = config_from_text<SimConfig>(config_to_text(*config), "printed");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again->nodes_per_host, 4);
}

TEST(SimConfig, reads_faults) {
  const auto faults = config_from_text<Faults>(
      "crash: [{node: 2, at: 3s, restart_after: 100ms}, {node: 3, at: 4s}]\n"
      "drop_connection: [{a: 0, b: 1, at: 10ms}]\n"
      "partition: [{nodes: [1, 2], at: 1s, lasts: 500ms}]\n"
      "slow: [{node: 4, factor: 8, at: 0s, lasts: 10s}]\n"
      "random_drops: {per_second: 0.5, until: 20s}\n",
      "faults.yaml");
  ASSERT_TRUE(faults.ok()) << faults.status().text();
  ASSERT_EQ(faults->crash.size(), 2u);
  EXPECT_EQ(faults->crash[0].restart_after, milliseconds(100));
  EXPECT_FALSE(faults->crash[1].restart_after.has_value());
  EXPECT_EQ(faults->partition[0].nodes, (std::vector<Peer>{1, 2}));
}

TEST(SimConfig, an_unknown_fault_is_an_error_that_names_the_nearest) {
  const auto faults = config_from_text<Faults>("partitions: []\n", "faults.yaml");
  ASSERT_FALSE(faults.ok());
  EXPECT_NE(faults.status().message().find("partition"), std::string::npos);
}

}  // namespace
}  // namespace talweg
