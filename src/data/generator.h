// A click data set with a planted model, for examples, tests and benchmarks. A row has one key per field, with value 1;
// a field draws from its own part of the feature space with probability about 1/rank (Zipf), the common keys scattered
// over the part. The label is 1 with the probability that the planted logistic model gives. Row i depends on the
// options and i alone, so any part of the set can be made anywhere, on any number of threads. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"

namespace talweg {

// The defaults give about a quarter of ones, and an AUC near 0.79 to a learner that knows the planted weights.
struct ClickOptions {
  uint64_t seed = 1;
  uint64_t features = uint64_t{1} << 20;
  uint32_t fields = 39;
  double bias = -1.3;
  double weight_sd = 0.2;  // standard deviation of the planted weights

  Status validate() const;
};

class ClickGenerator {
 public:
  // The options must be valid.
  explicit ClickGenerator(const ClickOptions& options);

  // Writes the keys of row `i`, one per field, and returns its label.
  float row(uint64_t i, std::span<uint64_t> keys) const;
  double planted_weight(uint64_t key) const;
  double planted_logit(std::span<const uint64_t> keys) const;
  const ClickOptions& options() const { return options_; }

 private:
  struct Field {
    uint64_t first_key, size;
    double log2_size;
    uint64_t stride;  // shares no divisor with the size: rank * stride mod size visits every key once
  };

  ClickOptions options_;
  uint64_t weight_seed_;
  std::vector<Field> fields_;
};

// Rows [first_row, first_row + rows) in memory. The options must be valid.
Dataset generate_clicks(const ClickOptions& options, uint64_t first_row, uint64_t rows, size_t threads = 0);

// The same rows as LibSVM text. The file appears complete or not at all.
Status write_clicks(const std::string& path, const ClickOptions& options, uint64_t first_row, uint64_t rows,
                    size_t threads = 0);

}  // namespace talweg
