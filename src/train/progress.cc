#include "train/progress.h"

#include <algorithm>

namespace talweg {

Result<bool> ProgressBoard::add(Peer from, const std::string& payload, Time now) {
  proto::WorkerReport report;
  if (!report.ParseFromString(payload)) return error(Code::kCorrupt, "node {} sent a report that cannot be read", from);
  latest_ = now;
  const bool evaluated = report.has_evaluation() && add_evaluation(report.evaluation());
  report.clear_evaluation();
  reports_[from] = std::move(report);
  return evaluated;
}

bool ProgressBoard::add_evaluation(const proto::Evaluation& part) {
  Evaluating& sum = evaluating_[part.epoch()];
  sum.rows += part.rows();
  sum.loss_sum += part.loss_sum();
  const int buckets = std::min({part.bucket_size(), part.positives_size(), part.negatives_size()});
  for (int i = 0; i < buckets; ++i) {
    const uint32_t bucket = std::min<uint32_t>(part.bucket(i), Ranking::kBuckets - 1);
    sum.ranking.add(bucket, part.positives(i), part.negatives(i));
  }
  if (++sum.parts < workers_) return false;
  const double rows = static_cast<double>(std::max<uint64_t>(1, sum.rows));
  results_.push_back({.epoch = part.epoch(), .rows = sum.rows, .loss = sum.loss_sum / rows, .auc = sum.ranking.area()});
  evaluating_.erase(part.epoch());
  return true;
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
  if (p.seconds > 0) p.rows_per_second = static_cast<double>(p.rows) / p.seconds;
  if (loss_rows > 0) p.loss = loss_sum / static_cast<double>(loss_rows);
  if (compute + wait > 0) p.idle_share = wait / (compute + wait);
  if (!results_.empty()) p.evaluation = results_.back();
  return p;
}

}  // namespace talweg
