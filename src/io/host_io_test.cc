// HostIo where drivers, processes and threads meet: restarts, refused connections, killed peers, the pool.
#include "io/host_io.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <set>

#include "io/rpc.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"

namespace talweg {
namespace {

HostIoOptions options_of(Peer self) {
  HostIoOptions options;
  options.self = self;
  options.job = "host io test";
  return options;
}

std::unique_ptr<Transport> listen(HostIo& io, const std::string& driver) {
  auto made = driver == "shm" ? shm::make_transport(io.bell()) : tcp::make_transport("127.0.0.1:0");
  EXPECT_TRUE(made.ok()) << made.status().text();
  return std::move(*made);
}

std::unique_ptr<HostIo> make_node(Peer self, const std::string& driver) {
  auto io = std::make_unique<HostIo>(options_of(self));
  io->add(listen(*io, driver));
  return io;
}

Deadline soon(const Io& io, const char* what = "test") { return io.within(seconds(20), what); }

class HostIoDrivers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Drivers, HostIoDrivers, testing::Values("shm", "tcp"),
                         [](const auto& info) { return info.param; });

// A receive for a node that restarts fails once, when its earlier life is lost.
Task<std::string> receive_across_restart(Io& io, Tag tag) {
  while (true) {
    auto got = co_await io.recv_owned(1, tag, soon(io));
    if (got.ok()) co_return got->head;
    if (got.status().code() != Code::kUnavailable) co_return got.status().text();
  }
}

Task<> lonely_life(Io& io) {
  const Status first = co_await io.send(0, 1, "first life", {}, soon(io));
  EXPECT_TRUE(first.ok()) << first.text();
  const Status stale = co_await io.send(0, 2, "stale", {}, soon(io));
  EXPECT_TRUE(stale.ok()) << stale.text();
  const Status last = co_await io.send(0, 3, "all sent", {}, soon(io));
  EXPECT_TRUE(last.ok()) << last.text();
  auto replaced = co_await io.recv(0, 9, {}, soon(io, "anything"));
  EXPECT_EQ(replaced.status().code(), Code::kUnavailable) << replaced.status().text();
  const Status refused = co_await io.send(0, 4, "from the grave", {}, soon(io));
  EXPECT_EQ(refused.code(), Code::kUnavailable) << refused.text();
}

TEST_P(HostIoDrivers, a_restarted_peer_replaces_its_earlier_life_which_is_refused_from_then_on) {
  auto server = make_node(0, GetParam());
  auto first = make_node(1, GetParam());
  auto second = make_node(1, GetParam());
  ASSERT_GT(second->incarnation(), first->incarnation());
  first->learn(0, server->address());
  second->learn(0, server->address());
  std::atomic<bool> first_is_met = false;
  std::thread first_life([&] { first->run(lonely_life(*first)); });
  std::thread second_life([&] {
    while (!first_is_met) std::this_thread::yield();
    second->run([](Io& io) -> Task<> {
      const Status sent = co_await io.send(0, 5, "second life", {}, soon(io));
      EXPECT_TRUE(sent.ok()) << sent.text();
      auto end = co_await io.recv(0, 10, {}, soon(io));
      EXPECT_TRUE(end.ok()) << end.status().text();
    }(*second));
  });
  server->run([](Io& io, std::atomic<bool>& first_is_met) -> Task<> {
    const std::string first = co_await receive_across_restart(io, 1);
    EXPECT_EQ(first, "first life");
    const std::string all = co_await receive_across_restart(io, 3);
    EXPECT_EQ(all, "all sent");
    first_is_met = true;
    const std::string second = co_await receive_across_restart(io, 5);
    EXPECT_EQ(second, "second life");
    auto stale = co_await io.recv_owned(1, 2, io.within(milliseconds(20), "stale"));
    EXPECT_EQ(stale.status().code(), Code::kDeadline) << stale.status().text();
    while (io.counters().bad_frames == 0) {
      const Status slept = co_await io.sleep(milliseconds(1));
      EXPECT_TRUE(slept.ok());
    }
    auto grave = co_await io.recv_owned(1, 4, io.within(milliseconds(20), "grave"));
    EXPECT_EQ(grave.status().code(), Code::kDeadline) << grave.status().text();
    const Status end = co_await io.send(1, 10, "", {}, soon(io));
    EXPECT_TRUE(end.ok()) << end.text();
  }(*server, first_is_met));
  second_life.join();
  first_life.join();
}

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  if (DIR* folder = ::opendir("/dev/shm")) {
    while (const dirent* entry = ::readdir(folder)) {
      if (std::string_view(entry->d_name).find("talweg") != std::string_view::npos) names.insert(entry->d_name);
    }
    ::closedir(folder);
  }
  return names;
}

