// Workers that push and fetch only now and then: what they save, and that nothing of what they learned is lost.
#include <gtest/gtest.h>

#include "golden/serial.h"
#include "sim/world.h"
#include "store/testing.h"
#include "train/downpour_exchange.h"
#include "train/plan.h"
#include "train/simulate.h"

namespace talweg {
namespace {

// Every batch has the same keys.
JobConfig shared_keys_job() {
  JobConfig job;
  job.model.features = 8;
  job.data.generated.emplace();
  job.data.generated->rows = 900;
  job.data.generated->test_rows = 0;
  job.data.generated->features = 8;
  job.data.generated->nonzeros = 8;
  job.train.epochs = 2;
  job.train.batch = 30;
  job.train.precision = ValueType::kFloat64;
  job.train.optimizer.type = "sgd";
  job.train.optimizer.lr = 0.3;
  job.distribute.workers = 1;
  job.distribute.servers = 2;
  return job;
}

JobConfig many_keys_job() {
  JobConfig job = shared_keys_job();
  job.model.features = job.data.generated->features = 200;
  job.data.generated->rows = 310;  // steps that no number of steps between pushes divides
  return job;
}

JobResult trained(JobConfig job, int64_t push_every, int64_t fetch_every) {
  job.distribute.push_every = push_every;
  job.distribute.fetch_every = fetch_every;
  const auto data = open_data(job);
  EXPECT_TRUE(data.ok()) << data.status().text();
  const SimulatedRun run = simulate(job, *data, SimConfig{}, Faults{}, JobParts());
  EXPECT_TRUE(run.world.ok() && run.job.status.ok()) << run.world.text() << " " << run.job.status.text();
  return run.job;
}

double distance(const TrainedModel& a, const TrainedModel& b) {
  double largest = 0;
  if (a.tables.size() != b.tables.size()) return INFINITY;
  for (size_t t = 0; t < a.tables.size(); ++t) {
    if (a.tables[t].keys != b.tables[t].keys) return INFINITY;
    const auto left = numbers_of(a.tables[t]), right = numbers_of(b.tables[t]);
    for (size_t i = 0; i < left.size(); ++i) largest = std::max(largest, std::abs(left[i] - right[i]));
  }
  return largest;
}

TEST(Replica, messages_and_bytes_fall_with_the_steps_between_pushes_and_fetches) {
  const JobResult each = trained(shared_keys_job(), 1, 1);
  for (const int64_t n : {2, 5}) {
    const JobResult rarely = trained(shared_keys_job(), n, n);
    const auto& was = each.workers.at(0);
    const auto& is = rarely.workers.at(0);
    EXPECT_EQ(is.steps_done(), was.steps_done());
    EXPECT_EQ(is.pushes() * static_cast<uint64_t>(n), was.pushes());
    EXPECT_EQ(is.pulls() * static_cast<uint64_t>(n), was.pulls());
    const double bytes = static_cast<double>(is.bytes_pushed() + is.bytes_pulled());
    const double before = static_cast<double>(was.bytes_pushed() + was.bytes_pulled());
    EXPECT_LT(bytes, 1.2 * before / static_cast<double>(n));
  }
}

// Alone, and with sgd, a worker's replica makes the steps that the servers would make.
TEST(Replica, a_worker_alone_that_pushes_each_step_learns_the_bits_of_one_without_a_replica) {
  for (const char* optimizer : {"sgd", "adagrad", "adam"}) {
    JobConfig job = many_keys_job();
    job.train.optimizer.type = optimizer;
    const TrainedModel basic = trained(job, 1, 1).model;
    EXPECT_EQ(trained(job, 1, 3).model, basic) << optimizer;
    EXPECT_EQ(trained(job, 1, 1000).model, basic) << optimizer;
  }
}

TEST(Replica, what_was_not_pushed_at_an_epochs_end_is_pushed_then) {
  const TrainedModel basic = trained(many_keys_job(), 1, 1).model;
  for (const int64_t n : {3, 4, 1000}) {
    const JobResult rarely = trained(many_keys_job(), n, n);
    EXPECT_LE(distance(rarely.model, basic), 1e-12) << n;
    // 11 steps in each of two epochs.
    EXPECT_EQ(rarely.workers.at(0).rounds(), static_cast<uint64_t>(2 * ((11 + n - 1) / n))) << n;
  }
}

TEST(Replica, a_fetch_does_not_overwrite_what_was_not_pushed) {
  const TrainedModel basic = trained(many_keys_job(), 1, 1).model;
  EXPECT_LE(distance(trained(many_keys_job(), 4, 1).model, basic), 1e-12);
  EXPECT_LE(distance(trained(many_keys_job(), 5, 2).model, basic), 1e-12);
}

// The training loop alone, with an exchange of either kind; what a job never does is let one push and fetch each step.
class ExchangeLoop {
 public:
  ExchangeLoop(const JobConfig& job, bool replica) : job_(job), replica_(replica), data_(std::move(*open_data(job))) {}

