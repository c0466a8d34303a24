// The scenario runner: a run is a function of the scenario and its seed, and what does not hold is found.
#include <gtest/gtest.h>

#include "train/simulate.h"

namespace talweg {
namespace {

Scenario stormy() {
  Scenario scenario;
  scenario.cluster.compute.straggler_sigma = 0.5;
  scenario.cluster.clock_offset = seconds(5);
  scenario.faults.random_drops.per_second = 2000;
  JobConfig& job = scenario.workload;
  job.model.features = 500;
  job.data.generated.emplace();
  job.data.generated->rows = 1000;
  job.data.generated->test_rows = 200;
  job.data.generated->features = 500;
  job.data.generated->nonzeros = 5;
  job.train.batch = 50;
  job.distribute.workers = 4;
  job.distribute.servers = 2;
  return scenario;
}

ScenarioRun run(const Scenario& scenario, uint64_t seed) {
  const auto data = open_data(scenario.workload);
  return run_scenario(scenario, *data, seed, JobParts());
}

TEST(Scenario, the_same_seed_gives_the_same_run_event_for_event) {
  const Scenario scenario = stormy();
  const ScenarioRun first = run(scenario, 7), second = run(scenario, 7);
  EXPECT_TRUE(first.held.ok()) << first.held.text();
  EXPECT_EQ(first.run.trace_hash, second.run.trace_hash);
  EXPECT_EQ(first.run.events, second.run.events);
  EXPECT_EQ(first.run.virtual_seconds, second.run.virtual_seconds);
  EXPECT_EQ(first.run.job.model, second.run.job.model);
}

TEST(Scenario, another_seed_gives_another_run_and_the_same_model) {
  const Scenario scenario = stormy();
  const ScenarioRun first = run(scenario, 1);
  for (uint64_t seed = 2; seed <= 4; ++seed) {
    const ScenarioRun other = run(scenario, seed);
    EXPECT_NE(other.run.trace_hash, first.run.trace_hash) << seed;
    EXPECT_EQ(other.run.job.model, first.run.job.model) << seed;
  }
}

TEST(Scenario, faults_change_the_trace) {
  Scenario scenario = stormy();
  const uint64_t with = run(scenario, 1).run.trace_hash;
  scenario.faults = {};
  EXPECT_NE(run(scenario, 1).run.trace_hash, with);
}

TEST(Scenario, a_failure_that_was_not_expected_is_found) {
  Scenario scenario = stormy();
  scenario.faults.crash.push_back({.node = 4, .at = milliseconds(15), .restart_after = std::nullopt});
  const Status held = run(scenario, 1).held;
  EXPECT_NE(held.message().find("the job failed"), std::string::npos) << held.text();
  EXPECT_NE(held.message().find("worker 1"), std::string::npos) << held.text();
}

TEST(Scenario, a_success_that_was_not_expected_is_found) {
  Scenario scenario = stormy();
  scenario.expect.outcome = Outcome::kFails;
  EXPECT_EQ(run(scenario, 1).held.message(), "the job did not fail");
}

TEST(Scenario, another_error_than_expected_is_found) {
  Scenario scenario = stormy();
  scenario.faults.crash.push_back({.node = 4, .at = milliseconds(15), .restart_after = std::nullopt});
  scenario.expect.outcome = Outcome::kFails;
  scenario.expect.error = "worker 1";
  EXPECT_TRUE(run(scenario, 1).held.ok());
  scenario.expect.error = "server 0";
  EXPECT_NE(run(scenario, 1).held.message().find("does not say 'server 0'"), std::string::npos);
}

TEST(Scenario, a_target_that_was_not_reached_is_found) {
  Scenario scenario = stormy();
  scenario.expect.auc = 1;
  EXPECT_NE(run(scenario, 1).held.message().find("AUC"), std::string::npos);
  scenario = stormy();
  scenario.expect.within = microseconds(1);
  EXPECT_NE(run(scenario, 1).held.message().find("virtual time"), std::string::npos);
}

TEST(Scenario, every_other_bound_that_does_not_hold_is_found) {
  Scenario scenario = stormy();
  scenario.workload.distribute.sync = Sync::ssp(3);
  scenario.workload.train.target = TargetConfig{.loss = 10, .auc = {}, .accuracy = {}, .rmse = {}};
  scenario.expect.loss = 10;
  scenario.expect.accuracy = 0;
  scenario.expect.reaches_target = true;
  scenario.expect.clock_gap = 3;
  EXPECT_TRUE(run(scenario, 1).held.ok()) << run(scenario, 1).held.text();
  const auto found = [&](auto change) {
    Scenario wrong = scenario;
    change(wrong);
    return run(wrong, 1).held.message();
  };
  EXPECT_NE(found([](Scenario& s) { s.expect.loss = 0.01; }).find("loss"), std::string::npos);
  EXPECT_NE(found([](Scenario& s) { s.expect.accuracy = 1; }).find("accuracy"), std::string::npos);
  EXPECT_NE(found([](Scenario& s) { s.expect.rmse = 0; }).find("rmse"), std::string::npos);
  EXPECT_NE(found([](Scenario& s) { s.expect.clock_gap = 0; }).find("steps ahead"), std::string::npos);
  EXPECT_NE(found([](Scenario& s) { s.expect.late = 1; }).find("late"), std::string::npos);
  EXPECT_NE(found([](Scenario& s) { s.workload.train.target->loss = 0; }).find("target"), std::string::npos);
}

TEST(Scenario, when_the_coordinator_dies_a_node_tells_the_error) {
  Scenario scenario = stormy();
  scenario.faults = {};
  scenario.faults.crash.push_back({.node = 0, .at = milliseconds(15), .restart_after = std::nullopt});
  const ScenarioRun result = run(scenario, 1);
  EXPECT_TRUE(result.run.world.ok()) << result.run.world.text();
  EXPECT_FALSE(result.run.job.status.ok());
  EXPECT_NE(result.run.job.status.message().find("coordinator"), std::string::npos) << result.run.job.status.text();
}

}  // namespace
}  // namespace talweg