[[noreturn]] void run_victim(const std::string& driver, const std::string& server) {
  auto io = make_node(1, driver);
  io->learn(0, server);
  io->run([](Io& io) -> Task<> {
    static_cast<void>(co_await io.send(0, 1, "alive", {}, soon(io)));
    static_cast<void>(co_await io.recv(0, 2, {}, io.within(seconds(60), "the end")));
  }(*io));
  ::_exit(1);
}

TEST_P(HostIoDrivers, a_killed_process_fails_the_receives_posted_for_it_and_leaves_nothing_behind) {
  auto server = make_node(0, GetParam());
  const pid_t victim = ::fork();
  if (victim == 0) run_victim(GetParam(), server->address());
  ASSERT_GT(victim, 0);
  server->run([](Io& io, pid_t victim) -> Task<> {
    auto alive = co_await io.recv(1, 1, {}, soon(io));
    EXPECT_TRUE(alive.ok()) << alive.status().text();
    EXPECT_EQ(::kill(victim, SIGKILL), 0);
    auto answer = co_await io.recv(1, 3, {}, soon(io, "answer"));
    EXPECT_EQ(answer.status().code(), Code::kUnavailable) << answer.status().text();
    EXPECT_NE(answer.status().message().find("answer: connection to node 1 is lost"), std::string::npos)
        << answer.status().text();
  }(*server, victim));
  int how = 0;
  EXPECT_EQ(::waitpid(victim, &how, 0), victim);
  EXPECT_TRUE(WIFSIGNALED(how));
  EXPECT_TRUE(shared_memory_files().empty());
}

std::string address_nobody_listens_at() { return (*tcp::make_transport("127.0.0.1:0"))->address(); }

TEST(HostIo, a_refused_connection_is_unavailable_and_a_call_repeats_until_its_deadline) {
  auto io = make_node(0, "tcp");
  io->learn(1, address_nobody_listens_at());
  io->run([](Io& io) -> Task<> {
    const Status sent = co_await io.send(1, 1, "", {}, soon(io, "greeting"));
    EXPECT_EQ(sent.code(), Code::kUnavailable) << sent.text();
    EXPECT_NE(sent.message().find("greeting: connection to node 1 is lost (cannot connect to tcp:127.0.0.1:"),
              std::string::npos)
        << sent.text();
    EXPECT_NE(sent.message().find("refused"), std::string::npos) << sent.text();
    const Time begin = io.now();
    auto answer = co_await call(io, Call{.to = 1, .service = 900}, "", io.within(milliseconds(100), "join"));
    EXPECT_EQ(answer.status().code(), Code::kDeadline) << answer.status().text();
    for (const char* part : {"join", "node 1", "refused"}) {
      EXPECT_NE(answer.status().message().find(part), std::string::npos) << answer.status().text();
    }
    EXPECT_GT(io.now() - begin, milliseconds(20)) << "it did not repeat";
  }(*io));
  EXPECT_EQ(io->counters().bad_frames, 0u);
}

TEST(HostIo, a_node_without_an_address_or_with_one_of_another_kind_is_not_found) {
  auto io = make_node(0, "tcp");
  io->learn(2, "shm:00000000:abc");
  io->run([](Io& io) -> Task<> {
    for (const Peer peer : {1u, 2u}) {
      const Status sent = co_await io.send(peer, 1, "", {}, soon(io));
      EXPECT_EQ(sent.code(), Code::kNotFound) << sent.text();
    }
    const Status to_itself = co_await io.send(0, 1, "", {}, soon(io));
    EXPECT_EQ(to_itself.code(), Code::kInvalid) << to_itself.text();
  }(*io));
}

TEST(HostIo, the_first_address_that_can_be_reached_is_dialled) {
  auto server = make_node(0, "tcp");
  auto client = make_node(1, "tcp");
  client->learn(0, "shm:00000000:abc " + server->address());
  std::thread thread([&] {
    client->run([](Io& io) -> Task<> {
      const Status sent = co_await io.send(0, 1, "over tcp", {}, soon(io));
      EXPECT_TRUE(sent.ok()) << sent.text();
      auto end = co_await io.recv(0, 2, {}, soon(io));
      EXPECT_TRUE(end.ok()) << end.status().text();
    }(*client));
  });
  server->run([](Io& io) -> Task<> {
    auto got = co_await io.recv_owned(1, 1, soon(io));
    EXPECT_TRUE(got.ok()) << got.status().text();
    const Status sent = co_await io.send(1, 2, "", {}, soon(io));
    EXPECT_TRUE(sent.ok()) << sent.text();
  }(*server));
  thread.join();
}

