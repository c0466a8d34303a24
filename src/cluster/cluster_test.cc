// Coordinator and members together, in the simulator: what the cluster promises when nodes and connections fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "cluster/coordinator.h"
#include "cluster/member.h"
#include "io/rpc.h"
#include "io/services.h"
#include "sim/world.h"

namespace talweg {
namespace {

// A job of simulated nodes, and how each of them ended.
struct TestJob {
  Layout layout{.shards = 2, .workers = 3};  // servers are nodes 1 and 2, workers 3, 4 and 5
  ClusterConfig config;
  SimConfig sim;
  Faults faults;
  std::vector<Peer> absent;
  std::map<Peer, Duration> starts_late;

  // What the launcher sees early, and what the nodes do between joining and leaving.
  std::function<Task<>(Io&, Coordinator&)> while_gathering;
  std::function<Task<Status>(Io&, Coordinator&)> job;
  std::function<Task<Status>(Io&, Member&)> server, worker;
  std::function<void(Peer, const std::string&)> on_report;

  struct End {
    Status outcome;
    Time at;
    Status stopped;
    Incarnation incarnation;
  };
  std::map<Peer, End> ends;
  std::map<Peer, proto::Welcome> welcomes;

  TestJob();
  void run();
  void expect_all_ok() const;
  // Every node that is still there ended with an error that holds `text`, not later than `by`.
  void expect_all_failed(const std::string& text, Duration by) const;
};

Task<Status> until_stopped(Io& io, Member&) { co_return co_await io.sleep_until(Time::max(), "until stopped"); }
Task<Status> work_for(Io& io, Duration time) { co_return co_await io.sleep(time, "work"); }
Task<Status> until_workers_finish(Io&, Coordinator& coordinator) {
  co_return co_await coordinator.finished(Role::kWorker);
}

TestJob::TestJob() : job(until_workers_finish), server(until_stopped) {
  worker = [](Io& io, Member&) { return work_for(io, seconds(2)); };
  sim.limits.virtual_time = seconds(300);
}

Task<> coordinator_main(TestJob& test, Io& io) {
  Coordinator coordinator(io, test.layout, test.config, "the job", test.on_report);
  TaskSet launcher(io);
  if (test.while_gathering) launcher.spawn(test.while_gathering(io, coordinator));
  Status outcome = co_await coordinator.gather();
  if (outcome.ok()) outcome = co_await coordinator.run(test.job(io, coordinator));
  co_await launcher.join();
  test.ends[io.self()] = {outcome, io.now(), io.stopped(), io.incarnation()};
}

Task<> member_main(TestJob& test, Io& io) {
  const Duration late = test.starts_late.contains(io.self()) ? test.starts_late[io.self()] : Duration(0);
  static_cast<void>(co_await io.sleep(late, "before the start"));
  Member member(io, test.config);
  Result<proto::Welcome> welcome = co_await member.join(Identity(1000 + io.self(), "simulated"));
  if (!welcome.ok()) {
    test.ends[io.self()] = {welcome.status(), io.now(), io.stopped(), io.incarnation()};
    co_return;
  }
  test.welcomes[io.self()] = *welcome;
  TaskSet tasks(io);
  member.start(tasks);
  const bool is_server = test.layout.role_of(io.self()) == Role::kServer;
  Task<Status> work = is_server ? test.server(io, member) : test.worker(io, member);
  Status done = co_await std::move(work);
  const Status outcome = co_await member.leave(std::move(done));
  co_await tasks.join();
  test.ends[io.self()] = {outcome, io.now(), io.stopped(), io.incarnation()};
}

void TestJob::run() {
  World world(sim, faults);
  for (Peer node = 0; node < layout.nodes(); ++node) {
    if (std::find(absent.begin(), absent.end(), node) != absent.end()) continue;
    world.add_node(node, [this](Io& io) {
      return io.self() == kCoordinatorNode ? coordinator_main(*this, io) : member_main(*this, io);
    });
  }
  const Status ended = world.run();
  EXPECT_TRUE(ended.ok()) << ended.text();
}

void TestJob::expect_all_ok() const {
  EXPECT_EQ(ends.size(), layout.nodes());
  for (const auto& [node, end] : ends) {
    EXPECT_TRUE(end.outcome.ok()) << layout.name_of(node) << ": " << end.outcome.text();
    EXPECT_EQ(end.stopped.code(), Code::kCancelled) << layout.name_of(node) << " has not stopped its Io";
  }
}

void TestJob::expect_all_failed(const std::string& text, Duration by) const {
  for (const auto& [node, end] : ends) {
    EXPECT_FALSE(end.outcome.ok()) << layout.name_of(node);
    EXPECT_NE(end.outcome.message().find(text), std::string::npos)
        << layout.name_of(node) << " ended with '" << end.outcome.text() << "', not with '" << text << "'";
    EXPECT_LE(to_seconds(end.at - Time()), to_seconds(by)) << layout.name_of(node) << " ended too late";
  }
}

// --- Joining.

TEST(Cluster, all_nodes_join_and_get_the_job_and_every_address) {
  TestJob test;
  test.starts_late[2] = seconds(5);
  test.run();
  test.expect_all_ok();
  ASSERT_EQ(test.welcomes.size(), 5u);
  for (const auto& [node, welcome] : test.welcomes) {
    EXPECT_EQ(welcome.job(), "the job");
    ASSERT_EQ(welcome.addresses_size(), 6);
    EXPECT_EQ(welcome.SerializeAsString(), test.welcomes.at(1).SerializeAsString());
  }
}

TEST(Cluster, nodes_that_do_not_join_are_named_to_those_that_did) {
  TestJob test;
  test.absent = {2, 5};
  test.run();
  EXPECT_EQ(test.ends.size(), 4u);
  test.expect_all_failed("server 1 and worker 2 did not join within 60 s", seconds(61));
}

TEST(Cluster, a_join_lost_with_its_connection_is_repeated_and_answered) {
  TestJob test;
  test.starts_late[5] = seconds(3);
  test.faults.drop_connection = {{.a = 0, .b = 3, .at = seconds(1)}, {.a = 3, .b = 0, .at = seconds(2)}};
  test.run();
  test.expect_all_ok();
}

TEST(Cluster, a_node_that_dies_while_others_are_awaited_is_found_when_all_have_joined) {
  TestJob test;
  test.starts_late[5] = seconds(5);
  test.faults.crash = {{.node = 3, .at = seconds(1), .restart_after = {}}};
  test.run();
  test.expect_all_failed("worker 0 (node 3) is lost", seconds(12));
}

TEST(Cluster, a_restarted_node_is_refused_while_its_former_self_is_joined) {
  TestJob test;
  test.worker = until_stopped;
  test.faults.crash = {{.node = 4, .at = seconds(1), .restart_after = seconds(1)}};
  test.run();
  ASSERT_TRUE(test.ends.contains(4));
  EXPECT_EQ(test.ends[4].incarnation, 2u);
  EXPECT_EQ(test.ends[4].outcome.message(),
            "worker 1 (node 4) has joined already and may not be replaced while the job runs");
  test.ends.erase(4);
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("worker 1 (node 4) is lost: nothing heard for", seconds(8));
}

Task<Status> join_as_a_stranger(Io& io) {
  Member member(io, ClusterConfig{});
  const Result<proto::Welcome> welcome = co_await member.join(Identity(1, "elsewhere"));
  co_return welcome.status();
}

TEST(Cluster, a_node_that_is_not_in_the_layout_is_refused) {
  TestJob test;
  Status refusal;
  World world(test.sim, test.faults);
  for (Peer node = 0; node <= test.layout.nodes(); ++node) {
    world.add_node(node, [&test, &refusal](Io& io) -> Task<> {
      if (io.self() == kCoordinatorNode) return coordinator_main(test, io);
      if (test.layout.contains(io.self())) return member_main(test, io);
      return [](Io& io, Status& refusal) -> Task<> { refusal = co_await join_as_a_stranger(io); }(io, refusal);
    });
  }
  ASSERT_TRUE(world.run().ok());
  EXPECT_EQ(refusal.message(), "node 6 is not part of this job, which has nodes 1 to 5");
  test.expect_all_ok();
}

TEST(Cluster, settings_that_cannot_work_end_the_job_before_it_begins) {
  TestJob test;
  test.config.lost_after = test.config.heartbeat;
  test.run();
  ASSERT_TRUE(test.ends.contains(0));
  EXPECT_EQ(test.ends[0].outcome.code(), Code::kInvalid);
  for (const auto& [node, end] : test.ends) EXPECT_FALSE(end.outcome.ok()) << test.layout.name_of(node);
}

// --- Ending in order.

TEST(Cluster, an_orderly_end_ends_every_node_well_and_waits_for_no_beat) {
  TestJob test;
  test.config.heartbeat = seconds(1);
  test.worker = [](Io& io, Member&) { return work_for(io, milliseconds(1500)); };
  test.run();
  test.expect_all_ok();
  for (const auto& [node, end] : test.ends) EXPECT_LT(to_seconds(end.at - Time()), 1.6) << test.layout.name_of(node);
}

TEST(Cluster, a_job_that_ends_while_the_first_beats_are_on_their_way_ends_at_once_too) {
  TestJob test;
  test.config.heartbeat = seconds(1);
  test.worker = [](Io& io, Member&) { return work_for(io, Duration(0)); };
  test.run();
  test.expect_all_ok();
  for (const auto& [node, end] : test.ends) EXPECT_LT(to_seconds(end.at - Time()), 0.1) << test.layout.name_of(node);
}

TEST(Cluster, a_node_that_is_done_stays_until_the_last_is) {
  TestJob test;
  test.worker = [](Io& io, Member&) { return work_for(io, seconds(io.self())); };
  test.run();
  test.expect_all_ok();
  for (const auto& [node, end] : test.ends) EXPECT_GE(to_seconds(end.at - Time()), 5.0) << test.layout.name_of(node);
}

Task<Status> end_at_once(Io&, Coordinator&) { co_return Status(); }

TEST(Cluster, the_coordinators_part_decides_when_the_job_ends) {
  TestJob test;
  test.worker = until_stopped;
  test.job = end_at_once;
  test.config.heartbeat = seconds(1);
  test.run();
  test.expect_all_ok();
  for (const auto& [node, end] : test.ends) EXPECT_LT(to_seconds(end.at - Time()), 0.1) << test.layout.name_of(node);
}

Task<Status> fail_in_the_job(Io&, Coordinator&) { co_return error(Code::kFull, "no room for the checkpoint"); }

TEST(Cluster, a_failure_of_the_coordinators_part_ends_every_node_with_it) {
  TestJob test;
  test.job = fail_in_the_job;
  test.run();
  EXPECT_EQ(test.ends.size(), 6u);
  test.expect_all_failed("no room for the checkpoint", seconds(1));
}

// --- Losing nodes.

TEST(Cluster, a_crashed_worker_is_lost_within_the_bound_and_every_node_says_so) {
  TestJob test;
  test.worker = until_stopped;
  test.faults.crash = {{.node = 5, .at = seconds(10), .restart_after = {}}};
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("worker 2 (node 5) is lost: nothing heard for 3.0 s", seconds(14));
  EXPECT_EQ(test.ends[3].stopped.message(), test.ends[3].outcome.message()) << "waits must end with the cause";
}

TEST(Cluster, a_crashed_server_is_lost_within_the_bound_and_every_node_says_so) {
  TestJob test;
  test.worker = until_stopped;
  test.faults.crash = {{.node = 1, .at = seconds(10), .restart_after = {}}};
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("server 0 (node 1) is lost: nothing heard for 3.0 s", seconds(14));
}

TEST(Cluster, a_crashed_coordinator_ends_all_nodes_within_the_bound) {
  TestJob test;
  test.worker = until_stopped;
  test.faults.crash = {{.node = 0, .at = seconds(10), .restart_after = {}}};
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("the coordinator is lost: nothing heard for 3.0 s", seconds(14));
}

TEST(Cluster, a_lost_connection_harms_nothing) {
  TestJob test;
  test.faults.drop_connection = {{.a = 0, .b = 1, .at = milliseconds(500)},
                                 {.a = 0, .b = 4, .at = milliseconds(700)},
                                 {.a = 4, .b = 0, .at = milliseconds(1999)}};
  test.run();
  test.expect_all_ok();
}

TEST(Cluster, a_partition_shorter_than_the_bound_harms_nothing) {
  TestJob test;
  test.faults.partition = {{.nodes = {2, 4}, .at = milliseconds(300), .lasts = milliseconds(2500)}};
  test.run();
  test.expect_all_ok();
}

TEST(Cluster, a_partition_longer_than_the_bound_ends_the_job_on_both_sides) {
  TestJob test;
  test.worker = until_stopped;
  test.faults.partition = {{.nodes = {1, 3}, .at = seconds(5), .lasts = seconds(60)}};
  test.run();
  ASSERT_EQ(test.ends.size(), 6u);
  for (Peer cut_off : {1, 3}) {
    EXPECT_EQ(test.ends[cut_off].outcome.message(), "the coordinator is lost: nothing heard for 3.0 s");
    EXPECT_LT(to_seconds(test.ends[cut_off].at - Time()), 9);
    test.ends.erase(cut_off);
  }
  test.expect_all_failed("is lost: nothing heard for 3.0 s", seconds(12));
}

// --- Causes and consequences.

// What a worker sees of a server's death: the connection goes first.
Task<Status> await_server_0(Io& io, Member&) {
  if (io.self() != 3) co_return co_await io.sleep_until(Time::max(), "until stopped");
  const Result<Received> received = co_await io.recv(1, Tag{77}, MutableBytes(), io.within(seconds(60), "pull reply"));
  co_return received.status();
}

TEST(Cluster, a_death_is_named_as_the_cause_and_what_others_saw_of_it_as_its_consequence) {
  TestJob test;
  test.worker = await_server_0;
  test.config.lost_after = seconds(3);
  test.faults.crash = {{.node = 1, .at = seconds(10), .restart_after = {}}};
  // The worker is connected to the server, so that it notices.
  test.server = [](Io& io, Member&) -> Task<Status> {
    return [](Io& io) -> Task<Status> {
      CO_TRY(co_await io.send(3, Tag{78}, "", Bytes(), io.within(seconds(1), "greeting")));
      co_return co_await io.sleep_until(Time::max(), "until stopped");
    }(io);
  };
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("server 0 (node 1) is lost: nothing heard for", seconds(14));
  test.expect_all_failed("; it led to: worker 0: ", seconds(14));
}

Task<Status> fail_with(Io& io, Peer node, Duration after, Status failure) {
  if (io.self() != node) co_return co_await io.sleep_until(Time::max(), "until stopped");
  CO_TRY(co_await io.sleep(after, "work"));
  co_return failure;
}

TEST(Cluster, a_failure_that_no_death_explains_is_the_cause_itself) {
  TestJob test;
  test.worker = [](Io& io, Member&) { return fail_with(io, 4, seconds(1), error(Code::kDeadline, "no batch came")); };
  test.run();
  EXPECT_EQ(test.ends.size(), 6u);
  test.expect_all_failed("worker 1: no batch came", seconds(5));
}

Task<Status> end_well_after_2s(Io& io, Coordinator&) { co_return co_await io.sleep(seconds(2), "work"); }

TEST(Cluster, a_job_whose_coordinator_ends_well_still_fails_if_a_node_has) {
  TestJob test;
  test.worker = [](Io& io, Member&) { return fail_with(io, 4, seconds(1), error(Code::kDeadline, "no batch came")); };
  test.job = end_well_after_2s;
  test.run();
  EXPECT_EQ(test.ends.size(), 6u);
  test.expect_all_failed("worker 1: no batch came", seconds(5));
}

TEST(Cluster, a_failure_that_no_death_can_explain_ends_the_job_at_once) {
  TestJob test;
  test.worker = [](Io& io, Member&) { return fail_with(io, 4, seconds(1), error(Code::kCorrupt, "row 7 is torn")); };
  test.run();
  EXPECT_EQ(test.ends.size(), 6u);
  test.expect_all_failed("worker 1: row 7 is torn", milliseconds(1500));
}

TEST(Cluster, a_nodes_own_failure_is_not_hidden_by_the_loss_of_the_coordinator) {
  TestJob test;
  test.worker = [](Io& io, Member&) { return fail_with(io, 4, seconds(2), error(Code::kCorrupt, "row 7 is torn")); };
  test.faults.crash = {{.node = 0, .at = seconds(1), .restart_after = {}}};
  test.run();
  EXPECT_EQ(test.ends[4].outcome.message(), "row 7 is torn");
  test.ends.erase(4);
  test.expect_all_failed("the coordinator is lost", seconds(5));
}

Task<Status> see_a_process_die(Io& io, Coordinator& coordinator) {
  CO_TRY(co_await io.sleep(seconds(1), "until the process dies"));
  coordinator.exited(5, error(Code::kUnavailable, "worker 2 (process 1005) was killed by signal 9"));
  coordinator.fail(error(Code::kUnavailable, "something later"));
  co_return co_await io.sleep_until(Time::max(), "until stopped");
}

TEST(Cluster, a_process_seen_to_die_ends_the_job_at_once_and_nobody_waits_for_it) {
  TestJob test;
  test.worker = until_stopped;
  test.job = see_a_process_die;
  test.faults.crash = {{.node = 5, .at = milliseconds(999), .restart_after = {}}};
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("worker 2 (process 1005) was killed by signal 9", milliseconds(1500));
}

Task<Status> see_a_process_end(Io& io, Coordinator& coordinator) {
  CO_TRY(co_await io.sleep(seconds(1), "until the process ends"));
  coordinator.exited(1, Status());
  co_return co_await io.sleep_until(Time::max(), "until stopped");
}

TEST(Cluster, a_process_that_ends_well_but_too_early_is_a_failure) {
  TestJob test;
  test.worker = until_stopped;
  test.job = see_a_process_end;
  test.run();
  EXPECT_EQ(test.ends[0].outcome.message(), "server 0 (node 1) ended before the job did");
}

Task<Status> leave_untold(Io& io, Member&) {
  std::string last_words = encode_beat(proto::PHASE_LEAVING, Status());
  CO_TRY(co_await io.send(0, tags::kBeat, std::move(last_words), Bytes(), io.within(seconds(1), "last words")));
  co_return co_await io.sleep_until(Time::max(), "until stopped");
}

TEST(Cluster, a_node_that_leaves_before_it_is_told_to_is_a_failure) {
  TestJob test;
  test.server = leave_untold;
  test.run();
  EXPECT_EQ(test.ends[3].outcome.message().substr(0, 7), "server ");
  test.ends.erase(1);  // whoever left hears no more of the coordinator
  test.ends.erase(2);
  test.expect_all_failed(") ended before the job did", milliseconds(500));
}

Task<> die_at_the_start(Io& io, Coordinator& coordinator) {
  static_cast<void>(co_await io.sleep(seconds(1), "until the process dies"));
  coordinator.exited(5, error(Code::kNotFound, "worker 2 (process 1005) could not find its program"));
}

TEST(Cluster, a_process_seen_to_die_before_it_joined_ends_the_wait_for_it) {
  TestJob test;
  test.absent = {5};
  test.while_gathering = die_at_the_start;
  test.run();
  EXPECT_EQ(test.ends.size(), 5u);
  test.expect_all_failed("worker 2 (process 1005) could not find its program", milliseconds(1500));
}

Task<Status> stop_from_outside(Io& io, Coordinator&) {
  io.stop(error(Code::kCancelled, "interrupted"));
  co_return co_await io.sleep(seconds(1), "work");
}

TEST(Cluster, an_io_stopped_from_outside_ends_the_coordinator_with_that_reason) {
  TestJob test;
  test.job = stop_from_outside;
  test.run();
  EXPECT_EQ(test.ends[0].outcome.message(), "interrupted");
  EXPECT_EQ(test.ends[3].outcome.message(), "the coordinator is lost: nothing heard for 3.0 s");
}

// --- Barriers and reports.

struct Passage {
  Peer node;
  Time came, passed;
};

Task<Status> pass_barriers(Io& io, Member& member, int rounds, uint32_t participants, std::vector<Passage>* passages) {
  for (int round = 0; round < rounds; ++round) {
    CO_TRY(co_await io.sleep(milliseconds(100 * io.self()), "work"));
    const Time came = io.now();
    CO_TRY(co_await member.barrier("round", participants));
    passages->push_back({io.self(), came, io.now()});
  }
  co_return Status();
}

void expect_barriers_held(const std::vector<Passage>& passages, size_t participants) {
  for (size_t first = 0; first < passages.size(); first += participants) {
    Time last_came{}, first_passed = Time::max();
    for (size_t i = first; i < first + participants; ++i) {
      last_came = std::max(last_came, passages[i].came);
      first_passed = std::min(first_passed, passages[i].passed);
    }
    EXPECT_GE(first_passed, last_came) << "in round " << first / participants;
  }
}

TEST(Cluster, a_barrier_lets_all_pass_when_the_last_has_come_and_not_before) {
  TestJob test;
  std::vector<Passage> passages;
  test.worker = [&](Io& io, Member& member) { return pass_barriers(io, member, 3, 3, &passages); };
  test.run();
  test.expect_all_ok();
  ASSERT_EQ(passages.size(), 9u);
  expect_barriers_held(passages, 3);
}

TEST(Cluster, a_repeated_barrier_call_counts_once) {
  TestJob test;
  std::vector<Passage> passages;
  test.worker = [&](Io& io, Member& member) { return pass_barriers(io, member, 1, 3, &passages); };
  // Worker 0 waits from 300 ms on; the last comes at 500 ms.
  test.faults.drop_connection = {{.a = 3, .b = 0, .at = milliseconds(350)}, {.a = 3, .b = 0, .at = milliseconds(420)}};
  test.run();
  test.expect_all_ok();
  ASSERT_EQ(passages.size(), 3u);
  expect_barriers_held(passages, 3);
}

// Changes its mind all the time.
Task<Status> decide_often(Io& io, Coordinator& coordinator, Duration pause) {
  for (int note = 0; note < 200; ++note) {
    coordinator.decide(std::to_string(note));
    CO_TRY(co_await io.sleep(pause, "a new decision"));
  }
  co_return co_await coordinator.finished(Role::kWorker);
}

Task<Status> note_decisions(Io& io, Member& member, int rounds, std::map<Peer, std::vector<std::string>>* notes) {
  for (int round = 0; round < rounds; ++round) {
    CO_TRY(co_await io.sleep(milliseconds(100 * io.self()), "work"));
    CO_ASSIGN(std::string note, co_await member.decision("next", 3, seconds(20)));
    (*notes)[io.self()].push_back(std::move(note));
  }
  co_return Status();
}

TEST(Cluster, a_decision_is_the_last_one_before_the_last_has_come_and_the_same_for_all) {
  TestJob test;
  std::map<Peer, std::vector<std::string>> notes;
  test.job = [](Io& io, Coordinator& coordinator) { return decide_often(io, coordinator, milliseconds(200)); };
  test.worker = [&](Io& io, Member& member) { return note_decisions(io, member, 3, &notes); };
  test.run();
  test.expect_all_ok();
  // The last comes every 500 ms.
  for (const Peer worker : {3, 4, 5}) EXPECT_EQ(notes[worker], (std::vector<std::string>{"2", "5", "7"}));
}

TEST(Cluster, a_decision_whose_answer_was_lost_is_told_again_as_it_was) {
  TestJob test;
  test.sim.network.latency = milliseconds(50);
  std::map<Peer, std::vector<std::string>> notes;
  test.job = [](Io& io, Coordinator& coordinator) { return decide_often(io, coordinator, milliseconds(10)); };
  // The last sends at about 600 ms and is answered at about 650; the answers are on their way for 50 ms.
  for (int ms = 600; ms <= 800; ms += 20) {
    test.faults.drop_connection.push_back({.a = 3, .b = 0, .at = milliseconds(ms)});
  }
  std::map<Peer, Time> told;
  test.worker = [&](Io& io, Member& member) -> Task<Status> {
    CO_TRY(co_await note_decisions(io, member, 1, &notes));
    told[io.self()] = io.now();
    co_return Status();
  };
  test.run();
  test.expect_all_ok();
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[3], notes[4]);
  EXPECT_EQ(notes[3], notes[5]);
  EXPECT_GT(told[3] - told[4], milliseconds(50)) << "its answer was not lost: the test shows nothing";
}

TEST(Cluster, all_learn_the_same_decisions_whatever_connections_are_lost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TestJob test;
    test.sim.seed = seed;
    test.sim.network.latency = milliseconds(5);
    std::map<Peer, std::vector<std::string>> notes;
    test.job = [](Io& io, Coordinator& coordinator) { return decide_often(io, coordinator, milliseconds(7)); };
    test.worker = [&](Io& io, Member& member) { return note_decisions(io, member, 5, &notes); };
    test.faults.random_drops = {.per_second = 20, .until = seconds(60)};
    test.run();
    test.expect_all_ok();
    ASSERT_EQ(notes[3].size(), 5u) << "seed " << seed;
    ASSERT_EQ(notes[3], notes[4]) << "seed " << seed;
    ASSERT_EQ(notes[3], notes[5]) << "seed " << seed;
  }
}

