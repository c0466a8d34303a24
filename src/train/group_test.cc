// A server group and jobs on it, in the simulator: nodes 0 to 2 are the group, 100 and up take leases for jobs, whose
// nodes are those that the group leases out.
#include "train/group.h"

#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "sim/world.h"
#include "train/simulate.h"

namespace talweg {
namespace {

JobConfig small_job(uint64_t seed) {
  auto job = job_from_text(fmt::format("name: job{}\n"
                                       "model: {{type: logistic, features: 200}}\n"
                                       "data: {{generated: {{rows: 400, test_rows: 50, features: 200, nonzeros: 4, "
                                       "seed: {}}}}}\n"
                                       "train: {{epochs: 2, batch: 50}}\n"
                                       "distribute: {{workers: 2, servers: 2, group: 'tcp:group:1'}}\n",
                                       seed, seed),
                           "job");
  CHECK(job.ok());
  return *job;
}

// Jobs take their leases one after the other, so that it is known who gets which ids.
struct TestGroup {
  GroupConfig config;
  Faults faults;
  std::vector<JobConfig> jobs;

  JobParts parts;
  Status group_outcome;
  std::vector<JobResult> results;
  std::vector<std::optional<Result<JobConfig>>> leased;
  std::vector<TrainingData> data;
  size_t jobs_running = 0;
  GroupNode* group = nullptr;

  TestGroup() { config.servers = 2; }

  Peer first_of(size_t job) const { return static_cast<Peer>(3 + 3 * job); }

  Task<> visit(Io& io, size_t job) {
    while (job > 0 && !leased[job - 1]) static_cast<void>(co_await io.sleep(milliseconds(10), "the job before"));
    Result<JobConfig> given = Status(Code::kNotFound, "none");
    co_await lease_from_group(io, jobs[job], 1000 + job, &given);
    leased[job] = std::move(given);
  }
  Task<bool> has_lease(Io& io, size_t job) {
    while (!leased[job]) static_cast<void>(co_await io.sleep(milliseconds(10), "the lease"));
    co_return leased[job]->ok();
  }
  Task<> coordinate(Io& io, size_t job) {
    results[job].status = Status(Code::kUnavailable, "did not come to an end");
    if (co_await has_lease(io, job)) {
      EXPECT_EQ((*leased[job])->distribute.layout().coordinator(), io.self());
      CoordinatorNode coordinator(io, **leased[job], parts, data[job], JobEvents{});
      co_await coordinator.run(&results[job]);
    } else {
      results[job].status = leased[job]->status();
    }
    if (--jobs_running == 0 && group != nullptr) group->end(Status(Code::kCancelled, "all jobs have ended"));
  }
  Task<> work(Io& io, size_t job) {
    if (!co_await has_lease(io, job)) co_return;
    const NodeContext context{Identity(0, "simulated"), parts,
                              [this, job](const JobConfig&) -> Result<TrainingData> { return data[job]; },
                              (*leased[job])->cluster, first_of(job)};
    Status outcome;
    co_await run_member(io, context, &outcome);
  }
  Task<> lead(Io& io) {
    GroupNode node(io, config, [] {});
    group = &node;
    co_await node.run(&group_outcome);
    group = nullptr;
  }
  Task<> serve(Io& io) {
    const NodeContext context{Identity(0, "simulated"), parts, {}, config.cluster, kCoordinatorNode};
    Status outcome;
    co_await run_group_member(io, context, &outcome);
  }

