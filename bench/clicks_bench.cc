// Click prediction, 800,000 rows of 39 features below 2^20: parsing of LibSVM text on one core, opening of the cache,
// and one epoch of logistic regression through the store (1 server, 2 workers; processes and threads) beside the same
// batches trained in a plain loop, so that the price of distribution is a ratio of one run. Held-out rows are ranked
// here, with the model as it came back; processes and threads must give the same bits.
#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/temp_dir.h"
#include "bench/bench.h"
#include "bench/clicks.h"
#include "bench/measure.h"
#include "data/cache.h"
#include "data/generator.h"
#include "data/sampler.h"
#include "model/ranking.h"
#include "train/launch.h"

namespace talweg::bench {
namespace {

constexpr uint64_t kRows = kClickRows, kTestRows = kClickTestRows, kFeatures = kClickFeatures;

JobConfig make_job(const TempDir& folder) {
  JobConfig job;
  job.name = "bench";
  job.model.features = kFeatures;
  job.data.train = folder.path("train.svm");
  job.train.batch = 8192;
  // Found with 700,000 of the training rows, ranked on the others. The accumulator's start makes the first step of a
  // rare key a small one, which is worth more than the rate: without it AdaGrad trusts a key's first row most.
  job.train.optimizer = {.type = "adagrad", .lr = 0.1, .initial_accumulator = 1.65e-7};
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

ClickWeights weights_of(const TrainedModel& model) {
  ClickWeights weights;
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
  const auto model = ModelRegistry::standard().make<float>(job.model);
  const auto optimizer = parts.optimizers.make<float>(job.train.optimizer);
  require(model.status());
  require(optimizer.status());
  const size_t stride = 1 + (*optimizer)->state_per_weight();
  std::vector<float> table((kFeatures + 1) * stride);  // the bias is the last row
  for (size_t i = 0; i < table.size(); ++i) {
    if (i % stride > 0) table[i] = (*optimizer)->initial_state(i % stride - 1);
  }
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
  ClickWeights weights;
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

// --- peers

// A Python process that trains each peer once when asked to (bench/peers/clicks.py).
class Peers {
 public:
  Peers(const JobConfig& job, const TempDir& folder, const ClickOptions& options) {
    const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path();
    const auto python = build / "peers/bin/python", script = build.parent_path() / "bench/peers/clicks.py";
    require(std::filesystem::exists(python) && std::filesystem::exists(script),
            fmt::format("--peers needs {} and {}: run bench/peers/setup.sh", python.string(), script.string()));
    const std::string test = folder.path("test.svm"), questions = folder.path("questions"),
                      answers = folder.path("answers");
    require(write_clicks(test, options, kRows, kTestRows));
    for (const auto& pipe : {questions, answers}) require(::mkfifo(pipe.c_str(), 0600) == 0, "cannot make a pipe");
    std::filesystem::create_directory(folder.path("peers"));
    // In the background, so that it is no child of this process: launching waits for all of those.
    const std::string command =
        fmt::format("'{}' '{}' '{}' '{}' '{}' < '{}' > '{}' &", python.string(), script.string(), job.data.train, test,
                    folder.path("peers"), questions, answers);
    require(std::system(command.c_str()) == 0, "cannot start the peers");
    questions_.open(questions);
    answers_.open(answers);
    peers_ = answer().at("peers").size();
  }

  void train() {
    questions_ << std::endl;
    for (size_t i = 0; i < peers_; ++i) {
      const auto trained = answer();
      Peer& peer = by_name_[trained.at("name")];
      peer.seconds.add(trained.at("seconds"));
      peer.auc = trained.at("auc");
    }
  }
  void print() const {
    for (const auto& [name, peer] : by_name_) {
      print_row(name + ": epoch, s", peer.seconds.text(3));
      print_row(name + ": AUC, held out", fmt::format("{:.4f}", peer.auc));
    }
  }

 private:
  struct Peer {
    Figure seconds;
    double auc = 0;
  };
  nlohmann::json answer() {
    std::string line;
    require(static_cast<bool>(std::getline(answers_, line)), "the peers ended early");
    return nlohmann::json::parse(line);
  }

  std::ofstream questions_;
  std::ifstream answers_;
  size_t peers_ = 0;
  std::map<std::string, Peer> by_name_;
};

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

void measure_training(int rounds, const JobConfig& job, const TrainingData& data, const Dataset& test, Peers* peers) {
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
    if (peers != nullptr) peers->train();
    add(serial, alone, alone.seconds);
    add(processes, by_processes, alone.seconds);
    add(threads, by_threads, alone.seconds);
  }
  print_training("serial loop", serial);
  print_training("1 server, 2 workers, processes", processes);
  print_training("1 server, 2 workers, threads", threads);
  if (peers != nullptr) peers->print();
}

}  // namespace

int clicks(int rounds, bool with_peers) {
  const TempDir folder;
  const JobConfig job = make_job(folder);
  const ClickOptions options{.features = kFeatures};
  require(write_clicks(job.data.train, options, 0, kRows));
  print_row("800k rows x 39 features, 2^20 keys", fmt::format("median (least .. most) of {}", rounds));
  measure_data(rounds, job.data.train);
  const TrainingData data{.train = open(job.data.train), .test = {}};
  const auto peers = with_peers ? std::make_unique<Peers>(job, folder, options) : nullptr;
  measure_training(rounds, job, data, generate_clicks(options, kRows, kTestRows), peers.get());
  return 0;
}

}  // namespace talweg::bench
