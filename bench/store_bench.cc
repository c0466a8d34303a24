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
#include "store/zeroed_array.h"

namespace talweg::bench {
namespace {

constexpr std::array kDrivers = {"inproc", "shm", "tcp"};
constexpr TableId kTable = 0;

Task<> serve_store(Io& io, StoreServer& server) {
  TaskSet tasks(io);
  server.start(tasks);
  co_await tasks.join();
}

struct StoreShape {
  uint32_t shards = 1, workers = 1;
  StoreConfig config = {};
};

// Shards on threads of their own, and workers on the callers'. Between rounds they sleep, so that several stores can be
// kept ready beside each other and measured in turn.
class Store {
 public:
  Store(const std::string& driver, const StoreParts& parts, const StoreShape& shape = {}) : hub_(inproc::make_hub()) {
    std::vector<Peer> nodes;
    for (uint32_t s = 0; s < shape.shards; ++s) {
      servers_.push_back(std::make_unique<Shard>(make_node(s, shape), s, shape, parts));
      connect(*servers_.back()->io, driver);
      nodes.push_back(s);
    }
    for (uint32_t w = 0; w < shape.workers; ++w) {
      const StoreJob job{.workers = shape.workers};
      workers_.push_back(std::make_unique<Worker>(make_node(shape.shards + w, shape), nodes, job, w, shape.config));
      connect(*workers_.back()->io, driver);
      for (const auto& server : servers_) workers_.back()->io->learn(server->io->self(), server->io->address());
    }
    for (const auto& server : servers_) {
      threads_.emplace_back([&server = *server] { server.io->run(serve_store(*server.io, server.server)); });
    }
  }
  ~Store() {
    for (const auto& server : servers_) {
      HostIo& io = *server->io;
      io.from_outside([&io] { io.stop(Status(Code::kCancelled, "the benchmark is over")); });
    }
    for (std::thread& thread : threads_) thread.join();
  }

