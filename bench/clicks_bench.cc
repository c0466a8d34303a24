// Click prediction, 800,000 rows of 39 features below 2^20: parsing of LibSVM text on one core, opening of the cache,
// and one epoch of logistic regression through the store (1 server, 2 workers; processes and threads) beside the same
// batches trained in a plain loop, so that the price of distribution is a ratio of one run. Held-out rows are ranked
// here, with the model as it came back; processes and threads must give the same bits.
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/temp_dir.h"
#include "bench/bench.h"
#include "bench/measure.h"
#include "data/cache.h"
#include "data/generator.h"
#include "data/sampler.h"
#include "model/ranking.h"
#include "train/launch.h"

namespace talweg::bench {
namespace {

constexpr uint64_t kRows = 800'000, kTestRows = 100'000, kFeatures = uint64_t{1} << 20;

JobConfig make_job(const TempDir& folder) {
  JobConfig job;
  job.name = "bench";
  job.model.features = kFeatures;
  job.data.train = folder.path("train.svm");
  job.train.batch = 4096;
  job.train.optimizer = {.type = "adagrad", .lr = 0.03};
  job.distribute.workers = 2;
  job.distribute.servers = 1;
  return job;
}

// --- data

double parse_seconds(const std::string& path, uint64_t* nonzeros) {
  auto file = MappedFile::open(path);
  require(file.status());
  ReadOptions options;
  options.threads = 1;
  const auto start = Clock::now();
  const auto rows = read_rows(*file, options);
  const double seconds = seconds_since(start);
  require(rows.status());
  require(rows->shape.rows == kRows, "not all rows were parsed");
  *nonzeros = rows->shape.nonzeros;
  return seconds;
}

Dataset open(const std::string& path) {
  DatasetOptions options;
  options.path = path;
  auto data = open_dataset(options);
  require(data.status());
  return std::move(*data);
}

// --- the model that came back

struct Weights {
  std::vector<float> of_key = std::vector<float>(kFeatures);
  float bias = 0;
};

Weights weights_of(const TrainedModel& model) {
  Weights weights;
  const auto value = [](const TrainedTable& table, size_t i) {
    float value;
    std::memcpy(&value, table.values.data() + i * sizeof value, sizeof value);
    return value;
  };
  for (size_t i = 0; i < model.tables[0].keys.size(); ++i)
    weights.of_key[model.tables[0].keys[i]] = value(model.tables[0], i);
  weights.bias = value(model.tables[1], 0);
  return weights;
}

double held_out_auc(const Dataset& test, const Weights& weights) {
  Ranking ranking;
  for (size_t row = 0; row < test.rows(); ++row) {
    float score = weights.bias;
    test.visit(row, [&](auto keys, std::span<const float>) {
      for (const auto key : keys) score += weights.of_key[key];
    });
    ranking.add(score, test.label(row) > 0);
  }
  return ranking.area();
}

// --- training

struct Trained {
  double seconds = 0;  // of the epoch
  double whole = 0;    // with the start of the nodes and the fetching of the model
  double auc = 0;
  uint32_t checksum = 0;
};

Trained train_distributed(JobConfig job, Launch launched, const TrainingData& data, const Dataset& test,
                          const JobParts& parts) {
  job.distribute.launch = launched;
  const auto start = Clock::now();
  const JobResult result =
      launch(job, data, {.parts = parts, .events = {}, .executable = "/proc/self/exe", .log_path = ""});
  const double whole = seconds_since(start);
  require(result.status);
  require(result.progress.rows == data.train.rows(), "not all rows were trained on");
  return {.seconds = result.progress.seconds,
          .whole = whole,
          .auc = held_out_auc(test, weights_of(result.model)),
          .checksum = result.model.checksum()};
}

// What one process would do that keeps all parameters in one array: nothing is sent, no key is looked up.
Trained train_serially(const JobConfig& job, const TrainingData& data, const Dataset& test, const JobParts& parts) {
  const auto start = Clock::now();
  const auto model = make_model<float>(job.model);
  const auto optimizer = parts.optimizers.make<float>(job.train.optimizer);
  require(model.status());
  require(optimizer.status());
  const size_t stride = 1 + (*optimizer)->state_per_weight();
  std::vector<float> table((kFeatures + 1) * stride);  // the bias is the last row
  float* const chunk = table.data();
  Rows<float> rows{&chunk, 31, stride, 1, 1, {}, nullptr};

  const auto batch_size = static_cast<uint64_t>(job.train.batch);
  const Sampler sampler(data.train.rows(), batch_size, 1, job.train.seed, job.train.partition);
  BatchBuilder builder;
  Batch batch;
  Parameters<float> parameters;
  Gradients<float> gradients;
  std::vector<uint64_t> chosen;
  std::vector<uint32_t> keys;
  const uint32_t bias = kFeatures;
  for (uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    sampler.rows_of(0, step, 0, &chosen);
    builder.build(data.train, chosen, &batch);
    shape_for(batch, (*model)->layout(), &parameters);
    keys.assign(batch.keys.begin(), batch.keys.end());
    for (size_t i = 0; i < keys.size(); ++i) parameters.tables[0][i] = *rows.row(keys[i]);
    parameters.tables[1][0] = *rows.row(bias);
    (*model)->step(batch, parameters, 1.0F / static_cast<float>(batch.rows()), &gradients);
    rows.rows = keys;
    rows.gradients = gradients.tables[0].data();
    (*optimizer)->apply(rows);
    rows.rows = std::span(&bias, 1);
    rows.gradients = gradients.tables[1].data();
    (*optimizer)->apply(rows);
  }
  Trained trained;
  trained.seconds = trained.whole = seconds_since(start);
  Weights weights;
  for (uint32_t key = 0; key < kFeatures; ++key) weights.of_key[key] = *rows.row(key);
  weights.bias = *rows.row(bias);
  trained.auc = held_out_auc(test, weights);
  return trained;
}

// --- figures

void print_row(const std::string& name, const std::string& figure) {
  fmt::print("{:<60} {:>28}\n", name, figure);
  std::fflush(stdout);
}

void measure_data(int rounds, const std::string& path) {
  Figure rate, opening;
  const auto start = Clock::now();
  require(open(path).rows() == kRows, "not all rows are in the cache");
  const double first = seconds_since(start);
  for (int round = 0; round < rounds; ++round) {
    uint64_t nonzeros = 0;
    const double seconds = parse_seconds(path, &nonzeros);
    rate.add(static_cast<double>(nonzeros) / seconds / 1e6);
    const auto begun = Clock::now();
    require(open(path).rows() == kRows, "not all rows are in the cache");
    opening.add(seconds_since(begun) * 1e3);
  }
  print_row("parse text, one core, M features/s", rate.text(1));
  print_row("parse text and write the cache, all cores, s", fmt::format("{:.2f}", first));
  print_row("open the cache, ms", opening.text(2));
}

struct Measured {
  Figure seconds, whole, rows, features, ratio;
  double auc = 0;
};

void print_training(const std::string& how, const Measured& measured) {
  print_row(how + ": epoch, s", measured.seconds.text(3));
  print_row(how + ": whole job, s", measured.whole.text(3));
  print_row(how + ": M rows/s", measured.rows.text(2));
  print_row(how + ": M features/s", measured.features.text(1));
  print_row(how + ": time over the serial loop's", measured.ratio.text(2));
  print_row(how + ": AUC, held out", fmt::format("{:.4f}", measured.auc));
}

void measure_training(int rounds, const JobConfig& job, const TrainingData& data, const Dataset& test) {
  const JobParts parts;
  Measured serial, processes, threads;
  const auto add = [&](Measured& measured, const Trained& trained, double serial_seconds) {
    measured.seconds.add(trained.seconds);
    measured.whole.add(trained.whole);
    measured.rows.add(static_cast<double>(data.train.rows()) / trained.seconds / 1e6);
    measured.features.add(static_cast<double>(data.train.nonzeros()) / trained.seconds / 1e6);
    measured.ratio.add(trained.seconds / serial_seconds);
    measured.auc = trained.auc;
  };
  for (int round = 0; round < rounds; ++round) {
    const Trained alone = train_serially(job, data, test, parts);
    const Trained by_processes = train_distributed(job, Launch::kProcesses, data, test, parts);
    const Trained by_threads = train_distributed(job, Launch::kThreads, data, test, parts);
    require(by_processes.checksum == by_threads.checksum, "processes and threads gave different models");
    // Only the order in which gradients are added up differs.
    require(std::abs(by_threads.auc - alone.auc) < 1e-3, "the distributed model ranks otherwise than the serial one");
    add(serial, alone, alone.seconds);
    add(processes, by_processes, alone.seconds);
    add(threads, by_threads, alone.seconds);
  }
  print_training("serial loop", serial);
  print_training("1 server, 2 workers, processes", processes);
  print_training("1 server, 2 workers, threads", threads);
}

}  // namespace

int clicks(int rounds) {
  const TempDir folder;
  const JobConfig job = make_job(folder);
  const ClickOptions options{.features = kFeatures};
  require(write_clicks(job.data.train, options, 0, kRows));
  print_row("800k rows x 39 features, 2^20 keys", fmt::format("median (least .. most) of {}", rounds));
  measure_data(rounds, job.data.train);
  const TrainingData data{.train = open(job.data.train), .test = {}};
  measure_training(rounds, job, data, generate_clicks(options, kRows, kTestRows));
  return 0;
}

}  // namespace talweg::bench