Task<Status> disagree(Io& io, Member& member, std::map<Peer, Status>* outcomes) {
  CO_TRY(co_await io.sleep(milliseconds(100 * io.self()), "work"));
  (*outcomes)[io.self()] = co_await member.barrier("start", io.self() == 4 ? 2 : 3, seconds(1));
  co_return Status();
}

TEST(Cluster, participants_that_disagree_on_their_number_are_told) {
  TestJob test;
  std::map<Peer, Status> outcomes;
  test.worker = [&](Io& io, Member& member) { return disagree(io, member, &outcomes); };
  test.run();
  EXPECT_EQ(outcomes[4].message(), "barrier 'start': worker 1 waits for 2 participants, the others for 3");
  EXPECT_EQ(outcomes[3].code(), Code::kDeadline);
}

Task<Status> use_many_names(Io&, Member& member, Status* refusal) {
  for (size_t i = 0; i <= kMaxBarrierNames && refusal->ok(); ++i) {
    *refusal = co_await member.barrier(fmt::format("step {}", i), 1);
  }
  co_return Status();
}

TEST(Cluster, the_coordinator_remembers_a_bounded_number_of_barriers) {
  TestJob test;
  test.layout = {.shards = 0, .workers = 1};
  Status refusal;
  test.worker = [&](Io& io, Member& member) { return use_many_names(io, member, &refusal); };
  test.run();
  EXPECT_EQ(refusal.code(), Code::kFull);
  test.expect_all_ok();
}