  void run() {
    SimConfig sim;
    sim.limits.virtual_time = seconds(300);
    results.resize(jobs.size());
    leased.resize(jobs.size());
    for (const JobConfig& job : jobs) data.push_back(*open_data(job));
    jobs_running = jobs.size();
    World world(sim, faults);
    world.add_node(0, [this](Io& io) { return lead(io); });
    for (const Peer shard : {1u, 2u}) world.add_node(shard, [this](Io& io) { return serve(io); });
    for (size_t job = 0; job < jobs.size(); ++job) {
      world.add_node(static_cast<Peer>(100 + job), [this, job](Io& io) { return visit(io, job); });
      world.add_node(first_of(job), [this, job](Io& io) { return coordinate(io, job); });
      for (const Peer worker : {1u, 2u}) {
        world.add_node(first_of(job) + worker, [this, job](Io& io) { return work(io, job); });
      }
    }
    const Status ended = world.run();
    EXPECT_TRUE(ended.ok()) << ended.text();
  }
};

TEST(Group, jobs_on_one_group_train_the_models_that_they_train_alone) {
  TestGroup test;
  test.jobs = {small_job(1), small_job(2)};
  test.run();
  EXPECT_TRUE(test.group_outcome.ok()) << test.group_outcome.text();
  for (size_t job = 0; job < 2; ++job) {
    ASSERT_TRUE(test.results[job].status.ok()) << test.results[job].status.text();
    const SimulatedRun alone = simulate(test.jobs[job], test.data[job], SimConfig{}, Faults{}, test.parts);
    ASSERT_TRUE(alone.job.status.ok()) << alone.job.status.text();
    EXPECT_TRUE(alone.job.model == test.results[job].model);
  }
  EXPECT_FALSE(test.results[0].model == test.results[1].model);
}

TEST(Group, jobs_go_on_over_lost_connections) {
  TestGroup test;
  test.jobs = {small_job(1), small_job(2)};
  test.faults.random_drops = {.per_second = 200, .until = seconds(10)};
  test.run();
  for (const JobResult& result : test.results) EXPECT_TRUE(result.status.ok()) << result.status.text();
}

TEST(Group, a_job_that_asks_for_more_than_the_group_gives_is_refused) {
  TestGroup test;
  test.config.max_bytes_per_job = 5'000'000;
  test.jobs = {small_job(1), small_job(2)};
  test.jobs[1].tables.quota = 5'000'001;
  test.run();
  EXPECT_TRUE(test.results[0].status.ok()) << test.results[0].status.text();
  EXPECT_EQ((*test.leased[0])->tables.quota, 5'000'000u);
  EXPECT_EQ(test.results[1].status.message(),
            "server group tcp:group:1: job 'job2' asks for 5000001 bytes on each shard; a job of this server group "
            "gets at most 5000000");
}

TEST(Group, when_a_server_is_lost_the_group_and_its_jobs_end_with_its_name) {
  TestGroup test;
  test.jobs = {small_job(1), small_job(2)};
  for (JobConfig& job : test.jobs) job.train.epochs = 1'000'000;
  test.config.cluster.lost_after = milliseconds(600);
  test.faults.crash = {{.node = 2, .at = milliseconds(100), .restart_after = {}}};
  test.run();
  EXPECT_NE(test.group_outcome.message().find("server 1 (node 2) is lost"), std::string::npos)
      << test.group_outcome.text();
  for (const JobResult& result : test.results) {
    EXPECT_NE(result.status.message().find("the server group has ended: server 1 (node 2) is lost"), std::string::npos)
        << result.status.text();
  }
}

TEST(GroupConfig, the_room_of_one_job_is_part_of_the_room_of_all) {
  EXPECT_TRUE(load_group("", {"store.max_bytes=100", "max_bytes_per_job=100"}).ok());
  const auto group = load_group("", {"store.max_bytes=100", "max_bytes_per_job=101"});
  EXPECT_EQ(group.status().message(),
            "talweg group: max_bytes_per_job: 101 bytes for one job, but a shard has only 100 for all");
}

TEST(JobConfig, only_a_group_gives_leases) {
  const TempDir dir;
  const std::string path = dir.write("job.yaml", "data: {train: x}\ndistribute: {lease: {first: 3, shards: [a]}}\n");
  const auto job = load_job(path, {});
  EXPECT_NE(job.status().message().find("distribute.lease: only a server group gives one"), std::string::npos)
      << job.status().text();
}

}  // namespace
}  // namespace talweg
