#include "train/worker.h"

#include "train/store_exchange.h"
#include "train/train.pb.h"

namespace talweg {
namespace {

constexpr Duration kReportEvery = milliseconds(250);
constexpr uint64_t kEvaluationBatch = 4096;

Cost to_io(const StepCost& cost) { return {.flops = cost.flops, .bytes = cost.bytes}; }

template <class Real>
class Worker {
 public:
  Worker(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data,
         std::unique_ptr<Model<Real>> model)
      : io_(io),
        member_(member),
        job_(job),
        rank_(rank),
        data_(std::move(data)),
        model_(std::move(model)),
        exchange_(io, job, rank, *model_),
        sampler_(data_.train.rows(), static_cast<uint64_t>(job.train.batch), job.distribute.workers,
                 job.train.shuffle ? std::optional(job.train.seed) : std::nullopt, job.train.partition),
        last_report_(io.now()),
        beside_(io) {}

  Task<Status> run() {
    CO_TRY(model_->check(data_.train).within("data.train"));
    CO_TRY(model_->check(data_.test).within("data.test"));
    CO_TRY(co_await exchange_.prepare());
    for (epoch_ = 0; epoch_ < static_cast<uint64_t>(job_.train.epochs); ++epoch_) {
      CO_TRY(co_await train_epoch());
      CO_TRY(co_await evaluate());
    }
    co_return Status();
  }

 private:
  // Pull, compute, push. While the pull is on its way the next batch is made ready.
  Task<Status> train_epoch() {
    const uint64_t steps = sampler_.steps_per_epoch();
    co_await make_batch(0, &batches_[0]);
    prepared_beside_ = Duration(0);
    for (uint64_t t = 0; t < steps; ++t) {
      Batch& batch = batches_[t % 2];
      if (t + 1 < steps) beside_.spawn(make_batch(t + 1, &batches_[(t + 1) % 2]));
      const Time begun = io_.now();
      const Status pulled = co_await exchange_.begin(step_, batch, &parameters_);
      co_await beside_.join();
      CO_TRY(pulled);
      const Time computing = io_.now();
      co_await compute(batch, sampler_.batch_rows(t));
      const Time computed = io_.now();
      CO_TRY(co_await exchange_.end(step_, batch, gradients_));
      ++step_;
      compute_time_ += computed - computing;
      wait_time_ += (computing - begun) + (io_.now() - computed) - std::exchange(prepared_beside_, Duration(0));
      if (io_.now() - last_report_ >= kReportEvery) CO_TRY(co_await report(nullptr));
    }
    co_return Status();
  }

  Task<> make_batch(uint64_t step_of_epoch, Batch* batch) {
    sampler_.rows_of(epoch_, step_of_epoch, rank_, &rows_);
    const double bytes =
        static_cast<double>(rows_.size() * data_.train.nonzeros()) / static_cast<double>(data_.train.rows()) * 24;
    const Time begun = io_.now();
    co_await io_.compute(Cost{.flops = 0, .bytes = bytes},
                         [this, batch] { builder_.build(data_.train, rows_, batch); });
    compute_time_ += io_.now() - begun;
    prepared_beside_ += io_.now() - begun;
  }

  Task<> compute(const Batch& batch, uint64_t rows_in_all) {
    // The mean over the rows of all workers, so that the sum on the servers is the gradient of the whole batch.
    const Real scale = Real{1} / static_cast<Real>(rows_in_all);
    StepResult result;
    co_await io_.compute(to_io(model_->cost(batch)),
                         [&, this] { result = model_->step(batch, parameters_, scale, &gradients_); });
    rows_done_ += result.rows;
    loss_sum_ += result.loss_sum;
    loss_rows_ += result.rows;
  }

  // This worker's share of the held-out rows, with the parameters as they are now. Nobody trains on until all are done.
  Task<Status> evaluate() {
    proto::Evaluation evaluation;
    evaluation.set_epoch(epoch_);
    const uint64_t workers = job_.distribute.workers, rows = data_.test.rows();
    const uint64_t end = rows * (rank_ + 1) / workers;
    Metrics metrics(model_->objective());
    for (uint64_t first = rows * rank_ / workers; first < end; first += kEvaluationBatch) {
      rows_.resize(std::min(kEvaluationBatch, end - first));
      for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = first + i;
      CO_TRY(co_await evaluate_rows(&metrics));
    }
    evaluation.set_metrics(metrics.serialize());
    CO_TRY(co_await report(&evaluation));
    co_return co_await member_.barrier("evaluated", static_cast<uint32_t>(workers));
  }

  Task<Status> evaluate_rows(Metrics* metrics) {
    Batch& batch = batches_[0];
    builder_.build(data_.test, rows_, &batch);
    CO_TRY(co_await exchange_.read(step_, batch, &parameters_));
    co_await io_.compute(to_io(model_->cost(batch)), [&, this] { model_->evaluate(batch, parameters_, metrics); });
    co_return Status();
  }

  Task<Status> report(const proto::Evaluation* evaluation) {
    proto::WorkerReport report;
    report.set_epoch(epoch_);
    report.set_step(static_cast<uint64_t>(step_));
    report.set_rows(rows_done_);
    report.set_loss_sum(loss_sum_);
    report.set_loss_rows(loss_rows_);
    report.set_compute_ns(static_cast<uint64_t>(compute_time_.count()));
    report.set_wait_ns(static_cast<uint64_t>(wait_time_.count()));
    report.set_bytes_sent(io_.counters().bytes_sent);
    report.set_bytes_received(io_.counters().bytes_received);
    report.set_messages_sent(io_.counters().messages_sent);
    if (evaluation != nullptr) *report.mutable_evaluation() = *evaluation;
    loss_sum_ = 0;
    loss_rows_ = 0;
    last_report_ = io_.now();
    co_return co_await member_.report(report.SerializeAsString());
  }

  Io& io_;
  Member& member_;
  const JobConfig& job_;
  const uint32_t rank_;
  const TrainingData data_;
  const std::unique_ptr<Model<Real>> model_;
  StoreExchange<Real> exchange_;
  const Sampler sampler_;
  BatchBuilder builder_;

  uint64_t epoch_ = 0;
  int64_t step_ = 0;  // over all epochs
  std::vector<uint64_t> rows_;
  std::array<Batch, 2> batches_;
  Parameters<Real> parameters_;
  Gradients<Real> gradients_;

  uint64_t rows_done_ = 0, loss_rows_ = 0;
  double loss_sum_ = 0;
  Duration compute_time_{}, wait_time_{};
  Duration prepared_beside_{};  // the part of the step's waiting in which the next batch was made
  Time last_report_;
  TaskSet beside_;
};

template <class Real>
Task<Status> run_typed(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data) {
  CO_ASSIGN(auto model, make_model<Real>(job.model));
  Worker<Real> worker(io, member, job, rank, std::move(data), std::move(model));
  co_return co_await worker.run();
}

}  // namespace

Task<Status> run_worker(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data) {
  if (job.train.precision == ValueType::kFloat64) return run_typed<double>(io, member, job, rank, std::move(data));
  return run_typed<float>(io, member, job, rank, std::move(data));
}

}  // namespace talweg
