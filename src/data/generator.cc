#include "data/generator.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>

#include "base/check.h"
#include "data/file.h"
#include "data/parallel.h"

namespace talweg {
namespace {

constexpr uint64_t kRowsPerPiece = 4096;

uint64_t pieces_of(uint64_t rows) { return (rows + kRowsPerPiece - 1) / kRowsPerPiece; }

uint64_t stride_for(uint64_t size) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  uint64_t stride = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(size) * kGoldenRatio));
  while (std::gcd(stride, size) != 1) ++stride;
  return stride;
}

// Lets threads that finish their pieces in any order write them in the order of the file.
class OrderedWriter {
 public:
  explicit OrderedWriter(AtomicFile* file) : file_(file) {}

  void write(size_t piece, Bytes bytes) {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == piece; });
    if (status_.ok()) status_ = file_->write(bytes);
    ++turn_;
    turn_changed_.notify_all();
  }
  const Status& status() const { return status_; }

 private:
  AtomicFile* file_;
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  size_t turn_ = 0;
  Status status_;
};

void append_row(std::span<const uint64_t> keys, float label, std::string* text) {
  constexpr size_t kMostBytesPerLabel = 32, kMostBytesPerKey = 24;
  const size_t before = text->size();
  text->resize(before + kMostBytesPerLabel + keys.size() * kMostBytesPerKey);
  char* p = text->data() + before;
  p = std::to_chars(p, p + kMostBytesPerLabel - 1, label).ptr;
  for (const uint64_t key : keys) {
    *p++ = ' ';
    p = std::to_chars(p, p + 20, key).ptr;
    *p++ = ':';
    *p++ = '1';
  }
  *p++ = '\n';
  text->resize(static_cast<size_t>(p - text->data()));
}

template <class Key>
void fill_rows(const RowGenerator& generator, uint64_t first_row, size_t threads, std::vector<float>* labels,
               std::vector<Key>* all_keys) {
  const size_t size = generator.row_size();
  parallel_for(threads, pieces_of(labels->size()), [&](size_t piece) {
    std::vector<uint64_t> keys(size);
    const size_t end = std::min<size_t>((piece + 1) * kRowsPerPiece, labels->size());
    for (size_t i = piece * kRowsPerPiece; i < end; ++i) {
      (*labels)[i] = generator.row(first_row + i, keys);
      for (size_t f = 0; f < size; ++f) (*all_keys)[i * size + f] = static_cast<Key>(keys[f]);
    }
  });
}

template <class Key>
uint64_t largest(const std::vector<Key>& keys) {
  return keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
}

struct GeneratedRows {
  std::vector<float> labels;
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> keys32;
  std::vector<uint64_t> keys64;
};

// From 0, below `size`: the inverse of the distribution function log(x) / log(end) on [1, end].
uint64_t zipf_rank(Rng& rng, double log2_end, uint64_t size) {
  const double x = std::exp2(rng.uniform() * log2_end);
  return std::min(static_cast<uint64_t>(x), size) - 1;
}

uint64_t scattered(uint64_t number, uint64_t stride, uint64_t size) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(number) * stride % size);
}

Status check_finite(std::initializer_list<double> numbers) {
  for (const double number : numbers) {
    if (!std::isfinite(number)) return error(Code::kInvalid, "what is planted must be finite, not {}", number);
  }
  return {};
}

// Streams of planted values must not be each other's copies.
uint64_t seed_for(uint64_t seed, uint64_t purpose) { return mix64(seed ^ purpose); }
constexpr uint64_t kWeights = 0x77656967687473;
constexpr uint64_t kFactors = 0x666163746f7273;

double pairs_among(uint64_t keys) { return static_cast<double>(keys) * static_cast<double>(keys - 1) / 2; }

double sum_over(const PlantedNormal& values, std::span<const uint64_t> keys) {
  double sum = 0;
  for (const uint64_t key : keys) sum += values(key);
  return sum;
}

}  // namespace

Dataset generate(const RowGenerator& generator, uint64_t first_row, uint64_t rows, size_t threads) {
  auto made = std::make_shared<GeneratedRows>();
  made->labels.resize(rows);
  made->offsets.resize(rows + 1);
  for (uint64_t i = 0; i <= rows; ++i) made->offsets[i] = i * generator.row_size();
  DatasetColumns columns;
  columns.labels = made->labels;
  columns.offsets = made->offsets;
  if ((generator.features() - 1) >> 32 != 0) {
    made->keys64.resize(rows * generator.row_size());
    fill_rows(generator, first_row, threads, &made->labels, &made->keys64);
    columns.keys64 = made->keys64;
    columns.max_key = largest(made->keys64);
  } else {
    made->keys32.resize(rows * generator.row_size());
    fill_rows(generator, first_row, threads, &made->labels, &made->keys32);
    columns.keys32 = made->keys32;
    columns.max_key = largest(made->keys32);
  }
  return Dataset(columns, made);
}

