#include "model/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace talweg {
namespace {

bool is_ranked(Objective objective) { return objective == Objective::kBinary || objective == Objective::kMargin; }

double per_row(double sum, uint64_t rows) { return rows == 0 ? 0 : sum / static_cast<double>(rows); }

// Seven bits to a byte, the lowest first: most counts are small, and a fixed width would not fit one message.
void put_count(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void put_number(double value, std::string* out) {
  for (uint64_t bits = std::bit_cast<uint64_t>(value), i = 0; i < 8; ++i) {
    out->push_back(static_cast<char>(bits >> (8 * i)));
  }
}

// Reads off the front; once something is missing or too long everything reads as 0 and `ok` stays false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint8_t byte() {
    if (rest_.empty()) ok_ = false;
    if (!ok_) return 0;
    const auto value = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  uint64_t count() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      if (shift == 63 && next > 1) break;
      value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  double number() {
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits |= uint64_t{byte()} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Each bucket by its distance from the one after the last, so that the numbers stay small and rise by themselves.
void put_ranking(const Ranking& ranking, std::string* out) {
  uint64_t buckets = 0;
  ranking.visit([&](uint32_t, uint64_t, uint64_t) { ++buckets; });
  put_count(buckets, out);
  uint32_t next = 0;
  ranking.visit([&](uint32_t bucket, uint64_t positives, uint64_t negatives) {
    put_count(bucket - next, out);
    put_count(positives, out);
    put_count(negatives, out);
    next = bucket + 1;
  });
}

void take_ranking(Reader* reader, Ranking* ranking) {
  const uint64_t buckets = reader->count();
  uint64_t next = 0;
  for (uint64_t i = 0; i < buckets && reader->ok(); ++i) {
    const uint64_t gap = reader->count();
    if (gap >= Ranking::kBuckets - next) return reader->fail();
    const auto bucket = static_cast<uint32_t>(next + gap);
    const uint64_t positives = reader->count(), negatives = reader->count();
    ranking->add(bucket, positives, negatives);
    next = bucket + 1;
  }
}

}  // namespace

Metrics::Metrics(Objective objective) : objective_(objective) {
  if (is_ranked(objective)) ranking_.emplace();
}

void Metrics::add_score(float score, bool positive, double loss) {
  CHECK(is_ranked(objective_));
  ++rows_;
  loss_sum_ += loss;
  right_ += (score > 0) == positive;
  ranking_->add(score, positive);
  if (objective_ == Objective::kBinary) add_probability(1 / (1 + std::exp(-static_cast<double>(score))), positive);
}

void Metrics::add_prediction(double prediction, double label, double loss) {
  CHECK(objective_ == Objective::kRegression);
  ++rows_;
  loss_sum_ += loss;
  squared_error_sum_ += (prediction - label) * (prediction - label);
}

void Metrics::add_class(bool right, double confidence, double loss) {
  CHECK(objective_ == Objective::kClasses);
  ++rows_;
  loss_sum_ += loss;
  right_ += right;
  add_probability(confidence, right);
}

void Metrics::add_probability(double probability, bool hit) {
  // A model that has diverged says "not a number"; it is then as wrong as it can be about positives.
  const double known = std::isnan(probability) ? 0 : std::clamp(probability, 0.0, 1.0);
  Bin& bin = bins_[std::min(static_cast<size_t>(known * kBins), kBins - 1)];
  ++bin.rows;
  bin.hits += hit;
  bin.probability += static_cast<uint64_t>(std::llround(known * static_cast<double>(kProbabilityOne)));
}

Status Metrics::merge(const Metrics& other) {
  if (other.objective_ != objective_) {
    return error(Code::kInvalid, "metrics of different objectives ({} and {}) cannot be merged",
                 static_cast<int>(objective_), static_cast<int>(other.objective_));
  }
  rows_ += other.rows_;
  right_ += other.right_;
  loss_sum_ += other.loss_sum_;
  squared_error_sum_ += other.squared_error_sum_;
  for (size_t i = 0; i < kBins; ++i) {
    bins_[i].rows += other.bins_[i].rows;
    bins_[i].hits += other.bins_[i].hits;
    bins_[i].probability += other.bins_[i].probability;
  }
  if (ranking_) {
    other.ranking_->visit([&](uint32_t bucket, uint64_t p, uint64_t n) { ranking_->add(bucket, p, n); });
  }
  return {};
}

double Metrics::loss() const { return per_row(loss_sum_, rows_); }
double Metrics::accuracy() const { return per_row(static_cast<double>(right_), rows_); }
double Metrics::rmse() const { return std::sqrt(per_row(squared_error_sum_, rows_)); }

std::optional<double> Metrics::calibration() const {
  uint64_t predicted = 0, actual = 0;
  for (const Bin& bin : bins_) predicted += bin.probability, actual += bin.hits;
  if (actual == 0) return std::nullopt;
  return static_cast<double>(predicted) / static_cast<double>(kProbabilityOne) / static_cast<double>(actual);
}

double Metrics::expected_calibration_error() const {
  double error = 0;
  for (const Bin& bin : bins_) {
    const double predicted = static_cast<double>(bin.probability) / static_cast<double>(kProbabilityOne);
    error += std::abs(predicted - static_cast<double>(bin.hits));
  }
  return per_row(error, rows_);
}

std::vector<std::pair<std::string, double>> Metrics::summary() const {
  if (rows_ == 0) return {};
  std::vector<std::pair<std::string, double>> values{{"loss", loss()}};
  const bool probable = objective_ == Objective::kBinary || objective_ == Objective::kClasses;
  if (is_ranked(objective_)) values.emplace_back("auc", auc());
  if (objective_ == Objective::kRegression) {
    values.emplace_back("rmse", rmse());
  } else {
    values.emplace_back("accuracy", accuracy());
  }
  if (objective_ == Objective::kBinary && calibration()) values.emplace_back("calibration", *calibration());
  if (probable) values.emplace_back("ece", expected_calibration_error());
  return values;
}

std::string Metrics::serialize() const {
  std::string out;
  out.push_back(static_cast<char>(objective_));
  put_count(rows_, &out);
  put_count(right_, &out);
  put_number(loss_sum_, &out);
  put_number(squared_error_sum_, &out);
  for (const Bin& bin : bins_) {
    put_count(bin.rows, &out);
    put_count(bin.hits, &out);
    put_count(bin.probability, &out);
  }
  if (ranking_) put_ranking(*ranking_, &out);
  return out;
}

Result<Metrics> Metrics::parse(std::string_view bytes) {
  Reader reader(bytes);
  const uint8_t objective = reader.byte();
  if (!reader.ok() || objective >= kObjectives) return Status(Code::kCorrupt, "metrics of an unknown objective");
  Metrics metrics(static_cast<Objective>(objective));
  metrics.rows_ = reader.count();
  metrics.right_ = reader.count();
  metrics.loss_sum_ = reader.number();
  metrics.squared_error_sum_ = reader.number();
  for (Bin& bin : metrics.bins_) {
    bin.rows = reader.count();
    bin.hits = reader.count();
    bin.probability = reader.count();
  }
  if (metrics.ranking_) take_ranking(&reader, &*metrics.ranking_);
  if (!reader.at_end()) return Status(Code::kCorrupt, "metrics that cannot be read");
  return metrics;
}

}  // namespace talweg