TEST(HostIo, a_port_in_use_is_an_error_that_tells_the_way_out) {
  const auto holder = tcp::make_transport("127.0.0.1:0");
  ASSERT_TRUE(holder.ok());
  const std::string address = (*holder)->address().substr(4);
  const auto second = tcp::make_transport(address);
  ASSERT_FALSE(second.ok());
  for (const std::string& part : {address, std::string("in use"), std::string("port 0")}) {
    EXPECT_NE(second.status().message().find(part), std::string::npos) << second.status().text();
  }
  EXPECT_EQ(tcp::make_transport("nonsense").status().code(), Code::kInvalid);
  EXPECT_EQ(tcp::make_transport("127.0.0.1:http").status().code(), Code::kInvalid);
}

TEST(HostIo, actions_from_outside_run_on_the_nodes_thread_in_order_and_wake_it) {
  auto io = make_node(0, "tcp");
  std::vector<int> order;
  std::thread outside;
  io->run([](HostIo& io, std::vector<int>& order, std::thread& outside) -> Task<> {
    Signal signal;
    const auto own = std::this_thread::get_id();
    outside = std::thread([&io, &order, &signal, own] {
      for (int i = 0; i < 100; ++i) {
        io.from_outside([&order, i, own] {
          EXPECT_EQ(std::this_thread::get_id(), own);
          order.push_back(i);
        });
      }
      io.from_outside([&signal] { signal.notify(); });
    });
    const Status woken = co_await io.wait(signal, soon(io));
    EXPECT_TRUE(woken.ok()) << woken.text();
  }(*io, order, outside));
  outside.join();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

Task<> compute_once(Io& io, double flops, std::thread::id& where) {
  co_await io.compute(Cost{.flops = flops}, [&where] { where = std::this_thread::get_id(); });
  EXPECT_NE(where, std::thread::id());
}

TEST(HostIo, long_work_runs_on_the_pool_and_short_work_does_not) {
  ComputePool pool(2);
  HostIoOptions options = options_of(0);
  options.pool = &pool;
  HostIo io(options);
  std::vector<std::thread::id> where(50);
  io.run([](Io& io, std::vector<std::thread::id>& where) -> Task<> {
    TaskSet work(io);
    for (size_t i = 0; i < where.size(); ++i) work.spawn(compute_once(io, i % 2 == 0 ? 10 : 1e12, where[i]));
    co_await work.join();
  }(io, where));
  for (size_t i = 0; i < where.size(); ++i) EXPECT_EQ(where[i] == std::this_thread::get_id(), i % 2 == 0) << i;
}

TEST(HostIo, a_pool_runs_what_it_was_given_before_it_goes) {
  std::atomic<int> done = 0;
  {
    ComputePool pool(3);
    for (int i = 0; i < 200; ++i) pool.run([&done] { ++done; });
  }
  EXPECT_EQ(done, 200);
}

Task<> send_half_an_inbox(Io& io, Tag tag) {
  const std::vector<std::byte> body(limits::kUnexpectedBytes / 2);
  const Status sent = co_await io.send(0, tag, "", body, soon(io));
  EXPECT_TRUE(sent.ok()) << sent.text();
}

TEST_P(HostIoDrivers, a_full_inbox_holds_its_connection_back_until_there_is_room_while_sends_go_on) {
  auto server = make_node(0, GetParam());
  auto client = make_node(1, GetParam());
  client->learn(0, server->address());
  std::thread thread([&] {
    client->run([](Io& io) -> Task<> {
      TaskSet sends(io);
      for (Tag tag = 1; tag <= 4; ++tag) sends.spawn(send_half_an_inbox(io, tag));
      std::vector<std::byte> answer(8 << 20);
      auto got = co_await io.recv(0, 9, answer, soon(io));
      EXPECT_TRUE(got.ok()) << got.status().text();
      co_await sends.join();
      const Status end = co_await io.send(0, 10, "", {}, soon(io));
      EXPECT_TRUE(end.ok()) << end.text();
      auto met = co_await io.recv(0, 10, {}, soon(io));
      EXPECT_TRUE(met.ok()) << met.status().text();
    }(*client));
  });
  server->run([](Io& io) -> Task<> {
    auto first = co_await io.recv_owned(1, 1, soon(io));
    EXPECT_TRUE(first.ok()) << first.status().text();
    // Larger than any buffer on the way: it needs the connection that is held back the other way.
    const std::vector<std::byte> answer(8 << 20);
    const Status sent = co_await io.send(1, 9, "", answer, soon(io));
    EXPECT_TRUE(sent.ok()) << sent.text();
    for (const Tag tag : {2, 3, 4, 10}) {
      auto rest = co_await io.recv_owned(1, tag, soon(io));
      EXPECT_TRUE(rest.ok()) << rest.status().text();
    }
    const Status end = co_await io.send(1, 10, "", {}, soon(io));
    EXPECT_TRUE(end.ok()) << end.text();
  }(*server));
  thread.join();
}

}  // namespace
}  // namespace talweg
