#include "train/feed.h"

#include <algorithm>
#include <limits>

#include "io/services.h"
#include "train/train.pb.h"

namespace talweg {
namespace {

// One worker's rows of a step, as they travel: labels, ends of rows, keys, values.
struct PackedRows {
  proto::FeedReply head;
  std::vector<std::byte> body;
};

template <class T>
void append(std::vector<std::byte>& body, const T& value) {
  const Bytes bytes = std::as_bytes(std::span(&value, 1));
  body.insert(body.end(), bytes.begin(), bytes.end());
}

PackedRows pack_rows(const RowBlock& block, size_t begin, size_t end) {
  PackedRows packed;
  const auto ends = block.row_ends.span();
  const uint64_t first = begin == 0 ? 0 : ends[begin - 1], last = end == 0 ? 0 : ends[end - 1];
  packed.head.set_rows(end - begin);
  packed.head.set_entries(last - first);
  packed.head.set_has_values(block.has_values);
  for (size_t i = begin; i < end; ++i) append(packed.body, ends[i] - first);
  for (uint64_t e = first; e < last; ++e) {
    append(packed.body, block.wide ? block.keys64.span()[e] : uint64_t{block.keys32.span()[e]});
  }
  for (size_t i = begin; i < end; ++i) append(packed.body, block.labels.span()[i]);
  for (uint64_t e = first; e < last && block.has_values; ++e) append(packed.body, block.values.span()[e]);
  return packed;
}

}  // namespace

Result<Dataset> unpack_rows(const proto::FeedReply& head, Bytes body) {
  struct Columns {
    std::vector<float> labels, values;
    std::vector<uint64_t> offsets, keys;
  };
  // The bound keeps the sizes below from overflowing; what is not there is found by the cursor.
  ByteCursor cursor(body);
  const uint64_t rows = std::min<uint64_t>(head.rows(), body.size() + 1);
  const uint64_t entries = std::min<uint64_t>(head.entries(), body.size() + 1);
  const auto ends = cursor.take<uint64_t>(rows);
  const auto keys = cursor.take<uint64_t>(entries);
  const auto labels = cursor.take<float>(rows);
  const auto values = cursor.take<float>(head.has_values() ? entries : 0);
  const bool rising =
      std::is_sorted(ends.begin(), ends.end()) && (ends.empty() ? entries == 0 : ends.back() == entries);
  if (!cursor.ok() || cursor.left() != 0 || !rising) {
    return error(Code::kCorrupt, "the coordinator sent {} bytes as {} rows of the stream", body.size(), head.rows());
  }
  auto columns = std::make_shared<Columns>();
  columns->labels.assign(labels.begin(), labels.end());
  columns->values.assign(values.begin(), values.end());
  columns->keys.assign(keys.begin(), keys.end());
  columns->offsets.push_back(0);
  columns->offsets.insert(columns->offsets.end(), ends.begin(), ends.end());
  const uint64_t max_key = keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
  const DatasetColumns spans{.labels = columns->labels,
                             .offsets = columns->offsets,
                             .keys32 = {},
                             .keys64 = columns->keys,
                             .values = columns->values,
                             .max_key = max_key};
  return Dataset(spans, columns);
}

RowFeed::RowFeed(Io& io, const JobConfig& job) : io_(io), job_(job), asked_(job.distribute.workers, -1) {
  io_.open(services::kFeed);
}

void RowFeed::start(TaskSet& tasks) {
  tasks.spawn(serve(io_, services::kFeed, [this](Request request) { return on_request(std::move(request)); }));
}

Task<Status> RowFeed::run() {
  auto opened = RowStream::open(job_.data.stream, job_.data.read_options());
  if (!opened.ok()) co_return opened.status().within("data.stream");
  stream_ = std::move(*opened);
  first_came_ = last_came_ = io_.now();
  while (failure_.ok() && !ended_) {
    if (steps_.size() < kStepsAhead) {
      failure_ = co_await read_some();
      cut_steps();
    } else {
      failure_ = co_await io_.wait(changed_, Deadline{Time::max(), "workers to take rows of the stream"});
    }
  }
  changed_.notify();
  co_return failure_;
}

Task<Status> RowFeed::read_some() {
  const auto batch = static_cast<size_t>(job_.train.batch);
  Result<StreamRead> outcome = StreamRead();
  // Long work, whatever its cost: it may wait for rows.
  const Cost long_work{.flops = 0, .bytes = 1e8};
  co_await io_.compute(long_work,
                       [&, this] { outcome = stream_->read(kStepsAhead * batch, RowStream::kMaxWaitMs, &coming_); });
  if (!outcome.ok()) co_return outcome.status();
  if (outcome->rows > 0) {
    if (coming_.rows() == outcome->rows) first_came_ = io_.now();
    last_came_ = io_.now();
  }
  const bool idle = job_.data.stream_idle > Duration(0) && io_.now() - last_came_ >= job_.data.stream_idle;
  if (outcome->at_end_for_now && (idle || interrupted_)) stream_->take_as_complete();
  ended_ = outcome->ended || (interrupted_ && outcome->at_end_for_now);
  co_return Status();
}

// Full steps, and a last one that is not if the stream has ended or its rows have waited long enough.
void RowFeed::cut_steps() {
  const auto batch = static_cast<size_t>(job_.train.batch);
  const size_t rows = coming_.rows();
  const bool with_rest = ended_ || io_.now() - first_came_ >= kPatience;
  const size_t taken = with_rest ? rows : rows / batch * batch;
  if (taken == 0) return;
  auto block = std::make_shared<RowBlock>(std::exchange(coming_, RowBlock()));
  for (size_t begin = 0; begin < taken; begin += batch)
    steps_.push_back({block, begin, std::min(taken, begin + batch)});
  // What is left begins the next step.
  const auto ends = block->row_ends.span();
  for (size_t row = taken; row < rows; ++row) {
    for (uint64_t e = row == 0 ? 0 : ends[row - 1]; e < ends[row]; ++e) {
      coming_.add(block->wide ? block->keys64.span()[e] : uint64_t{block->keys32.span()[e]},
                  block->has_values ? block->values.span()[e] : 1.0F);
    }
    coming_.end_row(block->labels.span()[row]);
  }
  first_came_ = io_.now();
  changed_.notify();
}

Task<Status> RowFeed::wait_for(int64_t step) {
  const auto here = [&] { return step < first_step_ + static_cast<int64_t>(steps_.size()); };
  while (failure_.ok() && !ended_ && !here()) {
    CO_TRY(co_await io_.wait(changed_, Deadline{Time::max(), "rows of the stream", step}));
  }
  co_return failure_;
}

void RowFeed::forget_steps() {
  const int64_t needed = *std::min_element(asked_.begin(), asked_.end());
  while (first_step_ < needed && !steps_.empty()) {
    steps_.pop_front();
    ++first_step_;
  }
  changed_.notify();
}

Task<> RowFeed::on_request(Request request) {
  proto::FeedRequest head;
  Status outcome = parse_head(request.head, &head, "rows of the stream");
  if (outcome.ok() && (head.rank() >= asked_.size() || head.step() < first_step_)) {
    outcome =
        error(Code::kInvalid, "worker {} asks for step {} of the stream, which is past", head.rank(), head.step());
  }
  if (outcome.ok()) {
    asked_[head.rank()] = std::max(asked_[head.rank()], head.step());
    forget_steps();
    outcome = co_await wait_for(head.step());
  }
  const Deadline deadline = io_.within(job_.store.call_timeout, "rows of the stream", head.step());
  if (!outcome.ok()) {
    static_cast<void>(co_await reply(io_, request, outcome, deadline));
    co_return;
  }
  const auto index = static_cast<size_t>(head.step() - first_step_);
  PackedRows rows;
  if (index >= steps_.size()) {
    rows.head.set_ended(true);
  } else {
    const Step& step = steps_[index];
    const size_t count = step.end - step.begin, workers = asked_.size();
    rows = pack_rows(*step.block, step.begin + count * head.rank() / workers,
                     step.begin + count * (head.rank() + 1) / workers);
    rows.head.set_rows_in_all(count);
  }
  static_cast<void>(co_await reply(io_, request, rows.head, rows.body, deadline));
}

}  // namespace talweg
