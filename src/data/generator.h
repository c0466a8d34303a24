// Data sets with a planted model, for examples, tests and benchmarks. Row i depends on the options and i alone, so any
// part of a set can be made anywhere, on any number of threads, and a set may be larger than any memory. Thread-safe.
//
// Clicks, regression and classes share how keys are drawn: a row has one key per field, with value 1; a field draws
// from its own part of the feature space with probability about 1/rank (Zipf), the common keys scattered over the part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "data/dataset.h"

namespace talweg {

class RowGenerator {
 public:
  virtual ~RowGenerator() = default;
  // Keys are below this.
  virtual uint64_t features() const = 0;
  virtual size_t row_size() const = 0;
  // Writes the keys of row `i`, `row_size` of them, and returns its label.
  virtual float row(uint64_t i, std::span<uint64_t> keys) const = 0;
};

// Rows [first_row, first_row + rows) in memory.
Dataset generate(const RowGenerator& generator, uint64_t first_row, uint64_t rows, size_t threads = 0);
// The same rows as LibSVM text. The file appears complete or not at all.
Status write_rows(const std::string& path, const RowGenerator& generator, uint64_t first_row, uint64_t rows,
                  size_t threads = 0);

// Draws a row's keys, one per field.
//
// With drift, a field has a window of live keys, and keys are born as the row number grows, `drift` of them per row,
// in the fields by turns. A key is in the row it is born in, is the commonest of its field until the next, then fades,
// and is gone when as many as the window holds were born after it. So the first n rows hold at least n * drift distinct
// keys. Only after a field has been through its whole part of the feature space do its keys come again.
class FieldKeys {
 public:
  static Status validate(uint64_t features, uint32_t fields, double drift, uint64_t window);
  // What is given must be valid.
  FieldKeys(uint64_t features, uint32_t fields, double drift = 0, uint64_t window = 0);

  size_t fields() const { return fields_.size(); }
  void draw(uint64_t row, Rng& rng, std::span<uint64_t> keys) const;

 private:
  struct Field {
    uint64_t first_key, size;
    uint64_t live;    // keys to draw from at a time
    double log2_end;  // of the ranks, from 1
    uint64_t stride;  // shares no divisor with the size: number * stride mod size visits every key once
  };
  uint64_t born_before(uint64_t row) const { return static_cast<uint64_t>(static_cast<double>(row) * drift_); }
  uint64_t born_in(uint64_t field, uint64_t born) const { return (born + fields_.size() - 1 - field) / fields_.size(); }
  // The number of the field's key at this rank, at this row.
  uint64_t number_at(uint64_t row, uint64_t field, uint64_t rank) const;

  double drift_;
  std::vector<Field> fields_;
};

// Values that are drawn once for each key and for ever, and take no memory: near to normal, mean 0, deviation 1.
class PlantedNormal {
 public:
  explicit PlantedNormal(uint64_t seed) : seed_(seed) {}
  double operator()(uint64_t key) const;

 private:
  uint64_t seed_;
};

// Vectors of planted factors, of a length that makes the inner products of `pairs` pairs together have deviation `sd`.
class PlantedFactors {
 public:
  PlantedFactors(uint64_t seed, uint32_t factors, double sd, double pairs);
  // The sum of the inner products of all pairs.
  double interaction(std::span<const uint64_t> keys) const;

 private:
  std::vector<PlantedNormal> factors_;
  double scale_;
};

// The label is 1 with the probability that a logistic model gives, or with factors a factorisation machine. The
// defaults give about a quarter of ones, and an AUC near 0.79 to a learner that knows the planted weights.
struct ClickOptions {
  uint64_t seed = 1;
  uint64_t features = uint64_t{1} << 20;
  uint32_t fields = 39;
  double bias = -1.3;
  double weight_sd = 0.2;  // standard deviation of the planted weights
  uint32_t factors = 0;    // planted factors per key; 0: keys do not interact
  double interaction_sd = 1;
  double drift = 0;     // new keys per row, at most one per field; 0: keys stay
  uint64_t window = 0;  // with drift: keys that live at a time, over all fields