Task<> report_one(Member& member, int i, int* accepted) {
  const Status reported = co_await member.report(std::to_string(i));
  *accepted += reported.ok() ? 1 : 0;
}

// A second report begins while the first is on its way, so that a repeat of the first would come after the second.
Task<Status> report_numbers(Io& io, Member& member, int count, int* accepted) {
  for (int i = 0; i < count; i += 2) {
    TaskSet pair(io);
    pair.spawn(report_one(member, i, accepted));
    CO_TRY(co_await io.sleep(milliseconds(2), "work"));
    pair.spawn(report_one(member, i + 1, accepted));
    co_await pair.join();
  }
  co_return Status();
}

TEST(Cluster, reports_come_once_and_in_order_though_connections_are_lost) {
  TestJob test;
  test.sim.network.latency = milliseconds(5);
  std::map<Peer, std::vector<int>> reports;
  int accepted = 0;
  test.on_report = [&](Peer from, const std::string& payload) { reports[from].push_back(std::stoi(payload)); };
  test.worker = [&](Io& io, Member& member) { return report_numbers(io, member, 200, &accepted); };
  test.faults.random_drops = {.per_second = 40, .until = seconds(60)};
  test.run();
  test.expect_all_ok();
  EXPECT_EQ(accepted, 600);
  std::vector<int> in_order(200);
  std::iota(in_order.begin(), in_order.end(), 0);
  for (Peer worker : {3, 4, 5}) EXPECT_EQ(reports[worker], in_order) << test.layout.name_of(worker);
}

