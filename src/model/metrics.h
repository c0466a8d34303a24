// How good predictions were: what workers collect row by row over the held-out rows, and the coordinator adds up.
// Counts and probabilities are whole numbers and add up exactly in any order; only the sums of losses and of squared
// errors are rounded, so a fixed order of merging gives them the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/objective.h"
#include "model/ranking.h"

namespace talweg {

class Metrics {
 public:
  // Bins of equal width for the expected calibration error (Guo et al., "On calibration of modern neural networks",
  // ICML 2017).
  static constexpr size_t kBins = 20;

  explicit Metrics(Objective objective);

  // kBinary and kMargin: a score, positive rows are hoped to have the higher ones.
  void add_score(float score, bool positive, double loss);
  // kRegression.
  void add_prediction(double prediction, double label, double loss);
  // kClasses: whether the likeliest class was the right one, and its probability.
  void add_class(bool right, double confidence, double loss);

  // An error when the other's objective is not this one's.
  Status merge(const Metrics& other);

  Objective objective() const { return objective_; }
  uint64_t rows() const { return rows_; }
  // Means; 0 without rows.
  double loss() const;
  double accuracy() const;
  double rmse() const;
  // The area under the ROC curve; a half when nothing was ranked.
  double auc() const { return ranking_ ? ranking_->area() : 0.5; }
  // Predicted positives over actual ones: above 1 is too sure of itself. Not there without positives.
  std::optional<double> calibration() const;
  // The mean distance between a bin's probability and its share of hits, weighted by rows.
  double expected_calibration_error() const;

  // The measures that apply, by name: loss, auc, accuracy, rmse, calibration, ece. Empty without rows.
  std::vector<std::pair<std::string, double>> summary() const;

  // As bytes for another node, and back. Well below a megabyte whatever was collected.
  std::string serialize() const;
  static Result<Metrics> parse(std::string_view bytes);

 private:
  struct Bin {
    uint64_t rows = 0, hits = 0;
    uint64_t probability = 0;  // the sum, in units of 1 / kProbabilityOne
  };
  // Leaves room for 2^34 rows in a sum.
  static constexpr uint64_t kProbabilityOne = uint64_t{1} << 30;

  void add_probability(double probability, bool hit);

  Objective objective_;
  uint64_t rows_ = 0, right_ = 0;
  double loss_sum_ = 0, squared_error_sum_ = 0;
  std::array<Bin, kBins> bins_{};
  std::optional<Ranking> ranking_;  // large, so only where it is used
};

}  // namespace talweg