Status write_rows(const std::string& path, const RowGenerator& generator, uint64_t first_row, uint64_t rows,
                  size_t threads) {
  ASSIGN(AtomicFile file, AtomicFile::create(path));
  OrderedWriter writer(&file);
  parallel_for(threads, pieces_of(rows), [&](size_t piece) {
    std::vector<uint64_t> keys(generator.row_size());
    std::string text;
    const uint64_t end = std::min((piece + 1) * kRowsPerPiece, rows);
    for (uint64_t i = piece * kRowsPerPiece; i < end; ++i) {
      const float label = generator.row(first_row + i, keys);
      append_row(keys, label, &text);
    }
    writer.write(piece, bytes_of(std::string_view(text)));
  });
  TRY(writer.status());
  return file.commit();
}

Status FieldKeys::validate(uint64_t features, uint32_t fields, double drift, uint64_t window) {
  if (fields < 1) return error(Code::kInvalid, "a row needs at least 1 field, not {}", fields);
  if (features < fields) return error(Code::kInvalid, "{} fields do not fit in {} features", fields, features);
  if (features > uint64_t{1} << 62) return error(Code::kInvalid, "at most 2^62 features, not {}", features);
  if (!(drift >= 0 && drift <= fields)) {
    return error(Code::kInvalid, "from 0 to {} new keys per row, one for each field, not {}", fields, drift);
  }
  if (drift > 0 && (window < fields || window > features)) {
    return error(Code::kInvalid, "with drift, from {} (one for each field) to {} keys live at a time, not {}", fields,
                 features, window);
  }
  return {};
}

FieldKeys::FieldKeys(uint64_t features, uint32_t fields, double drift, uint64_t window) : drift_(drift) {
  CHECK(validate(features, fields, drift, window).ok());
  const auto first_key = [&](uint64_t field) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(features) * field / fields);
  };
  for (uint64_t f = 0; f < fields; ++f) {
    const uint64_t size = first_key(f + 1) - first_key(f);
    const uint64_t live = drift > 0 ? std::min(window / fields, size) : size;
    // Up to, but without, `live` without drift: the rarest key never comes, and sets of earlier releases stay as they
    // were.
    const uint64_t end = drift > 0 ? live + 1 : live;
    fields_.push_back({first_key(f), size, live, std::log2(static_cast<double>(end)), stride_for(size)});
  }
}

void FieldKeys::draw(uint64_t row, Rng& rng, std::span<uint64_t> keys) const {
  CHECK(keys.size() == fields_.size());
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = fields_[f];
    const uint64_t rank = zipf_rank(rng, field.log2_end, field.live);
    keys[f] = field.first_key + scattered(drift_ > 0 ? number_at(row, f, rank) : rank, field.stride, field.size);
  }
}

uint64_t FieldKeys::number_at(uint64_t row, uint64_t field, uint64_t rank) const {
  const uint64_t before = born_in(field, born_before(row)), now = born_in(field, born_before(row + 1));
  const uint64_t newest = fields_[field].live - 1 + now;
  return now > before ? newest : newest - rank;
}

double PlantedNormal::operator()(uint64_t key) const {
  // The sum of four uniform values is near enough to normal, and cheap.
  const uint64_t bits = mix64(seed_ ^ mix64(key));
  const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  constexpr double kMean = 2 * 65535.0;
  constexpr double kStandardDeviation = 37837.2;  // 65536 * sqrt(4 / 12)
  return (static_cast<double>(sum) - kMean) / kStandardDeviation;
}

// One product of two values of deviation s has deviation s^2, and n independent ones together sqrt(n) s^2.
PlantedFactors::PlantedFactors(uint64_t seed, uint32_t factors, double sd, double pairs)
    : scale_(sd / std::sqrt(std::max(1.0, pairs * factors))) {
  for (uint32_t f = 0; f < factors; ++f) factors_.emplace_back(seed_for(seed, kFactors + f));
}

double PlantedFactors::interaction(std::span<const uint64_t> keys) const {
  double twice = 0;
  for (const PlantedNormal& factor : factors_) {
    double sum = 0, squares = 0;
    for (const uint64_t key : keys) {
      const double value = factor(key);
      sum += value;
      squares += value * value;
    }
    twice += sum * sum - squares;
  }
  return scale_ * twice / 2;
}

Status ClickOptions::validate() const {
  TRY(FieldKeys::validate(features, fields, drift, window));
  return check_finite({bias, weight_sd, interaction_sd});
}

ClickGenerator::ClickGenerator(const ClickOptions& options)
    : options_(options),
      weights_(seed_for(options.seed, kWeights)),
      factors_(options.seed, options.factors, options.interaction_sd, pairs_among(options.fields)),
      keys_(options.features, options.fields, options.drift, options.window) {
  CHECK(options.validate().ok());
}

