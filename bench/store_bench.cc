// The parameter store, one shard and one worker on two threads, over each driver: dense pushes and pulls by size,
// sparse ones on a table of 5 million keys by width. Gradients are ones and the optimizer is SGD with learning rate 1,
// so a weight must end as minus the number of times it was pushed; every weight is checked.
#include <array>
#include <memory>
#include <thread>

#include "bench/bench.h"
#include "bench/measure.h"
#include "io/host_io.h"
#include "io/inproc/transport.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"
#include "store/client.h"
#include "store/server.h"

namespace talweg::bench {
namespace {

constexpr std::array kDrivers = {"inproc", "shm", "tcp"};
constexpr Peer kServer = 0, kWorker = 1;
constexpr TableId kTable = 0;

std::unique_ptr<HostIo> make_node(Peer self) {
  HostIoOptions options;
  options.self = self;
  options.job = "bench";
  if (std::thread::hardware_concurrency() >= 2) options.spin = milliseconds(1);
  return std::make_unique<HostIo>(options);
}

void connect(HostIo& io, const std::string& driver, const std::shared_ptr<inproc::Hub>& hub) {
  if (driver == "inproc") {
    io.add(inproc::make_transport(hub, std::to_string(io.self()), io.bell()));
    return;
  }
  auto transport = driver == "shm" ? shm::make_transport(io.bell()) : tcp::make_transport("127.0.0.1:0");
  require(transport.status());
  io.add(std::move(*transport));
}

Task<> serve_store(Io& io, StoreServer& server) {
  TaskSet tasks(io);
  server.start(tasks);
  co_await tasks.join();
}

// A server on a thread of its own and a worker on the caller's. Between rounds it sleeps, so that several can be kept
// ready beside each other and measured in turn.
class Store {
 public:
  Store(const std::string& driver, const StoreParts& parts)
      : hub_(inproc::make_hub()),
        server_io_(make_node(kServer)),
        worker_io_(make_node(kWorker)),
        server_(*server_io_, 0, 1, parts, StoreConfig()),
        client_(*worker_io_, {kServer}, StoreJob(), 0, StoreConfig()) {
    connect(*server_io_, driver, hub_);
    connect(*worker_io_, driver, hub_);
    worker_io_->learn(kServer, server_io_->address());
    thread_ = std::thread([this] { server_io_->run(serve_store(*server_io_, server_)); });
  }
  ~Store() {
    server_io_->from_outside([this] { server_io_->stop(Status(Code::kCancelled, "the benchmark is over")); });
    thread_.join();
  }

  StoreClient& client() { return client_; }
  void run(Task<> task) { worker_io_->run(std::move(task)); }

 private:
  std::shared_ptr<inproc::Hub> hub_;
  std::unique_ptr<HostIo> server_io_, worker_io_;
  StoreServer server_;
  StoreClient client_;
  std::thread thread_;
};

// Seconds of each step.
struct Times {
  std::vector<double> pull, push;
};

double mean(const std::vector<double>& seconds) {
  double sum = 0;
  for (const double s : seconds) sum += s;
  return sum / static_cast<double>(seconds.size());
}
double middle(std::vector<double> seconds) {
  const auto half = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), half, seconds.end());
  return *half;
}

OptimizerConfig counting_optimizer() { return {.type = "sgd", .lr = 1}; }

class DenseLoad {
 public:
  DenseLoad(StoreClient& client, size_t bytes)
      : client_(client), weights_(bytes / sizeof(float)), gradients_(weights_.size(), 1.0F) {}

  Task<> prepare() {
    TableSpec spec;
    spec.name = "dense";
    spec.sparse = false;
    spec.size = weights_.size();
    spec.optimizer = counting_optimizer();
    require(co_await client_.create(spec));
    for (size_t i = 0; i < kWarmUp; ++i) co_await step(nullptr);
  }

  Task<> steps(size_t count, Times* times) {
    for (size_t i = 0; i < count; ++i) co_await step(times);
  }

