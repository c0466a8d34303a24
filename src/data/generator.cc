#include "data/generator.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/rng.h"
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
  constexpr size_t kMostBytesPerKey = 24;
  const size_t before = text->size();
  text->resize(before + 2 + keys.size() * kMostBytesPerKey);
  char* p = text->data() + before;
  *p++ = label > 0 ? '1' : '0';
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
void fill_clicks(const ClickGenerator& generator, uint64_t first_row, size_t threads, std::vector<float>* labels,
                 std::vector<Key>* all_keys) {
  const size_t fields = generator.options().fields;
  parallel_for(threads, pieces_of(labels->size()), [&](size_t piece) {
    std::vector<uint64_t> keys(fields);
    const size_t end = std::min<size_t>((piece + 1) * kRowsPerPiece, labels->size());
    for (size_t i = piece * kRowsPerPiece; i < end; ++i) {
      (*labels)[i] = generator.row(first_row + i, keys);
      for (size_t f = 0; f < fields; ++f) (*all_keys)[i * fields + f] = static_cast<Key>(keys[f]);
    }
  });
}

template <class Key>
uint64_t largest(const std::vector<Key>& keys) {
  return keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
}

struct Clicks {
  std::vector<float> labels;
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> keys32;
  std::vector<uint64_t> keys64;
};

}  // namespace

Status ClickOptions::validate() const {
  if (fields < 1) return error(Code::kInvalid, "a click row needs at least 1 field, not {}", fields);
  if (features < fields) return error(Code::kInvalid, "{} fields do not fit in {} features", fields, features);
  if (features > uint64_t{1} << 48) return error(Code::kInvalid, "at most 2^48 features, not {}", features);
  if (!std::isfinite(bias) || !std::isfinite(weight_sd))
    return error(Code::kInvalid, "bias and weights must be finite");
  return {};
}

ClickGenerator::ClickGenerator(const ClickOptions& options)
    : options_(options), weight_seed_(mix64(options.seed ^ 0x77656967687473)) {
  CHECK(options.validate().ok());
  const auto first_key = [&](uint64_t field) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(options.features) * field / options.fields);
  };
  for (uint64_t f = 0; f < options.fields; ++f) {
    const uint64_t size = first_key(f + 1) - first_key(f);
    fields_.push_back({first_key(f), size, std::log2(static_cast<double>(size)), stride_for(size)});
  }
}

float ClickGenerator::row(uint64_t i, std::span<uint64_t> keys) const {
  CHECK(keys.size() == fields_.size());
  Rng rng(options_.seed, i);
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = fields_[f];
    // The inverse of the distribution function log(x) / log(size) on [1, size].
    const double x = std::exp2(rng.uniform() * field.log2_size);
    const uint64_t rank = std::min(static_cast<uint64_t>(x), field.size) - 1;
    keys[f] = field.first_key + static_cast<uint64_t>(static_cast<unsigned __int128>(rank) * field.stride % field.size);
  }
  return rng.uniform() < 1 / (1 + std::exp(-planted_logit(keys))) ? 1.0f : 0.0f;
}

double ClickGenerator::planted_weight(uint64_t key) const {
  // The sum of four uniform values is near enough to normal, and cheap.
  const uint64_t bits = mix64(weight_seed_ ^ mix64(key));
  const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  constexpr double kMean = 2 * 65535.0;
  constexpr double kStandardDeviation = 37837.2;  // 65536 * sqrt(4 / 12)
  return options_.weight_sd * ((static_cast<double>(sum) - kMean) / kStandardDeviation);
}

double ClickGenerator::planted_logit(std::span<const uint64_t> keys) const {
  double logit = options_.bias;
  for (const uint64_t key : keys) logit += planted_weight(key);
  return logit;
}

Dataset generate_clicks(const ClickOptions& options, uint64_t first_row, uint64_t rows, size_t threads) {
  const ClickGenerator generator(options);
  auto clicks = std::make_shared<Clicks>();
  clicks->labels.resize(rows);
  clicks->offsets.resize(rows + 1);
  for (uint64_t i = 0; i <= rows; ++i) clicks->offsets[i] = i * options.fields;
  DatasetColumns columns;
  columns.labels = clicks->labels;
  columns.offsets = clicks->offsets;
  if ((options.features - 1) >> 32 != 0) {
    clicks->keys64.resize(rows * options.fields);
    fill_clicks(generator, first_row, threads, &clicks->labels, &clicks->keys64);
    columns.keys64 = clicks->keys64;
    columns.max_key = largest(clicks->keys64);
  } else {
    clicks->keys32.resize(rows * options.fields);
    fill_clicks(generator, first_row, threads, &clicks->labels, &clicks->keys32);
    columns.keys32 = clicks->keys32;
    columns.max_key = largest(clicks->keys32);
  }
  return Dataset(columns, clicks);
}

Status write_clicks(const std::string& path, const ClickOptions& options, uint64_t first_row, uint64_t rows,
                    size_t threads) {
  TRY(options.validate());
  const ClickGenerator generator(options);
  ASSIGN(AtomicFile file, AtomicFile::create(path));
  OrderedWriter writer(&file);
  parallel_for(threads, pieces_of(rows), [&](size_t piece) {
    std::vector<uint64_t> keys(options.fields);
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

}  // namespace talweg
