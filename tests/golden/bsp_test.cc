// Training through the parameter store, against plain serial mini-batch training written here. Under BSP every step is
// one step of the serial algorithm on the whole batch, so the models must agree but for the order of additions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "data/sampler.h"
#include "train/launch.h"
#include "train/simulate.h"

namespace talweg {
namespace {

constexpr double kTolerance = 1e-12;
constexpr uint64_t kBiasKey = ~uint64_t{0};

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

struct Weight {
  double value = 0, accumulator = 0.1;
};
using Weights = std::unordered_map<uint64_t, Weight>;

double probability(const Dataset& data, uint64_t row, Weights& weights) {
  double margin = weights[kBiasKey].value;
  for (size_t i = 0; i < data.row_size(row); ++i) {
    const auto [key, value] = data.entry(row, i);
    margin += weights[key].value * value;
  }
  return 1 / (1 + std::exp(-margin));
}

void update(const OptimizerConfig& optimizer, double gradient, Weight& weight) {
  gradient += optimizer.l2 * weight.value;
  double rate = optimizer.lr;
  if (optimizer.type == "adagrad") {
    weight.accumulator += gradient * gradient;
    rate /= std::sqrt(weight.accumulator) + optimizer.epsilon.value_or(1e-10);
  }
  weight.value -= rate * gradient;
}

// L2 reaches the weights a batch touches, and the bias always.
void serial_step(const JobConfig& job, const Dataset& data, const std::vector<uint64_t>& rows, Weights& weights) {
  std::unordered_map<uint64_t, double> gradients;
  for (uint64_t row : rows) {
    const double slope = probability(data, row, weights) - (data.label(row) > 0 ? 1 : 0);
    gradients[kBiasKey] += slope;
    for (size_t i = 0; i < data.row_size(row); ++i) {
      const auto [key, value] = data.entry(row, i);
      gradients[key] += slope * value;
    }
  }
  const double mean = 1 / static_cast<double>(rows.size());
  for (const auto& [key, gradient] : gradients) update(job.train.optimizer, gradient * mean, weights[key]);
}

Weights train_serially(const JobConfig& job, const Dataset& data) {
  const Sampler sampler(data.rows(), static_cast<uint64_t>(job.train.batch), 1, job.train.seed);
  Weights weights;
  std::vector<uint64_t> rows;
  for (uint64_t epoch = 0; epoch < static_cast<uint64_t>(job.train.epochs); ++epoch) {
    for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      sampler.rows_of(epoch, step, 0, &rows);
      serial_step(job, data, rows, weights);
    }
  }
  return weights;
}

std::vector<double> numbers_of(const TrainedTable& table) {
  std::vector<double> numbers(table.values.size() / sizeof(double));
  std::memcpy(numbers.data(), table.values.data(), table.values.size());
  return numbers;
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
};
constexpr Algorithm kAlgorithms[] = {{"sgd", 0}, {"sgd", 0.01}, {"adagrad", 0}, {"adagrad", 0.01}};

TEST(Bsp, equals_serial_training_for_every_number_of_workers_and_servers) {
  const JobParts parts;
  for (const auto& [optimizer, l2] : kAlgorithms) {
    JobConfig job = small_job(optimizer, l2);
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
