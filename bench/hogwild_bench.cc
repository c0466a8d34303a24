// Hogwild on click rows: rows per second by the number of threads, and what it learns in one pass. Held-out rows are
// ranked with every model; more threads must rank them about as well as one does.
#include <cmath>
#include <thread>

#include "bench/bench.h"
#include "bench/clicks.h"
#include "bench/measure.h"
#include "train/hogwild.h"

namespace talweg::bench {
namespace {

// Enough that 16 threads are at it for longer than it takes to start them.
constexpr uint64_t kHogwildRows = 2'400'000;
constexpr uint32_t kMostThreads = 16;

HogwildOptions options_for(uint32_t threads) {
  HogwildOptions options;
  options.features = kClickFeatures;
  options.threads = threads;
  options.optimizer = {.type = "adagrad", .lr = 0.1, .initial_accumulator = 11};
  return options;
}

struct Measured {
  uint32_t threads;
  Figure rows, speed_up, limit, auc;
};

// As many single threads beside each other, each with weights of its own: what the machine gives to threads that share
// nothing but its memory.
double seconds_apart(const Dataset& train, uint32_t threads) {
  const auto start = Clock::now();
  std::vector<std::thread> beside;
  for (uint32_t t = 0; t < threads; ++t) {
    beside.emplace_back([&] { require(train_hogwild(train, options_for(1)).status()); });
  }
  for (std::thread& thread : beside) thread.join();
  return seconds_since(start);
}

}  // namespace

int hogwild(int rounds) {
  const ClickOptions clicks{.features = kClickFeatures};
  const Dataset train = generate_clicks(clicks, 0, kHogwildRows);
  const Dataset test = generate_clicks(clicks, kHogwildRows, kClickTestRows);
  std::vector<Measured> all;
  for (uint32_t threads = 1; threads <= std::min(kMostThreads, std::thread::hardware_concurrency()); threads *= 2) {
    all.push_back({.threads = threads, .rows = {}, .speed_up = {}, .limit = {}, .auc = {}});
  }
  for (int round = 0; round < rounds; ++round) {
    double alone = 0;
    for (Measured& measured : all) {
      const auto start = Clock::now();
      auto model = train_hogwild(train, options_for(measured.threads));
      const double seconds = seconds_since(start);
      require(model.status());
      require(model->rows == train.rows(), "not all rows were trained on");
      if (measured.threads == 1) alone = seconds;
      measured.rows.add(static_cast<double>(train.rows()) / seconds / 1e6);
      measured.speed_up.add(alone / seconds);
      measured.limit.add(alone * measured.threads / seconds_apart(train, measured.threads));
      measured.auc.add(held_out_auc(test, {.of_key = std::move(model->weights), .bias = model->bias}));
      require(std::abs(measured.auc.least() - all.front().auc.most()) < 3e-3, "threads rank otherwise than one");
    }
  }
  fmt::print("{:<10} {:>24} {:>24} {:>24} {:>28}\n", "threads", "M rows/s", "speed-up", "sharing nothing",
             "AUC, held out");
  for (const Measured& measured : all) {
    fmt::print("{:<10} {:>24} {:>24} {:>24} {:>28}\n", measured.threads, measured.rows.text(2),
               measured.speed_up.text(2), measured.limit.text(2), measured.auc.text(4));
  }
  return 0;
}

}  // namespace talweg::bench
