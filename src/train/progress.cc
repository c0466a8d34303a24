#include "train/progress.h"

#include <algorithm>

namespace talweg {

Result<bool> ProgressBoard::add(Peer from, const std::string& payload, Time now) {
  proto::WorkerReport report;
  if (!report.ParseFromString(payload)) return error(Code::kCorrupt, "node {} sent a report that cannot be read", from);
  latest_ = now;
  bool evaluated = false;
  if (report.has_evaluation()) {
    ASSIGN(evaluated, add_evaluation(from, report.evaluation()));
  }
  report.clear_evaluation();
  reports_[from] = std::move(report);
  return evaluated;
}

Result<bool> ProgressBoard::add_evaluation(Peer from, const proto::Evaluation& part) {
  if (epochs_ > 0 && part.epoch() >= epochs_) {
    return error(Code::kCorrupt, "node {} sent its evaluation of epoch {}, but there are only {}", from, part.epoch(),
                 epochs_);
  }
  Parts& parts = evaluating_[part.epoch()];
  parts[from] = part.metrics();
  if (parts.size() < workers_) return false;
  ASSIGN(EpochResult result, merged(part.epoch(), parts));
  result.seconds = latest_ > started_ ? to_seconds(latest_ - started_) : 0;
  results_.push_back(std::move(result));
  evaluating_.erase(part.epoch());
  return true;
}

Result<EpochResult> ProgressBoard::merged(uint64_t epoch, const Parts& parts) {
  std::optional<Metrics> all;
  for (const auto& [from, bytes] : parts) {
    auto metrics = Metrics::parse(bytes);
    const Status taken = !metrics.ok() ? metrics.status() : all ? all->merge(*metrics) : Status();
    if (!taken.ok()) return taken.within(fmt::format("node {} sent its evaluation of epoch {}", from, epoch));
    if (!all) all = std::move(*metrics);
  }
  return EpochResult{
      .epoch = epoch, .rows = all->rows(), .loss = all->loss(), .auc = all->auc(), .summary = all->summary()};
}

std::optional<double> EpochResult::measure(std::string_view name) const {
  for (const auto& [known, value] : summary) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::vector<proto::WorkerReport> ProgressBoard::workers() const {
  std::vector<proto::WorkerReport> workers;
  for (const auto& [peer, report] : reports_) workers.push_back(report);
  return workers;
}

int64_t ProgressBoard::rounds() const {
  uint64_t rounds = 0;
  for (const auto& [peer, report] : reports_) rounds = std::max(rounds, report.rounds());
  return static_cast<int64_t>(rounds);
}

Progress ProgressBoard::progress() const {
  Progress p{.epochs = epochs_, .steps = steps_, .evaluation = std::nullopt};
  p.seconds = latest_ > started_ ? to_seconds(latest_ - started_) : 0;
  double loss_sum = 0, compute = 0, wait = 0;
  uint64_t loss_rows = 0;
  p.step = reports_.size() < workers_ ? 0 : ~uint64_t{0};
  for (const auto& [peer, report] : reports_) {
    p.epoch = std::max(p.epoch, report.epoch());
    p.step = std::min(p.step, report.step());
    p.rows += report.rows();
    loss_sum += report.loss_sum();
    loss_rows += report.loss_rows();
    p.bytes += report.bytes_sent() + report.bytes_received();
    p.messages += report.messages_sent();
    compute += static_cast<double>(report.compute_ns());
    wait += static_cast<double>(report.wait_ns());
  }
  // Of a stream, what has come is all there is so far.
  p.epochs = std::max(p.epochs, p.epoch + 1);
  p.steps = std::max(p.steps, p.step);
  if (p.seconds > 0) p.rows_per_second = static_cast<double>(p.rows) / p.seconds;
  if (loss_rows > 0) p.loss = loss_sum / static_cast<double>(loss_rows);
  if (compute + wait > 0) p.idle_share = wait / (compute + wait);
  if (!results_.empty()) p.evaluation = results_.back();
  return p;
}

}  // namespace talweg
