#include "train/worker.h"

#include <cmath>

#include "math/kernels.h"
#include "train/batch_source.h"
#include "train/busy.h"
#include "train/downpour_exchange.h"
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
         std::unique_ptr<Model<Real>> model, const OptimizerRegistry& optimizers)
      : io_(io),
        member_(member),
        job_(job),
        rank_(rank),
        data_(std::move(data)),
        model_(std::move(model)),
        source_(make_batch_source(io, job, rank, data_, busy_)),
        beside_(io) {
    if (job.distribute.push_every > 1 || job.distribute.fetch_every > 1) {
      exchange_ = std::make_unique<DownpourExchange<Real>>(io, job, rank, *model_, optimizers);
    } else {
      exchange_ = std::make_unique<StoreExchange<Real>>(io, job, rank, *model_);
    }
    shares_.resize(exchange_->batches_in_use() + 1);
    exchange_->on_failure = [this](const Status& why) { member_.fail(why); };
  }

  Task<Status> run() {
    const Status outcome = co_await train();
    // What still runs uses this worker.
    co_await beside_.join();
    co_await exchange_->drain();
    co_return outcome;
  }

 private:
  // The others may still be training when this worker has evaluated.
  static constexpr Duration kEvaluationPatience = std::chrono::minutes(30);

  Task<Status> train() {
    if (!job_.data.streams()) CO_TRY(model_->check(data_.train).within("data.train"));
    CO_TRY(model_->check(data_.test).within("data.test"));
    CO_TRY(co_await exchange_->prepare());
    began_ = last_report_ = io_.now();
    for (bool going_on = true; going_on; ++epoch_) {
      CO_TRY(co_await train_epoch());
      CO_TRY(co_await exchange_->settle());
      CO_TRY(co_await evaluate());
      const auto decision = co_await member_.decision("evaluated", job_.distribute.workers, kEvaluationPatience);
      if (!decision.ok()) co_return decision.status();
      going_on = !ended_ && !source_->is_last(epoch_) && *decision != kEnough;
    }
    co_return Status();
  }

  Share& share(int64_t step) { return shares_[static_cast<size_t>(step) % shares_.size()]; }

  // Pull, compute, push. The next batch is made ready beside all that.
  Task<Status> train_epoch() {
    const int64_t end = source_->end_of(epoch_);
    int64_t prepared = step_;
    beside_.spawn(make_ready(prepared));
    while (step_ < end) {
      co_await beside_.join();
      CO_TRY(std::exchange(ready_, Status()));
      if (prepared != step_) {
        prepared = step_;
        beside_.spawn(make_ready(prepared));
        continue;
      }
      if ((ended_ = share(step_).ended)) break;
      if (step_ + 1 < end) beside_.spawn(make_ready(prepared = step_ + 1));
      const Batch& batch = share(step_).batch;
      CO_TRY(co_await exchange_->begin(step_, batch, &parameters_));
      // Not beside the arithmetic too: where cores are few, that would take them from the servers. A stream's next rows
      // may be long in coming.
      if (!job_.data.streams()) co_await beside_.join();
      co_await compute(batch, share(step_).rows_in_all);
      auto next = co_await exchange_->end(step_, batch, &gradients_);
      if (!next.ok()) co_return next.status();
      // Where the others went on without this worker, so does it.
      skipped_ += static_cast<uint64_t>(std::min(*next, end) - step_ - 1);
      step_ = std::min(*next, end);
      ++steps_done_;
      if (io_.now() - last_report_ >= kReportEvery) CO_TRY(co_await report(nullptr));
    }
    co_await beside_.join();
    co_return std::exchange(ready_, Status());
  }

  Task<> make_ready(int64_t step) {
    ready_ = co_await source_->fill(epoch_, step, &share(step));
    if (!ready_.ok() || share(step).ended) co_return;
    ready_ = co_await exchange_->expect(step, share(step).batch);
  }

  Task<> compute(const Batch& batch, uint64_t rows_in_all) {
    // The mean over the rows of all workers that count, so that the sum on the servers is a batch's mean gradient.
    const double counted = static_cast<double>(rows_in_all) * job_.distribute.counted_share();
    const Real scale = Real{1} / static_cast<Real>(counted);
    StepResult result;
    co_await compute_busy(io_, busy_, to_io(model_->cost(batch)), [&, this] {
      result = model_->step(batch, parameters_, scale, &gradients_);
      if (job_.train.clip_norm > 0) clip();
    });
    rows_done_ += result.rows;
    loss_sum_ += result.loss_sum;
    loss_rows_ += result.rows;
  }

  // By the norm of this worker's whole gradient, against its share of the bound.
  void clip() {
    double squares = 0;
    for (const auto& table : gradients_.tables) {
      for (const Real g : table) squares += static_cast<double>(g) * g;
    }
    const double most = job_.train.clip_norm / job_.distribute.workers;
    if (squares <= most * most) return;
    const Real factor = static_cast<Real>(most / std::sqrt(squares));
    for (auto& table : gradients_.tables) talweg::scale(std::span<Real>(table), factor);
  }

  // This worker's share of the held-out rows, with the parameters as they are now. Nobody trains on until all are done.
  Task<Status> evaluate() {
    const uint64_t workers = job_.distribute.workers, rows = data_.test.rows();
    const uint64_t end = rows * (rank_ + 1) / workers;
    Metrics metrics(model_->objective());
    for (uint64_t first = rows * rank_ / workers; first < end; first += kEvaluationBatch) {
      rows_.resize(std::min(kEvaluationBatch, end - first));
      for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = first + i;
      CO_TRY(co_await evaluate_rows(&metrics));
    }
    proto::Evaluation evaluation;
    evaluation.set_epoch(epoch_);
    evaluation.set_metrics(metrics.serialize());
    co_return co_await report(&evaluation);
  }

  Task<Status> evaluate_rows(Metrics* metrics) {
    Batch& batch = shares_[0].batch;
    builder_.build(data_.test, rows_, &batch);
    CO_TRY(co_await exchange_->read(step_, batch, &parameters_));
    co_await compute_busy(io_, busy_, to_io(model_->cost(batch)),
                          [&, this] { model_->evaluate(batch, parameters_, metrics); });
    co_return Status();
  }

  Task<Status> report(const proto::Evaluation* evaluation) {
    const Time now = io_.now();
    const ExchangeMeter meter = exchange_->meter(step_);
    proto::WorkerReport report;
    report.set_rank(rank_);
    report.set_epoch(epoch_);
    report.set_step(static_cast<uint64_t>(step_));
    report.set_rounds(static_cast<uint64_t>(meter.rounds));
    report.set_steps_done(steps_done_);
    report.set_steps_skipped(skipped_);
    report.set_rows(rows_done_);
    report.set_loss_sum(loss_sum_);
    report.set_loss_rows(loss_rows_);
    report.set_compute_ns(static_cast<uint64_t>(busy_.busy(now).count()));
    report.set_wait_ns(static_cast<uint64_t>((now - began_ - busy_.busy(now)).count()));
    report.set_bytes_sent(io_.counters().bytes_sent);
    report.set_bytes_received(io_.counters().bytes_received);
    report.set_messages_sent(io_.counters().messages_sent);
    report.set_bytes_pushed(meter.bytes_pushed);
    report.set_bytes_pulled(meter.bytes_pulled);
    report.set_pulls(meter.pulls);
    report.set_pushes(meter.pushes);
    report.set_late(meter.late);
    report.set_lists_known(meter.lists_known);
    report.set_lists_resent(meter.lists_resent);
    if (evaluation != nullptr) *report.mutable_evaluation() = *evaluation;
    loss_sum_ = 0;
    loss_rows_ = 0;
    last_report_ = now;
    co_return co_await member_.report(report.SerializeAsString());
  }

  Io& io_;
  Member& member_;
  const JobConfig& job_;
  const uint32_t rank_;
  const TrainingData data_;
  BusyMeter busy_;
  const std::unique_ptr<Model<Real>> model_;
  std::unique_ptr<Exchange<Real>> exchange_;
  const std::unique_ptr<BatchSource> source_;

  uint64_t epoch_ = 0;
  int64_t step_ = 0;           // over all epochs
  bool ended_ = false;         // the stream
  std::vector<Share> shares_;  // by step, modulo their number
  Status ready_;               // of the share that was made last
  Parameters<Real> parameters_;
  Gradients<Real> gradients_;
  BatchBuilder builder_;  // of evaluation
  std::vector<uint64_t> rows_;

  uint64_t steps_done_ = 0, skipped_ = 0, rows_done_ = 0, loss_rows_ = 0;
  double loss_sum_ = 0;
  Time began_{}, last_report_{};
  TaskSet beside_;
};

template <class Real>
Task<Status> run_typed(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data,
                       const JobParts& parts) {
  CO_ASSIGN(auto model, parts.models.make<Real>(job.model));
  Worker<Real> worker(io, member, job, rank, std::move(data), std::move(model), parts.optimizers);
  co_return co_await worker.run();
}

}  // namespace

Task<Status> run_worker(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data,
                        const JobParts& parts) {
  if (job.train.precision == ValueType::kFloat64) {
    return run_typed<double>(io, member, job, rank, std::move(data), parts);
  }
  return run_typed<float>(io, member, job, rank, std::move(data), parts);
}

}  // namespace talweg
