// Training through the parameter store, against plain serial mini-batch training written here. Under BSP every step is
// one step of the serial algorithm on the whole batch, so the models must agree but for the order of additions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "golden/serial.h"
#include "train/launch.h"
#include "train/simulate.h"

namespace talweg {
namespace {

constexpr double kTolerance = 1e-12;

JobConfig small_job(const char* optimizer, double l2) {
  JobConfig job;
  job.model.features = 300;
  job.data.generated.emplace();
  job.data.generated->rows = 403;  // no multiple of the batch, nor of any number of workers
  job.data.generated->test_rows = 0;
  job.data.generated->features = 300;
  job.data.generated->nonzeros = 7;
  job.data.generated->signal = 1;
  job.train.epochs = 2;
  job.train.batch = 50;
  job.train.precision = ValueType::kFloat64;
  job.train.optimizer.type = optimizer;
  job.train.optimizer.lr = 0.3;
  job.train.optimizer.l2 = l2;
  // From zero, AdaGrad's first step divides a gradient by its own size, and where a sum cancels its rounding decides.
  job.train.optimizer.initial_accumulator = 0.1;
  return job;
}

// The largest difference of any parameter; infinite when the models have different keys.
double distance(const TrainedModel& model, const Weights& serial) {
  if (model.tables.size() != 2 || model.tables[0].keys.size() + 1 != serial.size()) return INFINITY;
  const std::vector<double> weights = numbers_of(model.tables[0]), bias = numbers_of(model.tables[1]);
  double largest = std::abs(bias.at(0) - serial.at(kBiasKey).value);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = serial.find(model.tables[0].keys[i]);
    if (found == serial.end()) return INFINITY;
    largest = std::max(largest, std::abs(weights[i] - found->second.value));
  }
  return largest;
}

struct Algorithm {
  const char* optimizer;
  double l2;
  ScheduleConfig schedule = {};
};
const ScheduleConfig kWarmCosine{.type = ScheduleType::kCosine, .warmup = 5, .decay_steps = 12, .floor = 0.1};
const Algorithm kAlgorithms[] = {
    {"sgd", 0},        {"sgd", 0.01},           {"adagrad", 0},
    {"adagrad", 0.01}, {"momentum", 0.01},      {"adam", 0.01},
    {"ftrl", 0.01},    {"sgd", 0, kWarmCosine}, {"adam", 0, {.type = ScheduleType::kInverseSqrt, .decay_steps = 4}}};

TEST(Bsp, equals_serial_training_for_every_number_of_workers_and_servers) {
  const JobParts parts;
  for (const auto& [optimizer, l2, schedule] : kAlgorithms) {
    JobConfig job = small_job(optimizer, l2);
    job.train.optimizer.schedule = schedule;
    if (job.train.optimizer.type == "adam") {
      job.train.optimizer.lr = 0.05;
      // A tiny gradient over its own root: where a sum cancels, its rounding would decide the step.
      job.train.optimizer.epsilon = 1e-3;
    }
    const auto data = open_data(job);
    ASSERT_TRUE(data.ok());
    const Weights serial = train_serially(job, data->train);
    for (job.distribute.workers = 1; job.distribute.workers <= 8; ++job.distribute.workers) {
      for (job.distribute.servers = 1; job.distribute.servers <= 4; ++job.distribute.servers) {
        const SimulatedRun run = simulate(job, *data, SimConfig{}, Faults{}, parts);
        ASSERT_TRUE(run.world.ok() && run.job.status.ok()) << run.world.text() << " " << run.job.status.text();
        EXPECT_LE(distance(run.job.model, serial), kTolerance)
            << optimizer << ", " << job.distribute.workers << " workers, " << job.distribute.servers << " servers";
      }
    }
  }
}

TEST(Bsp, a_schedule_changes_what_is_learned) {
  JobConfig job = small_job("sgd", 0);
  const auto data = open_data(job);
  ASSERT_TRUE(data.ok());
  const auto constant = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  job.train.optimizer.schedule.warmup = 5;
  const auto warmed = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  ASSERT_TRUE(constant.job.status.ok() && warmed.job.status.ok());
  EXPECT_NE(constant.job.model, warmed.job.model);
}

TEST(Bsp, equals_serial_training_however_the_rows_are_cut) {
  JobConfig job = small_job("adagrad", 0.01);
  job.distribute.workers = 3;
  job.train.partition = Partition::kRoundRobin;
  const auto data = open_data(job);
  ASSERT_TRUE(data.ok());
  const auto run = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  ASSERT_TRUE(run.job.status.ok()) << run.job.status.text();
  EXPECT_LE(distance(run.job.model, train_serially(job, data->train)), kTolerance);
}

TEST(Bsp, equals_serial_training_when_some_workers_have_no_rows) {
  JobConfig job = small_job("sgd", 0);
  job.train.batch = 3;
  job.data.generated->rows = 31;
  job.distribute.workers = 8;
  job.distribute.servers = 2;
  const auto data = open_data(job);
  ASSERT_TRUE(data.ok());
  const auto run = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  ASSERT_TRUE(run.job.status.ok()) << run.job.status.text();
  EXPECT_LE(distance(run.job.model, train_serially(job, data->train)), kTolerance);
}

TEST(Bsp, threads_give_the_bits_of_the_simulator) {
  const JobParts parts;
  for (const auto& [workers, servers, shards] : {std::array{1u, 1u, 1u}, {3u, 2u, 1u}, {5u, 2u, 2u}}) {
    JobConfig job = small_job("adagrad", 0.01);
    job.distribute.workers = workers;
    job.distribute.servers = servers;
    job.distribute.shards_per_server = shards;
    job.distribute.launch = Launch::kThreads;
    const auto data = open_data(job);
    ASSERT_TRUE(data.ok());
    const JobResult threads = launch(job, *data, {.parts = parts, .events = {}, .executable = "", .log_path = ""});
    ASSERT_TRUE(threads.status.ok()) << threads.status.text();
    EXPECT_LE(distance(threads.model, train_serially(job, data->train)), kTolerance);
    EXPECT_EQ(threads.model, simulate(job, *data, SimConfig{}, Faults{}, parts).job.model);
  }
}

}  // namespace
}  // namespace talweg
