// Whole jobs through the store, in the simulator: that what was planted is found, and what the settings of training do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden/serial.h"
#include "train/simulate.h"

namespace talweg {
namespace {

JobConfig clicks_job() {
  JobConfig job;
  job.model.features = 300;
  job.data.generated.emplace();
  job.data.generated->rows = 6000;
  job.data.generated->test_rows = 2000;
  job.data.generated->features = 300;
  job.data.generated->nonzeros = 8;
  job.data.generated->signal = 0.8;
  job.train.epochs = 4;
  job.train.batch = 60;
  job.train.precision = ValueType::kFloat64;
  job.train.optimizer.type = "adagrad";
  job.train.optimizer.lr = 0.1;
  job.distribute.workers = 3;
  job.distribute.servers = 2;
  return job;
}

JobResult trained(const JobConfig& job) {
  const auto data = open_data(job);
  EXPECT_TRUE(data.ok()) << data.status().text();
  const Status checked = job.check("test");
  EXPECT_TRUE(checked.ok()) << checked.text();
  SimulatedRun run = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  EXPECT_TRUE(run.world.ok() && run.job.status.ok()) << run.world.text() << " " << run.job.status.text();
  EXPECT_FALSE(run.job.epochs.empty());
  if (run.job.epochs.empty()) run.job.epochs.emplace_back();
  return std::move(run.job);
}

double best_loss(const JobResult& job) {
  const auto by_loss = [](const EpochResult& a, const EpochResult& b) { return a.loss < b.loss; };
  return std::min_element(job.epochs.begin(), job.epochs.end(), by_loss)->loss;
}

// By ranks; a margin that two rows share counts half.
double serial_auc(const Dataset& data, Weights weights) {
  std::vector<std::pair<double, bool>> scored;
  for (uint64_t row = 0; row < data.rows(); ++row)
    scored.emplace_back(probability(data, row, weights), data.label(row) > 0);
  std::sort(scored.begin(), scored.end());
  double below = 0, ones = 0, pairs = 0;
  for (size_t i = 0; i < scored.size();) {
    size_t end = i;
    double zeros_here = 0, ones_here = 0;
    for (; end < scored.size() && scored[end].first == scored[i].first; ++end)
      ++(scored[end].second ? ones_here : zeros_here);
    pairs += ones_here * (below + zeros_here / 2);
    below += zeros_here;
    ones += ones_here;
    i = end;
  }
  return pairs / (ones * below);
}

TEST(Learning, a_planted_click_model_is_found_as_well_as_by_the_best_serial_optimizer) {
  JobConfig job = clicks_job();
  const auto data = open_data(job);
  ASSERT_TRUE(data.ok());
  double best = 0;
  OptimizerConfig found;
  for (const char* type : {"sgd", "adagrad", "adam", "ftrl"}) {
    for (const double lr : {0.03, 0.1, 0.5}) {
      job.train.optimizer.type = type;
      job.train.optimizer.lr = lr;
      job.train.optimizer.initial_accumulator = 0.1;
      const double auc = serial_auc(data->test, train_serially(job, data->train));
      if (auc > best) found = job.train.optimizer, best = auc;
    }
  }
  EXPECT_GT(best, 0.85);
  job.train.optimizer = found;
  job.train.precision = ValueType::kFloat32;
  for (const Sync& sync : {Sync::bsp(), Sync::ssp(2), Sync::asp()}) {
    job.distribute.sync = sync;
    EXPECT_GE(trained(job).epochs.back().auc, best - 0.002) << sync.text() << ", " << found.type << " " << found.lr;
  }
}

TEST(Learning, every_way_to_cut_the_rows_trains) {
  for (const Partition partition : {Partition::kHash, Partition::kOverlapping, Partition::kByLabel,
                                    Partition::kDirichlet, Partition::kRoundRobin}) {
    JobConfig job = clicks_job();
    job.train.partition = partition;
    EXPECT_GT(trained(job).epochs.back().auc, 0.78) << static_cast<int>(partition);
  }
}

uint64_t exact_zeros(const TrainedModel& model) {
  const std::vector<double> weights = numbers_of(model.tables[0]);
  return static_cast<uint64_t>(std::count(weights.begin(), weights.end(), 0.0));
}

TEST(Learning, l1_makes_weights_exactly_zero) {
  for (const char* type : {"sgd", "adagrad", "ftrl"}) {
    JobConfig job = clicks_job();
    job.train.optimizer.type = type;
    EXPECT_EQ(exact_zeros(trained(job).model), 0u) << type;
    job.train.optimizer.l1 = job.train.optimizer.type == "ftrl" ? 1 : 0.01;
    const JobResult sparse = trained(job);
    EXPECT_GT(exact_zeros(sparse.model), 20u) << type;
    EXPECT_LT(exact_zeros(sparse.model), sparse.model.tables[0].rows()) << type;
  }
}

TEST(Learning, a_job_stops_when_its_target_is_reached) {
  JobConfig job = clicks_job();
  job.train.epochs = 20;
  job.train.target = TargetConfig{.loss = std::nullopt, .auc = 0.8, .accuracy = std::nullopt, .rmse = std::nullopt};
  const JobResult result = trained(job);
  EXPECT_TRUE(result.reached_target);
  EXPECT_LT(result.epochs.size(), 20u);
  EXPECT_GE(result.epochs.back().auc, 0.8);
  for (size_t i = 0; i + 1 < result.epochs.size(); ++i) EXPECT_LT(result.epochs[i].auc, 0.8);
  job.train.epochs = 2;
  job.train.target->auc = 1;
  const JobResult missed = trained(job);
  EXPECT_FALSE(missed.reached_target);
  EXPECT_EQ(missed.epochs.size(), 2u);
}

TEST(Learning, growing_batches_need_fewer_updates_for_the_same_loss) {
  JobConfig job = clicks_job();
  job.train.epochs = 6;
  job.train.batch = 20;
  const JobResult fixed = trained(job);
  job.train.grow_every = 2;
  job.train.grow_by = 2;
  const JobResult growing = trained(job);
  EXPECT_LT(3 * growing.workers[0].steps_done(), 2 * fixed.workers[0].steps_done());
  EXPECT_NEAR(growing.epochs.back().loss, fixed.epochs.back().loss, 0.03 * fixed.epochs.back().loss);
}

TEST(Learning, full_batches_between_online_updates_learn) {
  JobConfig job = clicks_job();
  job.train.epochs = 10;
  job.train.online_updates = 5;
  const JobResult result = trained(job);
  EXPECT_EQ(result.workers[0].steps_done(), 60u);
  EXPECT_GT(result.epochs.back().auc, 0.75);
  EXPECT_GT(result.epochs.back().auc, result.epochs.front().auc);
}

double length(const TrainedModel& model) {
  double squares = 0;
  for (const TrainedTable& table : model.tables) {
    for (const double w : numbers_of(table)) squares += w * w;
  }
  return std::sqrt(squares);
}

TEST(Learning, a_step_is_no_longer_than_the_clipped_norm) {
  JobConfig job = clicks_job();
  job.train.optimizer.type = "sgd";
  job.train.optimizer.lr = 1;
  job.train.epochs = 1;
  job.train.batch = 6000;  // one step from zero: the weights are the gradient
  const double whole = length(trained(job).model);
  job.train.clip_norm = whole / 4;
  EXPECT_LE(length(trained(job).model), whole / 4 * (1 + 1e-12));
  job.distribute.workers = 1;
  EXPECT_NEAR(length(trained(job).model), whole / 4, 1e-12);
  job.train.clip_norm = whole * 4;
  EXPECT_NEAR(length(trained(job).model), whole, 1e-12) << "what is within the bound stays";
}

TEST(Learning, one_pass_over_a_stream_comes_near_what_many_passes_reach) {
  JobConfig job = clicks_job();
  job.data.generated->rows = 20'000;
  job.train.epochs = 5;
  const double batch = best_loss(trained(job));
  job.train.epochs = 1;
  job.data.stream = "generated";
  job.data.evaluate_every = 100;
  const JobResult online = trained(job);
  EXPECT_EQ(online.epochs.size(), 4u) << "20000 rows are 334 steps, evaluated every 100 and at the end";
  EXPECT_LT(online.epochs.back().loss, 1.05 * batch);
  EXPECT_EQ(online.progress.rows, 20'000u);
}

TEST(Learning, a_drifting_stream_takes_bounded_memory_when_rows_expire) {
  const auto at = [](const char* expire_after) {
    const std::string path = std::string(TALWEG_SCENARIOS) + "/drifting_stream.yaml";
    const auto scenario = load_scenario(path, {std::string("workload.tables.rows.expire_after=") + expire_after});
    EXPECT_TRUE(scenario.ok()) << scenario.status().text();
    const auto data = open_data(scenario->workload);
    const ScenarioRun run = run_scenario(*scenario, *data, 1, JobParts());
    EXPECT_TRUE(run.held.ok()) << run.held.text();
    std::pair<uint64_t, uint64_t> rows_and_expired;
    for (const auto& shard : run.run.job.shards) {
      rows_and_expired.first += shard.tables(0).rows();
      rows_and_expired.second += shard.tables(0).expired();
    }
    return rows_and_expired;
  };
  const auto [kept, expired] = at("250ms");
  const auto [all, none] = at("0s");
  EXPECT_EQ(none, 0u);
  EXPECT_GT(all, 1'000'000u) << "distinct keys";
  EXPECT_LT(kept, all / 4);
  EXPECT_GE(kept + expired, all);
}

}  // namespace
}  // namespace talweg
