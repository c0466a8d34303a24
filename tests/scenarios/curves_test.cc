// What the shipped scenarios are there to show, as curves: the same scenario with one setting varied, over all seeds.
#include <gtest/gtest.h>

#include <map>

#include "train/simulate.h"

namespace talweg {
namespace {

RunMeasures measured(const std::string& scenario, const std::vector<std::string>& settings) {
  const auto loaded = load_scenario(std::string(TALWEG_SCENARIOS) + "/" + scenario + ".yaml", settings);
  EXPECT_TRUE(loaded.ok()) << loaded.status().text();
  if (!loaded.ok()) return {};
  const auto data = open_data(loaded->workload);
  EXPECT_TRUE(data.ok()) << data.status().text();
  if (!data.ok()) return {};
  const auto measures = measure(*loaded, *data, JobParts());
  EXPECT_TRUE(measures.ok()) << measures.status().text();
  return measures.ok() ? *measures : RunMeasures();
}

std::map<std::string, RunMeasures> curve(const std::string& scenario, const std::vector<std::string>& syncs) {
  std::map<std::string, RunMeasures> points;
  for (const std::string& sync : syncs) points[sync] = measured(scenario, {"workload.distribute.sync=" + sync});
  return points;
}

constexpr double kNever = 1e9;
double to_target(const RunMeasures& run) { return run.seconds_to_target.value_or(kNever); }

TEST(Curves, workers_wait_less_the_further_they_may_be_apart) {
  auto at = curve("staleness", {"bsp", "ssp(1)", "ssp(4)", "asp"});
  EXPECT_GT(at["bsp"].idle_share, at["ssp(1)"].idle_share);
  EXPECT_GT(at["ssp(1)"].idle_share, at["ssp(4)"].idle_share);
  EXPECT_GT(at["ssp(4)"].idle_share, at["asp"].idle_share + 0.05);
  EXPECT_GT(at["bsp"].virtual_seconds, at["ssp(4)"].virtual_seconds);
  EXPECT_GT(at["ssp(4)"].virtual_seconds, at["asp"].virtual_seconds);
  EXPECT_EQ(at["bsp"].staleness, 0);
  EXPECT_EQ(at["ssp(1)"].clock_gap, 1);
  EXPECT_EQ(at["ssp(4)"].clock_gap, 4);
  EXPECT_GT(at["asp"].clock_gap, 4);
}

TEST(Curves, the_target_is_reached_soonest_with_some_staleness_but_not_any) {
  auto at = curve("staleness_optimum", {"bsp", "ssp(2)", "ssp(4)", "ssp(8)", "asp"});
  const double best = std::min({to_target(at["ssp(2)"]), to_target(at["ssp(4)"]), to_target(at["ssp(8)"])});
  EXPECT_LT(best, 0.8 * to_target(at["bsp"]));
  EXPECT_LT(best, 0.8 * to_target(at["asp"]));
}

TEST(Curves, the_target_is_reached_soonest_with_few_backup_workers) {
  auto at = curve("backup_workers", {"bsp", "backup(1)", "backup(3)", "backup(4)", "backup(5)"});
  const double best = to_target(at["backup(3)"]);
  EXPECT_LT(best, 0.9 * to_target(at["bsp"]));
  EXPECT_LT(best, 0.9 * to_target(at["backup(5)"]));
  EXPECT_EQ(at["bsp"].late, 0);
  EXPECT_GT(at["backup(1)"].late, 100);
  EXPECT_GT(at["backup(4)"].late, at["backup(1)"].late);
}

TEST(Curves, a_step_is_shorter_with_each_backup_worker) {
  double before = kNever;
  for (const char* sync : {"bsp", "backup(1)", "backup(2)", "backup(4)"}) {
    // A fixed number of steps: no target.
    const RunMeasures run = measured("backup_workers", {std::string("workload.distribute.sync=") + sync, "seeds=1",
                                                        "workload.train.target.loss=0", "workload.train.epochs=3"});
    EXPECT_LT(run.virtual_seconds, before) << sync;
    before = run.virtual_seconds;
  }
}

TEST(Curves, settings_of_scenarios_are_checked_as_those_of_jobs_are) {
  const std::string path = std::string(TALWEG_SCENARIOS) + "/calm.yaml";
  const auto wrong = load_scenario(path, {"workload.train.epochs=0"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("--set workload.train.epochs=0"), std::string::npos) << wrong.status().text();
  EXPECT_FALSE(load_scenario(path, {"workload.distribute.sync=backup(99)"}).ok());
  const auto right = load_scenario(path, {"workload.train.epochs=7", "seeds=9"});
  ASSERT_TRUE(right.ok()) << right.status().text();
  EXPECT_EQ(right->workload.train.epochs, 7);
  EXPECT_EQ(right->seeds, 9);
}

}  // namespace
}  // namespace talweg