  Task<> verify() {
    require(co_await client_.read_range<float>(kTable, step_, 0, weights_));
    for (const float weight : weights_) require(weight == -static_cast<float>(step_), "a dense weight is wrong");
  }

 private:
  static constexpr size_t kWarmUp = 3;

  Task<> step(Times* times) {
    const auto begun = Clock::now();
    require(co_await client_.pull_range<float>(kTable, step_, 0, weights_));
    const double pulled = seconds_since(begun);
    require((co_await client_.push_range<float>(kTable, step_, 0, gradients_)).status());
    const double pushed = seconds_since(begun);
    const float expected = -static_cast<float>(step_++);
    require(weights_.front() == expected && weights_.back() == expected, "a dense pull is stale");
    if (times == nullptr) co_return;
    times->pull.push_back(pulled);
    times->push.push_back(pushed - pulled);
  }

  StoreClient& client_;
  int64_t step_ = 0;
  std::vector<float> weights_;
  const std::vector<float> gradients_;
};

class SparseLoad {
 public:
  static constexpr size_t kKeys = 5'000'000, kBatch = 98'304;

  SparseLoad(StoreClient& client, uint32_t width)
      : client_(client), width_(width), weights_(kBatch * width), gradients_(kBatch * width, 1.0F), pushed_(kKeys) {}

  Task<> prepare() {
    TableSpec spec;
    spec.name = "sparse";
    spec.width = width_;
    spec.optimizer = counting_optimizer();
    require(co_await client_.create(spec));
    for (size_t first = 0; first < kKeys; first += kBatch) {
      choose_run(first);
      co_await step(nullptr);
    }
    for (size_t i = 0; i < kWarmUp; ++i) {
      choose_random();
      co_await step(nullptr);
    }
  }

  Task<> steps(size_t count, Times* times) {
    for (size_t i = 0; i < count; ++i) {
      choose_random();
      co_await step(times);
    }
  }

  Task<> verify() {
    for (size_t first = 0; first < kKeys; first += kBatch) {
      choose_run(first);
      route_.build(keys_);
      const std::span<float> weights = std::span(weights_).first(keys_.size() * width_);
      require(co_await client_.read<float>(kTable, step_, route_, weights));
      for (size_t i = 0; i < weights.size(); ++i) {
        require(weights[i] == -static_cast<float>(pushed_[chosen_[i / width_]]), "a sparse weight is wrong");
      }
    }
  }

 private:
  static constexpr size_t kWarmUp = 3;

  void choose_run(size_t first) {
    chosen_.resize(std::min(kBatch, kKeys - first));
    for (size_t i = 0; i < chosen_.size(); ++i) chosen_[i] = static_cast<uint32_t>(first + i);
    take_keys();
  }
  void choose_random() {
    chosen_.resize(kBatch);
    for (uint32_t& key : chosen_) key = static_cast<uint32_t>(rng_.below(kKeys));
    take_keys();
  }
  void take_keys() {
    keys_.resize(chosen_.size());
    for (size_t i = 0; i < chosen_.size(); ++i) keys_[i] = mix64(chosen_[i]);
  }

  // The route is made once for pull and push, and counts as part of the pull.
  Task<> step(Times* times) {
    const std::span<float> weights = std::span(weights_).first(keys_.size() * width_);
    const std::span<const float> gradients = std::span(gradients_).first(keys_.size() * width_);
    const auto begun = Clock::now();
    route_.build(keys_);
    require(co_await client_.pull<float>(kTable, step_, route_, weights));
    const double pulled = seconds_since(begun);
    require((co_await client_.push<float>(kTable, step_, route_, gradients)).status());
    const double pushed = seconds_since(begun);
    ++step_;
    for (const uint32_t key : chosen_) ++pushed_[key];
    if (times == nullptr) co_return;
    times->pull.push_back(pulled);
    times->push.push_back(pushed - pulled);
  }

  StoreClient& client_;
  const uint32_t width_;
  int64_t step_ = 0;
  Rng rng_{1};
  KeyRoute route_{1};
  std::vector<uint32_t> chosen_;
  std::vector<uint64_t> keys_;
  std::vector<float> weights_;
  const std::vector<float> gradients_;
  std::vector<uint32_t> pushed_;  // how often, by key
};

