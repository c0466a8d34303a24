#include "train/batch_source.h"

#include <algorithm>
#include <limits>

#include "cluster/layout.h"
#include "io/rpc.h"
#include "io/services.h"
#include "train/feed.h"
#include "train/train.pb.h"

namespace talweg {
namespace {

class PlannedBatches final : public BatchSource {
 public:
  PlannedBatches(Io& io, const JobConfig& job, uint32_t rank, const TrainingData& data, BusyMeter& busy)
      : io_(io), busy_(busy), data_(data.train), rank_(rank), plan_(job.train, job.distribute.workers, data.train) {}

  Task<Status> fill(uint64_t epoch, int64_t step, Share* share) override {
    plan_.rows_of(epoch, step, rank_, &rows_);
    share->rows_in_all = plan_.rows_at(epoch, step);
    const double bytes = static_cast<double>(rows_.size() * data_.nonzeros()) / static_cast<double>(data_.rows()) * 24;
    co_await compute_busy(io_, busy_, Cost{.flops = 0, .bytes = bytes},
                          [&, this] { builder_.build(data_, rows_, &share->batch); });
    co_return Status();
  }
  int64_t end_of(uint64_t epoch) const override { return plan_.first_step(epoch + 1); }
  bool is_last(uint64_t epoch) const override { return epoch + 1 == plan_.epochs(); }

 private:
  Io& io_;
  BusyMeter& busy_;
  const Dataset& data_;
  const uint32_t rank_;
  const Plan plan_;
  BatchBuilder builder_;
  std::vector<uint64_t> rows_;
};

// Of a stream, an epoch is what lies between two evaluations.
class StreamedBatches : public BatchSource {
 public:
  explicit StreamedBatches(const JobConfig& job) : job_(job) {}
  int64_t end_of(uint64_t epoch) const override {
    const int64_t every = job_.data.evaluate_every;
    return every > 0 ? static_cast<int64_t>(epoch + 1) * every : std::numeric_limits<int64_t>::max();
  }
  bool is_last(uint64_t) const override { return false; }

 protected:
  const JobConfig& job_;
};

// Rows that are made as they are needed, each worker its own: nothing is kept, so they may be any number.
class GeneratedBatches final : public StreamedBatches {
 public:
  GeneratedBatches(Io& io, const JobConfig& job, uint32_t rank, BusyMeter& busy)
      : StreamedBatches(job),
        io_(io),
        busy_(busy),
        rank_(rank),
        generator_(std::move(*job.data.generated->generator())) {}

  Task<Status> fill(uint64_t, int64_t step, Share* share) override {
    const uint64_t rows = job_.data.generated->rows, batch = static_cast<uint64_t>(job_.train.batch);
    const uint64_t first = std::min(rows, static_cast<uint64_t>(step) * batch);
    share->rows_in_all = std::min(batch, rows - first);
    share->ended = share->rows_in_all == 0;
    if (share->ended) co_return Status();
    const uint64_t workers = job_.distribute.workers;
    const uint64_t begin = first + share->rows_in_all * rank_ / workers;
    const uint64_t count = first + share->rows_in_all * (rank_ + 1) / workers - begin;
    const double bytes = static_cast<double>(count * job_.data.generated->nonzeros) * 24;
    co_await compute_busy(io_, busy_, Cost{.flops = 0, .bytes = bytes}, [&, this] {
      const Dataset made = generate(*generator_, begin, count, 1);
      rows_.resize(count);
      for (uint64_t i = 0; i < count; ++i) rows_[i] = i;
      builder_.build(made, rows_, &share->batch);
    });
    co_return Status();
  }

 private:
  Io& io_;
  BusyMeter& busy_;
  const uint32_t rank_;
  const std::unique_ptr<RowGenerator> generator_;
  BatchBuilder builder_;
  std::vector<uint64_t> rows_;
};

class FedBatches final : public StreamedBatches {
 public:
  FedBatches(Io& io, const JobConfig& job, uint32_t rank, BusyMeter& busy)
      : StreamedBatches(job), io_(io), busy_(busy), rank_(rank), coordinator_(job.distribute.layout().coordinator()) {}

  Task<Status> fill(uint64_t, int64_t step, Share* share) override {
    proto::FeedRequest head;
    head.set_step(step);
    head.set_rank(rank_);
    Call request{.to = coordinator_, .service = services::kFeed};
    request.own_reply = true;
    // A stream may be silent for as long as it likes; that the coordinator is alive is seen by its beats.
    const Deadline deadline{Time::max(), "the stream's next rows", step};
    auto answer = co_await call<proto::FeedReply>(io_, request, head, deadline);
    if (!answer.ok()) co_return answer.status();
    share->ended = answer->head.ended();
    share->rows_in_all = answer->head.rows_in_all();
    if (share->ended) co_return Status();
    CO_ASSIGN(const Dataset rows, unpack_rows(answer->head, answer->body.bytes()));
    rows_.resize(rows.rows());
    for (uint64_t i = 0; i < rows_.size(); ++i) rows_[i] = i;
    const double bytes = static_cast<double>(rows.nonzeros()) * 24;
    co_await compute_busy(io_, busy_, Cost{.flops = 0, .bytes = bytes},
                          [&, this] { builder_.build(rows, rows_, &share->batch); });
    co_return Status();
  }

 private:
  Io& io_;
  BusyMeter& busy_;
  const uint32_t rank_;
  const Peer coordinator_;
  BatchBuilder builder_;
  std::vector<uint64_t> rows_;
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(Io& io, const JobConfig& job, uint32_t rank, const TrainingData& data,
                                               BusyMeter& busy) {
  if (!job.data.streams()) return std::make_unique<PlannedBatches>(io, job, rank, data, busy);
  if (job.data.generated) return std::make_unique<GeneratedBatches>(io, job, rank, busy);
  return std::make_unique<FedBatches>(io, job, rank, busy);
}

}  // namespace talweg