float ClickGenerator::row(uint64_t i, std::span<uint64_t> keys) const {
  Rng rng(options_.seed, i);
  keys_.draw(i, rng, keys);
  return rng.uniform() < 1 / (1 + std::exp(-planted_logit(keys))) ? 1.0f : 0.0f;
}

double ClickGenerator::planted_logit(std::span<const uint64_t> keys) const {
  double logit = options_.bias;
  for (const uint64_t key : keys) logit += planted_weight(key);
  return options_.factors == 0 ? logit : logit + factors_.interaction(keys);
}

Status RegressionOptions::validate() const {
  TRY(FieldKeys::validate(features, fields, 0, 0));
  return check_finite({bias, weight_sd, noise_sd});
}

RegressionGenerator::RegressionGenerator(const RegressionOptions& options)
    : options_(options), weights_(seed_for(options.seed, kWeights)), keys_(options.features, options.fields) {
  CHECK(options.validate().ok());
}

float RegressionGenerator::row(uint64_t i, std::span<uint64_t> keys) const {
  Rng rng(options_.seed, i);
  keys_.draw(i, rng, keys);
  return static_cast<float>(planted(keys) + options_.noise_sd * rng.normal());
}

double RegressionGenerator::planted(std::span<const uint64_t> keys) const {
  return options_.bias + options_.weight_sd * sum_over(weights_, keys);
}

Status ClassOptions::validate() const {
  TRY(FieldKeys::validate(features, fields, 0, 0));
  // A label is a float, which holds whole numbers up to 2^24.
  if (classes < 2 || classes > 1u << 24) return error(Code::kInvalid, "from 2 to 2^24 classes, not {}", classes);
  return check_finite({weight_sd});
}

ClassGenerator::ClassGenerator(const ClassOptions& options)
    : options_(options), keys_(options.features, options.fields) {
  CHECK(options.validate().ok());
  for (uint32_t c = 0; c < options.classes; ++c) weights_.emplace_back(seed_for(options.seed, kWeights + c));
}

float ClassGenerator::row(uint64_t i, std::span<uint64_t> keys) const {
  Rng rng(options_.seed, i);
  keys_.draw(i, rng, keys);
  // The largest logit, each with its own Gumbel noise, is a draw from the softmax: no sum over the classes is needed.
  uint32_t drawn = 0;
  double most = -INFINITY;
  for (uint32_t c = 0; c < options_.classes; ++c) {
    const double noisy = planted_logit(keys, c) - std::log(-std::log(1 - rng.uniform()));
    if (noisy > most) most = noisy, drawn = c;
  }
  return static_cast<float>(drawn);
}

double ClassGenerator::planted_logit(std::span<const uint64_t> keys, uint32_t of_class) const {
  return options_.weight_sd * sum_over(weights_[of_class], keys);
}

uint32_t ClassGenerator::planted_class(std::span<const uint64_t> keys) const {
  uint32_t likeliest = 0;
  double most = -INFINITY;
  for (uint32_t c = 0; c < options_.classes; ++c) {
    const double logit = planted_logit(keys, c);
    if (logit > most) most = logit, likeliest = c;
  }
  return likeliest;
}

Status RatingOptions::validate() const {
  if (users < 1 || users > uint64_t{1} << 62) return error(Code::kInvalid, "from 1 to 2^62 users, not {}", users);
  if (items < 1 || items > uint64_t{1} << 62) return error(Code::kInvalid, "from 1 to 2^62 items, not {}", items);
  return check_finite({mean, bias_sd, interaction_sd, noise_sd});
}

RatingGenerator::RatingGenerator(const RatingOptions& options)
    : options_(options),
      biases_(seed_for(options.seed, kWeights)),
      factors_(options.seed, options.factors, options.interaction_sd, 1),
      log2_items_end_(std::log2(static_cast<double>(options.items + 1))),
      item_stride_(stride_for(options.items)) {
  CHECK(options.validate().ok());
}

float RatingGenerator::row(uint64_t i, std::span<uint64_t> keys) const {
  CHECK(keys.size() == 2);
  Rng rng(options_.seed, i);
  keys[0] = rng.below(options_.users);
  const uint64_t rank = zipf_rank(rng, log2_items_end_, options_.items);
  keys[1] = options_.users + scattered(rank, item_stride_, options_.items);
  return static_cast<float>(planted(keys) + options_.noise_sd * rng.normal());
}

double RatingGenerator::planted(std::span<const uint64_t> keys) const {
  return options_.mean + options_.bias_sd * sum_over(biases_, keys) + factors_.interaction(keys);
}

Dataset generate_clicks(const ClickOptions& options, uint64_t first_row, uint64_t rows, size_t threads) {
  return generate(ClickGenerator(options), first_row, rows, threads);
}

Status write_clicks(const std::string& path, const ClickOptions& options, uint64_t first_row, uint64_t rows,
                    size_t threads) {
  TRY(options.validate());
  return write_rows(path, ClickGenerator(options), first_row, rows, threads);
}

}  // namespace talweg