  Status validate() const;
};

class ClickGenerator final : public RowGenerator {
 public:
  // The options must be valid.
  explicit ClickGenerator(const ClickOptions& options);

  uint64_t features() const override { return options_.features; }
  size_t row_size() const override { return options_.fields; }
  float row(uint64_t i, std::span<uint64_t> keys) const override;
  double planted_weight(uint64_t key) const { return options_.weight_sd * weights_(key); }
  double planted_logit(std::span<const uint64_t> keys) const;
  const ClickOptions& options() const { return options_; }

 private:
  ClickOptions options_;
  PlantedNormal weights_;
  PlantedFactors factors_;
  FieldKeys keys_;
};

// The label is a linear function of the keys, plus noise.
struct RegressionOptions {
  uint64_t seed = 1;
  uint64_t features = uint64_t{1} << 20;
  uint32_t fields = 39;
  double bias = 1;
  double weight_sd = 0.2;
  double noise_sd = 0.5;

  Status validate() const;
};

class RegressionGenerator final : public RowGenerator {
 public:
  // The options must be valid.
  explicit RegressionGenerator(const RegressionOptions& options);

  uint64_t features() const override { return options_.features; }
  size_t row_size() const override { return options_.fields; }
  float row(uint64_t i, std::span<uint64_t> keys) const override;
  // The label without the noise.
  double planted(std::span<const uint64_t> keys) const;

 private:
  RegressionOptions options_;
  PlantedNormal weights_;
  FieldKeys keys_;
};

// The label is a class, drawn with the probabilities that a softmax model gives.
struct ClassOptions {
  uint64_t seed = 1;
  uint64_t features = uint64_t{1} << 20;
  uint32_t fields = 39;
  uint32_t classes = 5;
  double weight_sd = 0.2;

  Status validate() const;
};

class ClassGenerator final : public RowGenerator {
 public:
  // The options must be valid.
  explicit ClassGenerator(const ClassOptions& options);

  uint64_t features() const override { return options_.features; }
  size_t row_size() const override { return options_.fields; }
  float row(uint64_t i, std::span<uint64_t> keys) const override;
  double planted_logit(std::span<const uint64_t> keys, uint32_t of_class) const;
  // The likeliest: what a learner that knows the planted weights would answer.
  uint32_t planted_class(std::span<const uint64_t> keys) const;

 private:
  ClassOptions options_;
  std::vector<PlantedNormal> weights_;  // of each class
  FieldKeys keys_;
};

// A row is a user's key, from 0, and an item's, from `users` on; the label is the rating: a mean, a bias of each, the
// product of their factors, and noise. Users come equally often, items with probability about 1/rank.
struct RatingOptions {
  uint64_t seed = 1;
  uint64_t users = 10'000;
  uint64_t items = 2'000;
  uint32_t factors = 4;
  double mean = 3.5;
  double bias_sd = 0.3;
  double interaction_sd = 0.8;
  double noise_sd = 0.5;

  Status validate() const;
};

class RatingGenerator final : public RowGenerator {
 public:
  // The options must be valid.
  explicit RatingGenerator(const RatingOptions& options);

  uint64_t features() const override { return options_.users + options_.items; }
  size_t row_size() const override { return 2; }
  float row(uint64_t i, std::span<uint64_t> keys) const override;
  // The rating without the noise.
  double planted(std::span<const uint64_t> keys) const;

 private:
  RatingOptions options_;
  PlantedNormal biases_;
  PlantedFactors factors_;
  double log2_items_end_;
  uint64_t item_stride_;
};

// Clicks by their options. The options of the first must be valid.
Dataset generate_clicks(const ClickOptions& options, uint64_t first_row, uint64_t rows, size_t threads = 0);
Status write_clicks(const std::string& path, const ClickOptions& options, uint64_t first_row, uint64_t rows,
                    size_t threads = 0);

}  // namespace talweg