  Io& io(uint32_t worker = 0) { return *workers_[worker]->io; }
  StoreClient& client(uint32_t worker = 0) { return workers_[worker]->client; }
  void run(Task<> task) { workers_[0]->io->run(std::move(task)); }
  // Every worker on a thread of its own, beside each other.
  template <class MakeTask>
  void run_all(MakeTask task) {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      threads.emplace_back([&, w] { workers_[w]->io->run(task(w)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Shard {
    Shard(std::unique_ptr<HostIo> node, uint32_t number, const StoreShape& shape, const StoreParts& parts)
        : io(std::move(node)), server(*io, number, shape.shards, parts, shape.config) {}
    std::unique_ptr<HostIo> io;
    StoreServer server;
  };
  struct Worker {
    Worker(std::unique_ptr<HostIo> node, std::vector<Peer> shards, StoreJob job, uint32_t rank, StoreConfig config)
        : io(std::move(node)), client(*io, std::move(shards), std::move(job), rank, config) {}
    std::unique_ptr<HostIo> io;
    StoreClient client;
  };

  static std::unique_ptr<HostIo> make_node(Peer self, const StoreShape& shape) {
    HostIoOptions options;
    options.self = self;
    options.job = "bench";
    if (std::thread::hardware_concurrency() >= shape.shards + shape.workers) options.spin = milliseconds(1);
    return std::make_unique<HostIo>(options);
  }
  void connect(HostIo& io, const std::string& driver) {
    if (driver == "inproc") {
      io.add(inproc::make_transport(hub_, std::to_string(io.self()), io.bell()));
      return;
    }
    auto transport = driver == "shm" ? shm::make_transport(io.bell()) : tcp::make_transport("127.0.0.1:0");
    require(transport.status());
    io.add(std::move(*transport));
  }

  std::shared_ptr<inproc::Hub> hub_;
  std::vector<std::unique_ptr<Shard>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
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
  static constexpr size_t kInFlight = 3;

  DenseLoad(Store& store, size_t bytes)
      : io_(store.io()), client_(store.client()), weights_(bytes / sizeof(float)), gradients_(weights_.size(), 1.0F) {}

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

  // Pushes alone, each sent while those before it are being applied. Returns when the last is acknowledged.
  Task<> pipelined(size_t count) {
    TaskSet pushes(io_);
    for (size_t i = 0; i < count; ++i) {
      while (under_way_ == kInFlight) require(co_await io_.wait(pushed_, io_.within(seconds(30), "a push")));
      ++under_way_;
      pushes.spawn(push_beside(step_++));
    }
    co_await pushes.join();
  }

  Task<> verify() {
    require(co_await client_.read_range<float>(kTable, step_, 0, weights_));
    for (const float weight : weights_) require(weight == -static_cast<float>(step_), "a dense weight is wrong");
  }

 private:
  static constexpr size_t kWarmUp = 3;
  // Up to this size the time until the acknowledgement is told, above it the time until the update is made.
  static constexpr size_t kLatencyValues = 16 << 10;

  Task<> step(Times* times) {
    const auto begun = Clock::now();
    require(co_await client_.pull_range<float>(kTable, step_, 0, weights_));
    const double pulled = seconds_since(begun);
    require((co_await client_.push_range<float>(kTable, step_, 0, gradients_)).status());
    const double acknowledged = seconds_since(begun);
    require(co_await client_.read_range<float>(kTable, step_ + 1, 0, {}));
    const double pushed = weights_.size() > kLatencyValues ? seconds_since(begun) : acknowledged;
    const float expected = -static_cast<float>(step_++);
    require(weights_.front() == expected && weights_.back() == expected, "a dense pull is stale");
    if (times == nullptr) co_return;
    times->pull.push_back(pulled);
    times->push.push_back(pushed - pulled);
  }

  Task<> push_beside(int64_t step) {
    require((co_await client_.push_range<float>(kTable, step, 0, gradients_)).status());
    --under_way_;
    pushed_.notify();
  }

  Io& io_;
  StoreClient& client_;
  int64_t step_ = 0;
  size_t under_way_ = 0;
  Signal pushed_;
  std::vector<float> weights_;
  const std::vector<float> gradients_;
};

class SparseLoad {
 public:
  static constexpr size_t kKeys = 5'000'000, kBatch = 98'304;

  SparseLoad(Store& store, uint32_t width)
      : client_(store.client()),
        width_(width),
        weights_(kBatch * width),
        gradients_(kBatch * width, 1.0F),
        pushed_(kKeys) {}

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
    ++step_;
    // Until the update is made: the acknowledgement comes before.
    require(co_await client_.read<float>(kTable, step_, no_keys_, {}));
    const double pushed = seconds_since(begun);
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
  const KeyRoute no_keys_{1};
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
    loads.push_back(std::make_unique<Load>(*stores.back(), shape));
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

// The 16 MB pushes again, several under way.
void pipelined_pushes(int rounds, size_t bytes, size_t steps) {
  const StoreParts parts;
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<DenseLoad>> loads;
  for (const char* driver : kDrivers) {
    stores.push_back(std::make_unique<Store>(driver, parts));
    loads.push_back(std::make_unique<DenseLoad>(*stores.back(), bytes));
    stores.back()->run(loads.back()->prepare());
  }
  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    for (size_t d = 0; d < kDrivers.size(); ++d) {
      const auto start = Clock::now();
      stores[d]->run(loads[d]->pipelined(steps));
      figures[d].add(static_cast<double>(bytes * steps) / seconds_since(start) / 1e6);
    }
  }
  for (size_t d = 0; d < kDrivers.size(); ++d) stores[d]->run(loads[d]->verify());
  print_row(fmt::format("  {} pushes in flight, MB/s", DenseLoad::kInFlight), figures, 0);
}

// Bytes of keys and values of each push of one key set: with a list that the shard knows, and with the keys.
Task<> push_alone(StoreClient& client, bool same_keys, size_t steps) {
  TableSpec spec;
  spec.name = "sparse";
  spec.optimizer = counting_optimizer();
  require(co_await client.create(spec));
  std::vector<uint64_t> keys(SparseLoad::kBatch);
  std::vector<float> values(keys.size(), 1.0F);
  KeyRoute route(1, client.key_order());
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 53 + (same_keys ? 0 : step);
    route.build(keys);
    require((co_await client.push<float>(kTable, static_cast<int64_t>(step), route, values)).status());
  }
  require(co_await client.read<float>(kTable, static_cast<int64_t>(steps), route, values));
  const float expected = same_keys ? -static_cast<float>(steps) : -1.0F;
  for (const float value : values) require(value == expected, "a weight of a repeated key is wrong");
}

double bytes_of_push(bool same_keys, bool pack_keys) {
  constexpr size_t kSteps = 50;
  const StoreParts parts;
  StoreShape shape;
  shape.config.pack_keys = pack_keys;
  Store store("inproc", parts, shape);
  store.run(push_alone(store.client(), same_keys, kSteps));
  return static_cast<double>(store.client().counters().bytes_pushed) / kSteps;
}

void repeated_keys() {
  const double sent = bytes_of_push(false, false), packed = bytes_of_push(false, true),
               known = bytes_of_push(true, false);
  const auto row = [&](const char* what, double bytes) {
    fmt::print("{:<32} {:>12.0f} bytes a push, {:.1f}% saved\n", what, bytes, 100 * (1 - bytes / sent));
  };
  row("98,304 keys x 1, new each step", sent);
  row("  keys packed", packed);
  row("the same keys each step", known);
}

void sparse_rate(int rounds, uint32_t width, size_t steps) {
  const auto mkeys_per_second = [](double seconds) { return static_cast<double>(SparseLoad::kBatch) / seconds / 1e6; };
  const Comparison comparison = compare<SparseLoad>(rounds, steps, width, mkeys_per_second);
  print_rates(fmt::format("sparse push x {}", width), "Mkeys/s", comparison.push, 1);
  print_rates(fmt::format("sparse pull x {}", width), "Mkeys/s", comparison.pull, 1);
}

// What memory alone allows: for each key a random cache line of an array as large as the index of 5 million keys, then
// the lines of a random row, each asked for ahead, on one thread, and nothing else.
void bare_reads(int rounds, uint32_t width, size_t steps) {
  constexpr size_t kIndexLines = (size_t{1} << 24) * 16 / 64, kLineValues = 64 / sizeof(float), kAhead = 16;
  const ZeroedArray<std::array<uint64_t, 8>> index(kIndexLines, Pages::kHuge);
  const ZeroedArray<float> rows(SparseLoad::kKeys * width, Pages::kHuge);
  for (size_t i = 0; i < kIndexLines; ++i) index[i][0] = i;
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 1;
  std::vector<uint64_t> lines(SparseLoad::kBatch), places(SparseLoad::kBatch);
  std::vector<float> out(SparseLoad::kBatch * width);
  Rng rng(1);
  Figure rate;
  for (int round = 0; round < rounds; ++round) {
    double seconds = 0;
    for (size_t step = 0; step < steps; ++step) {
      for (uint64_t& line : lines) line = rng.below(kIndexLines);
      for (uint64_t& place : places) place = rng.below(SparseLoad::kKeys) * width;
      const auto begun = Clock::now();
      uint64_t sum = 0;
      for (size_t i = 0; i < lines.size(); ++i) {
        if (i + kAhead < lines.size()) __builtin_prefetch(&index[lines[i + kAhead]]);
        sum += index[lines[i]][0];
      }
      for (size_t i = 0; i < places.size(); ++i) {
        for (size_t at = 0; i + kAhead < places.size() && at < width; at += kLineValues) {
          __builtin_prefetch(&rows[places[i + kAhead] + at]);
        }
        std::copy_n(&rows[places[i]], width, &out[i * width]);
      }
      seconds += seconds_since(begun);
      uint64_t expected = 0;
      for (const uint64_t line : lines) expected += line;
      require(sum == expected && out.back() == 1, "a bare read is wrong");
    }
    rate.add(static_cast<double>(steps * lines.size()) / seconds / 1e6);
  }
  fmt::print("{:<32} {:>30}\n", fmt::format("bare reads x {}, Mkeys/s", width), rate.text(1));
}

// --- scaling

// A worker among several: draws its own keys, and goes its own pace, since sums of ones do not depend on their order.
class ScaleWorker {
 public:
  static constexpr size_t kKeys = 1'000'000, kBatch = 98'304, kDense = size_t{1} << 20;

  ScaleWorker(StoreClient& client, uint32_t rank, uint32_t width)
      : client_(client),
        width_(width),
        rng_(1, rank),
        route_(client.shards()),
        keys_(width > 0 ? kBatch : 0),
        weights_(width > 0 ? kBatch * width : kDense),
        gradients_(weights_.size(), 1.0F),
        pushed_(width > 0 ? kKeys : 0) {}

  Task<> prepare() {
    TableSpec spec;
    spec.name = "scale";
    spec.sparse = width_ > 0;
    spec.width = std::max<uint32_t>(width_, 1);
    spec.size = width_ > 0 ? 0 : kDense;
    spec.optimizer = counting_optimizer();
    spec.sync = Sync::asp();
    require(co_await client_.create(spec));
    co_await steps(2 * kKeys / kBatch);
  }

  Task<> steps(size_t count) {
    for (size_t i = 0; i < count; ++i, ++step_) {
      if (width_ == 0) {
        require(co_await client_.pull_range<float>(kTable, step_, 0, weights_));
        require((co_await client_.push_range<float>(kTable, step_, 0, gradients_)).status());
        continue;
      }
      for (uint64_t& key : keys_) {
        key = rng_.below(kKeys);
        ++pushed_[key];
      }
      route_.build(keys_);
      require(co_await client_.pull<float>(kTable, step_, route_, weights_));
      require((co_await client_.push<float>(kTable, step_, route_, gradients_)).status());
    }
  }

  // `pushed` is by key, of all workers; dense: unused.
  Task<> verify(const std::vector<uint64_t>& pushed, uint32_t workers) {
    if (width_ == 0) {
      require(co_await client_.read_range<float>(kTable, step_, 0, weights_));
      const float expected = -static_cast<float>(step_) * static_cast<float>(workers);
      for (const float weight : weights_) require(weight == expected, "a dense weight is wrong");
    }
    for (size_t first = 0; width_ > 0 && first + kBatch <= kKeys; first += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) keys_[i] = first + i;
      route_.build(keys_);
      require(co_await client_.read<float>(kTable, step_, route_, weights_));
      for (size_t i = 0; i < weights_.size(); ++i) {
        require(weights_[i] == -static_cast<float>(pushed[keys_[i / width_]]), "a sparse weight is wrong");
      }
    }
  }
  const std::vector<uint64_t>& pushed() const { return pushed_; }

 private:
  StoreClient& client_;
  const uint32_t width_;  // 0: the dense table
  int64_t step_ = 0;
  Rng rng_;
  KeyRoute route_;
  std::vector<uint64_t> keys_;
  std::vector<float> weights_;
  const std::vector<float> gradients_;
  std::vector<uint64_t> pushed_;  // how often, by key
};

// Values pulled and pushed per second by all workers together, in millions of keys (dense: of floats).
Figure scaled_rate(int rounds, uint32_t shards, uint32_t width, size_t steps) {
  const StoreParts parts;
  Store store("inproc", parts, {.shards = shards, .workers = shards});
  std::vector<std::unique_ptr<ScaleWorker>> workers;
  for (uint32_t w = 0; w < shards; ++w) workers.push_back(std::make_unique<ScaleWorker>(store.client(w), w, width));
  store.run_all([&](uint32_t w) { return workers[w]->prepare(); });
  Figure figure;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    store.run_all([&](uint32_t w) { return workers[w]->steps(steps); });
    const size_t each = width > 0 ? ScaleWorker::kBatch : ScaleWorker::kDense;
    figure.add(static_cast<double>(2 * shards * steps * each) / seconds_since(start) / 1e6);
  }
  std::vector<uint64_t> pushed(workers[0]->pushed().size());
  for (const auto& worker : workers) {
    for (size_t key = 0; key < pushed.size(); ++key) pushed[key] += worker->pushed()[key];
  }
  store.run(workers[0]->verify(pushed, shards));
  return figure;
}

}  // namespace

int store_scale(int rounds) {
  fmt::print("{:<10} {:<24} {:>32} {:>12}\n", "shards", fmt::format("on {} cores", std::thread::hardware_concurrency()),
             "M/s pulled and pushed", "efficiency");
  for (const uint32_t width : {1, 8, 0}) {
    double one = 0;
    for (uint32_t shards = 1; shards <= 8; shards *= 2) {
      const Figure figure = scaled_rate(rounds, shards, width, 20);
      if (shards == 1) one = figure.median();
      const std::string what = width > 0 ? fmt::format("sparse x {}, keys", width) : "dense 4 MB, floats";
      fmt::print("{:<10} {:<24} {:>32} {:>12.2f}\n", shards, what, figure.text(1), figure.median() / shards / one);
      std::fflush(stdout);
    }
  }
  return 0;
}

int store(int rounds) {
  fmt::print("{:<32}", fmt::format("median (least .. most) of {}", rounds));
  for (const char* driver : kDrivers) fmt::print(" {:>30}", driver);
  fmt::print("\n");
  dense_latency(rounds);
  dense_throughput(rounds, "64 KB", 64 << 10, 2000);
  dense_throughput(rounds, "1 MB", 1 << 20, 200);
  dense_throughput(rounds, "16 MB", 16 << 20, 16);
  pipelined_pushes(rounds, 16 << 20, 16);
  for (const uint32_t width : {1, 8, 64}) {
    sparse_rate(rounds, width, 20);
    bare_reads(rounds, width, 20);
  }
  repeated_keys();
  return 0;
}

}  // namespace talweg::bench
