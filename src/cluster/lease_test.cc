// Leases between a group's coordinator (node 0) and jobs (nodes 10 and up), in the simulator.
#include "cluster/lease.h"

#include <gtest/gtest.h>

#include <set>

#include "io/rpc.h"
#include "io/services.h"
#include "sim/world.h"

namespace talweg {
namespace {

// A group that lives for a while, and what its jobs see.
struct TestGroup {
  ClusterConfig config;
  SimConfig sim;
  Faults faults;
  LeaseTerms terms{.max_bytes_per_job = 1000, .addresses = {"a", "b"}, .settings = "settings"};
  Duration lives = seconds(20);
  Status ends_with;
  Duration drop_takes{};
  int failing_drops = 0;
  std::map<Peer, std::function<Task<>(Io&)>> jobs;

  std::vector<uint64_t> dropped;
  std::map<uint64_t, Time> dropped_at;
  size_t left_over = 0;

  TestGroup() { sim.limits.virtual_time = seconds(300); }
  Task<Status> drop(Io& io, uint64_t job) {
    static_cast<void>(co_await io.sleep(drop_takes, "drop"));
    if (failing_drops-- > 0) co_return Status(Code::kDeadline, "not now");
    dropped.push_back(job);
    dropped_at[job] = io.now();
    co_return Status();
  }
  Task<> serve(Io& io) {
    LeaseBook book(io, config, [&](uint64_t job) { return drop(io, job); });
    TaskSet tasks(io);
    book.start(tasks, terms);
    static_cast<void>(co_await io.sleep(lives, "the group's life"));
    left_over = book.leases();
    co_await book.close(ends_with);
    io.stop(Status(Code::kCancelled, "the group has ended"));
    co_await tasks.join();
  }
  void run() {
    World world(sim, faults);
    world.add_node(0, [this](Io& io) { return serve(io); });
    for (const auto& [node, job] : jobs) world.add_node(node, job);
    const Status ended = world.run();
    EXPECT_TRUE(ended.ok()) << ended.text();
  }
};

Task<Result<Lease>> take(Io& io, std::string name, uint32_t nodes, uint64_t max_bytes = 0, uint64_t nonce = 0) {
  LeaseWish wish;
  wish.name = std::move(name);
  wish.nodes = nodes;
  wish.max_bytes = max_bytes;
  co_return co_await take_lease(io, wish, nonce == 0 ? io.self() : nonce, seconds(10));
}

struct JobRun {
  Result<Lease> lease = Status(Code::kNotFound, "none");
  Status ended, released;
  Time ended_at{};
};

Task<> keep_into(Io& io, LeaseKeeper& keeper, JobRun& run) {
  run.ended = co_await keeper.keep();
  run.ended_at = io.now();
}

// A job that takes a lease, keeps it for a while and gives it back.
Task<> run_job(Io& io, uint32_t nodes, Duration lives, JobRun& run) {
  run.lease = co_await take(io, "job", nodes);
  if (!run.lease.ok()) co_return;
  LeaseKeeper keeper(io, run.lease->job, run.lease->nonce, run.lease->lost_after);
  TaskSet tasks(io);
  tasks.spawn(keep_into(io, keeper, run));
  static_cast<void>(co_await io.sleep(lives, "the job's life"));
  run.released = co_await keeper.release();
  co_await tasks.join();
}

TEST(Lease, no_two_jobs_ever_get_the_same_ids) {
  TestGroup group;
  std::map<Peer, JobRun> runs;
  for (Peer job = 10; job < 18; ++job) {
    // Some have ended when others begin.
    group.jobs[job] = [&runs, job](Io& io) -> Task<> {
      static_cast<void>(co_await io.sleep(seconds(job % 4), "before the start"));
      co_await run_job(io, 1 + job % 3, seconds(2), runs[job]);
    };
  }
  group.run();
  std::set<Peer> ids = {0, 1, 2};
  std::set<uint64_t> job_ids;
  for (const auto& [job, run] : runs) {
    ASSERT_TRUE(run.lease.ok()) << run.lease.status().text();
    for (uint32_t i = 0; i < 1 + job % 3; ++i) EXPECT_TRUE(ids.insert(run.lease->first + i).second);
    EXPECT_TRUE(job_ids.insert(run.lease->job).second);
    EXPECT_EQ(run.lease->addresses, group.terms.addresses);
    EXPECT_EQ(run.lease->settings, "settings");
    EXPECT_TRUE(run.ended.ok()) << run.ended.text();
  }
}

TEST(Lease, a_repeated_request_gets_the_same_lease) {
  TestGroup group;
  Result<Lease> first = Status(Code::kNotFound, "none"), again = first, other = first;
  group.jobs[10] = [&](Io& io) -> Task<> {
    first = co_await take(io, "job", 3, 0, 77);
    again = co_await take(io, "job", 3, 0, 77);
    other = co_await take(io, "job", 3, 0, 78);
  };
  group.run();
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->first, again->first);
  EXPECT_EQ(first->job, again->job);
  EXPECT_EQ(other->first, first->first + 3);
}

TEST(Lease, a_lease_that_is_renewed_outlives_lost_connections) {
  TestGroup group;
  group.faults.random_drops = {.per_second = 5, .until = seconds(15)};
  group.faults.partition = {{.nodes = {10}, .at = seconds(4), .lasts = milliseconds(2000)}};
  JobRun run;
  group.jobs[10] = [&](Io& io) { return run_job(io, 3, seconds(16), run); };
  group.run();
  EXPECT_TRUE(run.ended.ok()) << run.ended.text();
  EXPECT_TRUE(run.released.ok()) << run.released.text();
  ASSERT_EQ(group.dropped.size(), 1u);
  EXPECT_GE(group.dropped_at[1] - Time(), Duration(seconds(16)));
}

TEST(Lease, a_job_that_died_loses_its_lease_after_lost_after_and_the_others_keep_theirs) {
  TestGroup group;
  group.faults.crash = {{.node = 10, .at = seconds(5), .restart_after = {}}};
  JobRun dead, alive;
  group.jobs[10] = [&](Io& io) { return run_job(io, 3, seconds(100), dead); };
  group.jobs[11] = [&](Io& io) { return run_job(io, 3, seconds(18), alive); };
  group.run();
  ASSERT_EQ(group.dropped, (std::vector<uint64_t>{dead.lease->job, alive.lease->job}));
  const Duration after = group.dropped_at[dead.lease->job] - Time() - seconds(5);
  EXPECT_GE(to_seconds(after), to_seconds(group.config.lost_after - 2 * group.config.heartbeat));
  EXPECT_LE(to_seconds(after), to_seconds(group.config.lost_after + 2 * group.config.heartbeat));
  EXPECT_TRUE(alive.ended.ok()) << alive.ended.text();
  EXPECT_EQ(group.left_over, 0u);
}

TEST(Lease, a_job_that_was_cut_off_for_too_long_hears_that_its_lease_has_ended) {
  TestGroup group;
  group.config.lost_after = seconds(1);
  group.faults.partition = {{.nodes = {10}, .at = seconds(4), .lasts = milliseconds(8000)}};
  Status cut_off, renewed;
  group.jobs[10] = [&](Io& io) -> Task<> {
    const Result<Lease> lease = co_await take(io, "job", 1);
    LeaseKeeper keeper(io, lease->job, lease->nonce, lease->lost_after);
    cut_off = co_await keeper.keep();
    static_cast<void>(co_await io.sleep(seconds(10), "until it can be heard again"));
    LeaseKeeper again(io, lease->job, lease->nonce, lease->lost_after);
    renewed = co_await again.keep();
  };
  group.run();
  EXPECT_NE(cut_off.message().find("the server group is lost"), std::string::npos) << cut_off.text();
  EXPECT_EQ(renewed.code(), Code::kNotFound);
  EXPECT_NE(renewed.message().find("the lease of job 1 has ended: nothing was heard of it for 1s"), std::string::npos)
      << renewed.text();
}

TEST(Lease, a_lease_may_be_used_late_but_not_after_join_timeout) {
  TestGroup group;
  group.config.join_timeout = seconds(8);
  Status late, too_late;
  const auto job_that_waits = [](Duration wait, Status& outcome) {
    return [wait, &outcome](Io& io) -> Task<> {
      const Result<Lease> lease = co_await take(io, "job", 1);
      static_cast<void>(co_await io.sleep(wait, "before the first renewal"));
      LeaseKeeper keeper(io, lease->job, lease->nonce, lease->lost_after);
      outcome = co_await keeper.keep();
    };
  };
  group.jobs[10] = job_that_waits(seconds(7), late);
  group.jobs[11] = job_that_waits(seconds(9), too_late);
  group.run();
  EXPECT_EQ(late.message(), "the server group has ended: it was told to");
  EXPECT_EQ(too_late.code(), Code::kNotFound) << too_late.text();
  EXPECT_EQ(group.dropped.size(), 1u);
}

TEST(Lease, a_released_lease_is_dropped_before_the_release_is_answered) {
  TestGroup group;
  group.drop_takes = milliseconds(300);
  group.failing_drops = 2;
  JobRun run;
  Time answered{};
  group.jobs[10] = [&](Io& io) -> Task<> {
    co_await run_job(io, 1, seconds(1), run);
    answered = io.now();
  };
  group.run();
  EXPECT_TRUE(run.released.ok()) << run.released.text();
  ASSERT_EQ(group.dropped.size(), 1u) << "tried until it worked";
  EXPECT_LE(group.dropped_at[1], answered);
}

TEST(Lease, jobs_hear_at_once_why_the_group_ends) {
  TestGroup group;
  group.lives = seconds(5);
  group.ends_with = Status(Code::kUnavailable, "server 1 (node 2) is lost");
  JobRun one, two;
  group.jobs[10] = [&](Io& io) { return run_job(io, 1, seconds(10), one); };
  group.jobs[11] = [&](Io& io) { return run_job(io, 1, seconds(10), two); };
  group.run();
  for (const JobRun* run : {&one, &two}) {
    EXPECT_EQ(run->ended.message(), "the server group has ended: server 1 (node 2) is lost");
    EXPECT_LE(run->ended_at - Time(), Duration(seconds(5) + 2 * group.config.heartbeat));
    EXPECT_TRUE(run->released.ok()) << "there is nobody to release it to: " << run->released.text();
  }
}

TEST(Lease, a_group_that_died_is_found_lost) {
  TestGroup group;
  group.faults.crash = {{.node = 0, .at = seconds(5), .restart_after = {}}};
  JobRun run;
  group.jobs[10] = [&](Io& io) { return run_job(io, 1, seconds(10), run); };
  group.run();
  EXPECT_NE(run.ended.message().find("the server group is lost"), std::string::npos) << run.ended.text();
  EXPECT_LE(run.ended_at - Time(), Duration(seconds(5) + group.config.lost_after + group.config.heartbeat));
}

TEST(Lease, a_quota_is_what_the_job_asks_for_and_at_most_the_groups) {
  TestGroup group;
  Result<Lease> all = Status(Code::kNotFound, "none"), less = all, more = all;
  group.jobs[10] = [&](Io& io) -> Task<> {
    all = co_await take(io, "all", 1, 0, 1);
    less = co_await take(io, "less", 1, 10, 2);
    more = co_await take(io, "more", 1, 1001, 3);
  };
  group.run();
  ASSERT_TRUE(all.ok() && less.ok());
  EXPECT_EQ(all->max_bytes, 1000u);
  EXPECT_EQ(less->max_bytes, 10u);
  EXPECT_EQ(more.status().code(), Code::kFull);
  EXPECT_EQ(more.status().message(),
            "job 'more' asks for 1001 bytes on each shard; a job of this server group gets at most 1000");
}

TEST(Lease, what_makes_no_sense_is_refused_and_the_number_of_leases_is_bounded) {
  TestGroup group;
  Status none, many, name, full;
  group.jobs[10] = [&](Io& io) -> Task<> {
    none = (co_await take(io, "none", 0)).status();
    many = (co_await take(io, "many", kMaxLeasedNodes + 1)).status();
    name = (co_await take(io, std::string(kMaxLeaseNameBytes + 1, 'x'), 1)).status();
    for (uint64_t i = 1; full.ok() && i <= kMaxLeases + 1; ++i) full = (co_await take(io, "job", 1, 0, i)).status();
    for (const Service service : {services::kLease, services::kRenewLease, services::kReleaseLease}) {
      const Call request{.to = 0, .service = service};
      const Deadline deadline = io.within(seconds(1), "garbage");
      const auto answer = co_await call(io, request, "\xff\xff\xff", deadline);
      EXPECT_EQ(answer.status().code(), Code::kCorrupt);
    }
  };
  group.run();
  EXPECT_EQ(none.code(), Code::kInvalid) << none.text();
  EXPECT_EQ(many.code(), Code::kInvalid) << many.text();
  EXPECT_EQ(name.code(), Code::kInvalid) << name.text();
  EXPECT_EQ(full.code(), Code::kFull) << full.text();
}

TEST(Lease, nobody_renews_or_ends_the_lease_of_another) {
  TestGroup group;
  JobRun run;
  Status renewed, released;
  group.jobs[10] = [&](Io& io) { return run_job(io, 1, seconds(10), run); };
  group.jobs[11] = [&](Io& io) -> Task<> {
    static_cast<void>(co_await io.sleep(seconds(2), "until there is a lease"));
    LeaseKeeper keeper(io, run.lease->job, run.lease->nonce + 1, run.lease->lost_after);
    renewed = co_await keeper.keep();
    LeaseKeeper other(io, run.lease->job, run.lease->nonce + 1, run.lease->lost_after);
    released = co_await other.release();
  };
  group.run();
  EXPECT_EQ(renewed.code(), Code::kNotFound);
  EXPECT_TRUE(run.ended.ok()) << run.ended.text();
  ASSERT_EQ(group.dropped.size(), 1u);
  EXPECT_GE(group.dropped_at[1] - Time(), Duration(seconds(10)));
}

}  // namespace
}  // namespace talweg