// --- Any seed.

Task<Status> work_with_everything(Io& io, Member& member) {
  for (int round = 0; round < 10; ++round) {
    CO_TRY(co_await io.sleep(Duration(static_cast<int64_t>(io.rng().below(400'000'000))), "work"));
    CO_TRY(co_await member.report("a number"));
    CO_TRY(co_await member.barrier("round", 3));
  }
  co_return Status();
}

TEST(Cluster, whatever_connections_are_lost_the_job_ends_well) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    TestJob test;
    test.sim.seed = seed;
    int reports = 0;
    test.on_report = [&](Peer, const std::string&) { ++reports; };
    test.worker = work_with_everything;
    test.faults.random_drops = {.per_second = 5, .until = seconds(60)};
    test.run();
    test.expect_all_ok();
    EXPECT_EQ(reports, 30);
    if (Test::HasFailure()) break;
  }
}

TEST(Cluster, whichever_node_dies_whenever_the_others_end_within_the_bound_and_agree_why) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    TestJob test;
    test.sim.seed = seed;
    test.worker = until_stopped;
    const Peer victim = 1 + static_cast<Peer>(rng.below(5));
    const Duration at = milliseconds(500 + rng.below(3000));
    test.faults.crash = {{.node = victim, .at = at, .restart_after = {}}};
    test.run();
    EXPECT_EQ(test.ends.size(), 5u);
    test.expect_all_failed(fmt::format("{} (node {}) is lost", test.layout.name_of(victim), victim), at + seconds(7));
    if (Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace talweg