  // Every parameter at the end, as worker 0 reads it.
  std::vector<std::vector<double>> run() {
    World world(SimConfig{}, Faults{});
    const Layout layout = job_.distribute.layout();
    working_ = layout.workers;
    for (uint32_t i = 0; i < layout.shards; ++i)
      world.add_node(layout.shard(i), [this, i](Io& io) { return serve(io, i); });
    for (uint32_t rank = 0; rank < layout.workers; ++rank)
      world.add_node(1 + layout.shards + rank, [this, rank](Io& io) { return work(io, rank); });
    const Status outcome = world.run();
    EXPECT_TRUE(outcome.ok()) << outcome.text();
    return result_;
  }

 private:
  Task<> serve(Io& io, uint32_t shard) {
    StoreServer server(io, shard, job_.distribute.layout().shards, parts_, job_.store);
    TaskSet tasks(io);
    server.start(tasks);
    while (working_ > 0) static_cast<void>(co_await io.sleep(milliseconds(10)));
    io.stop(Status(Code::kCancelled, "the test is over"));
    co_await tasks.join();
  }

  Task<> work(Io& io, uint32_t rank) {
    co_await train(io, rank);
    --working_;
  }

  Task<> train(Io& io, uint32_t rank) {
    const auto model = std::move(*parts_.models.make<double>(job_.model));
    std::unique_ptr<Exchange<double>> exchange;
    if (replica_)
      exchange = std::make_unique<DownpourExchange<double>>(io, job_, rank, *model, parts_.optimizers);
    else
      exchange = std::make_unique<StoreExchange<double>>(io, job_, rank, *model);
    CO_ASSERT_OK(co_await exchange->prepare());
    const Plan plan(job_.train, job_.distribute.workers, data_.train);
    std::vector<Batch> batches(static_cast<size_t>(plan.steps()) + 1);
    std::vector<uint64_t> rows;
    Parameters<double> parameters;
    Gradients<double> gradients;
    BatchBuilder builder;
    for (int64_t step = 0; step < plan.steps(); ++step) {
      Batch& batch = batches[static_cast<size_t>(step)];
      plan.rows_of(0, step, rank, &rows);
      builder.build(data_.train, rows, &batch);
      CO_ASSERT_OK(co_await exchange->begin(step, batch, &parameters));
      model->step(batch, parameters, 1 / static_cast<double>(plan.rows_at(0, step)), &gradients);
      CO_ASSERT_OK((co_await exchange->end(step, batch, &gradients)).status());
    }
    CO_ASSERT_OK(co_await exchange->settle());
    rows.resize(data_.train.rows());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    builder.build(data_.train, rows, &batches.back());
    CO_ASSERT_OK(co_await exchange->read(plan.steps(), batches.back(), &parameters));
    if (rank == 0) result_ = parameters.tables;
  }

  const JobConfig job_;
  const bool replica_;
  const JobParts parts_;
  const TrainingData data_;
  uint32_t working_ = 0;
  std::vector<std::vector<double>> result_;
};

TEST(Replica, workers_that_push_and_fetch_each_step_learn_the_bits_of_those_without_replicas) {
  for (const char* optimizer : {"sgd", "adagrad", "adam"}) {
    JobConfig job = many_keys_job();
    job.train.epochs = 1;
    job.train.optimizer.type = optimizer;
    job.distribute.workers = 3;
    const auto with = ExchangeLoop(job, true).run();
    EXPECT_EQ(with.size(), 2u);
    EXPECT_EQ(with, ExchangeLoop(job, false).run()) << optimizer;
    job.distribute.push_every = 2;
    EXPECT_NE(with, ExchangeLoop(job, true).run()) << optimizer;
  }
}

TEST(Replica, many_workers_with_replicas_learn_under_every_sync_that_allows_them) {
  for (const Sync& sync : {Sync::bsp(), Sync::asp(), Sync::ssp(2), Sync::value(0.5)}) {
    JobConfig job = many_keys_job();
    job.data.generated->rows = 3000;
    job.data.generated->test_rows = 500;
    job.data.generated->signal = 1;
    job.train.epochs = 4;
    job.distribute.workers = 3;
    job.distribute.sync = sync;
    EXPECT_GT(trained(job, 4, 3).epochs.back().auc, 0.8) << sync.text();
  }
}

}  // namespace
}  // namespace talweg