using Figures = std::array<Figure, kDrivers.size()>;

void print_row(const std::string& name, const Figures& figures, int digits) {
  fmt::print("{:<32}", name);
  for (const Figure& figure : figures) fmt::print(" {:>30}", figure.text(digits));
  fmt::print("\n");
  std::fflush(stdout);
}

// Of a round as a whole, which is what throughput means, and of its median step, which a busy host disturbs less.
struct Measured {
  Figures whole, middle_step;
};
struct Comparison {
  Measured pull, push;
};

// The drivers in turn, round after round; `figure` makes the seconds of a step a number.
template <class Load, class Shape, class ToFigure>
Comparison compare(int rounds, size_t steps, Shape shape, ToFigure figure) {
  const StoreParts parts;
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<Load>> loads;
  for (const char* driver : kDrivers) {
    stores.push_back(std::make_unique<Store>(driver, parts));
    loads.push_back(std::make_unique<Load>(stores.back()->client(), shape));
    stores.back()->run(loads.back()->prepare());
  }
  Comparison comparison;
  const auto add = [&](Measured& measured, size_t driver, const std::vector<double>& seconds) {
    measured.whole[driver].add(figure(mean(seconds)));
    measured.middle_step[driver].add(figure(middle(seconds)));
  };
  for (int round = 0; round < rounds; ++round) {
    for (size_t d = 0; d < kDrivers.size(); ++d) {
      Times times;
      stores[d]->run(loads[d]->steps(steps, &times));
      add(comparison.pull, d, times.pull);
      add(comparison.push, d, times.push);
    }
  }
  for (size_t d = 0; d < kDrivers.size(); ++d) stores[d]->run(loads[d]->verify());
  return comparison;
}

void dense_latency(int rounds) {
  const auto us = [](double seconds) { return seconds * 1e6; };
  const Comparison comparison = compare<DenseLoad>(rounds, 4000, size_t{4096}, us);
  print_row("dense push 4 KB, p50, us", comparison.push.middle_step, 2);
  print_row("dense pull 4 KB, p50, us", comparison.pull.middle_step, 2);
}

void print_rates(const std::string& what, const char* unit, const Measured& measured, int digits) {
  print_row(fmt::format("{}, {}", what, unit), measured.whole, digits);
  print_row("  by its median step", measured.middle_step, digits);
}

void dense_throughput(int rounds, const char* size, size_t bytes, size_t steps) {
  const auto mb_per_second = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e6; };
  const Comparison comparison = compare<DenseLoad>(rounds, steps, bytes, mb_per_second);
  print_rates(fmt::format("dense push {}", size), "MB/s", comparison.push, 0);
  print_rates(fmt::format("dense pull {}", size), "MB/s", comparison.pull, 0);
}

void sparse_rate(int rounds, uint32_t width, size_t steps) {
  const auto mkeys_per_second = [](double seconds) { return static_cast<double>(SparseLoad::kBatch) / seconds / 1e6; };
  const Comparison comparison = compare<SparseLoad>(rounds, steps, width, mkeys_per_second);
  print_rates(fmt::format("sparse push x {}", width), "Mkeys/s", comparison.push, 1);
  print_rates(fmt::format("sparse pull x {}", width), "Mkeys/s", comparison.pull, 1);
}

}  // namespace

int store(int rounds) {
  fmt::print("{:<32}", fmt::format("median (least .. most) of {}", rounds));
  for (const char* driver : kDrivers) fmt::print(" {:>30}", driver);
  fmt::print("\n");
  dense_latency(rounds);
  dense_throughput(rounds, "64 KB", 64 << 10, 2000);
  dense_throughput(rounds, "1 MB", 1 << 20, 200);
  dense_throughput(rounds, "16 MB", 16 << 20, 16);
  for (const uint32_t width : {1, 8, 64}) sparse_rate(rounds, width, 20);
  return 0;
}

}  // namespace talweg::bench
