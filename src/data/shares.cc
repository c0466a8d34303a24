#include "data/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "data/permutation.h"

namespace talweg {
namespace {

// The rows, those of a label together, in rising order of the labels and within one in the data's order.
std::vector<uint64_t> sorted_by_label(std::span<const float> labels) {
  std::vector<uint64_t> rows(labels.size());
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](uint64_t a, uint64_t b) { return labels[a] < labels[b]; });
  return rows;
}

// The logarithm of a gamma variate (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000). With
// a small shape the variate itself would underflow to zero for every worker.
double log_gamma_draw(double shape, Rng* rng) {
  if (shape < 1) return log_gamma_draw(shape + 1, rng) + std::log(1.0 - rng->uniform()) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng->normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1.0 - rng->uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

// Where each worker's part of `count` rows ends, for proportions that follow a Dirichlet distribution.
std::vector<uint64_t> dirichlet_cuts(uint64_t count, uint32_t workers, double alpha, Rng* rng) {
  std::vector<double> weights(workers);
  for (double& weight : weights) weight = log_gamma_draw(alpha, rng);
  const double largest = *std::max_element(weights.begin(), weights.end());
  for (double& weight : weights) weight = std::exp(weight - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint64_t> cuts(workers);
  double sum = 0;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    sum += weights[worker];
    cuts[worker] = std::min(count, static_cast<uint64_t>(sum / total * static_cast<double>(count) + 0.5));
  }
  cuts.back() = count;
  return cuts;
}

uint64_t slice_begin(uint64_t rows, uint32_t workers, uint32_t worker) {
  return worker * (rows / workers) + std::min<uint64_t>(worker, rows % workers);
}

}  // namespace

std::shared_ptr<const Shares> Shares::listed(std::span<const uint32_t> worker_of_row, uint32_t workers) {
  auto shares = std::make_shared<Shares>();
  shares->slices_.resize(workers);
  for (const uint32_t worker : worker_of_row) ++shares->slices_[worker].size;
  std::vector<uint64_t> next(workers);
  for (uint32_t w = 1; w < workers; ++w) next[w] = next[w - 1] + shares->slices_[w - 1].size;
  for (uint32_t w = 0; w < workers; ++w) shares->slices_[w].begin = next[w];
  shares->rows_.resize(worker_of_row.size());
  for (uint64_t row = 0; row < worker_of_row.size(); ++row) shares->rows_[next[worker_of_row[row]]++] = row;
  return shares;
}

std::shared_ptr<const Shares> Shares::by_hash(uint64_t rows, uint32_t workers, uint64_t seed) {
  std::vector<uint32_t> worker_of_row(rows);
  const uint64_t key = mix64(seed);
  for (uint64_t row = 0; row < rows; ++row) {
    worker_of_row[row] = static_cast<uint32_t>(scale_to(mix64(row ^ key), workers));
  }
  return listed(worker_of_row, workers);
}

std::shared_ptr<const Shares> Shares::overlapping(uint64_t rows, uint32_t workers, double overlap) {
  CHECK(overlap >= 0 && overlap <= 1);
  auto shares = std::make_shared<Shares>();
  shares->total_ = rows;
  const auto size_of = [&](uint32_t worker) {
    return slice_begin(rows, workers, worker + 1) - slice_begin(rows, workers, worker);
  };
  for (uint32_t worker = 0; worker < workers; ++worker) {
    const double lent = workers == 1 ? 0 : overlap * static_cast<double>(size_of((worker + 1) % workers));
    shares->slices_.push_back({slice_begin(rows, workers, worker), size_of(worker) + static_cast<uint64_t>(lent)});
  }
  return shares;
}

std::shared_ptr<const Shares> Shares::by_label(std::span<const float> labels, uint32_t workers) {
  auto shares = std::make_shared<Shares>();
  shares->rows_ = sorted_by_label(labels);
  for (uint32_t worker = 0; worker < workers; ++worker) {
    const uint64_t begin = slice_begin(labels.size(), workers, worker);
    shares->slices_.push_back({begin, slice_begin(labels.size(), workers, worker + 1) - begin});
  }
  return shares;
}

std::shared_ptr<const Shares> Shares::dirichlet(std::span<const float> labels, uint32_t workers, double alpha,
                                                uint64_t seed) {
  CHECK(alpha > 0);
  const std::vector<uint64_t> sorted = sorted_by_label(labels);
  std::vector<uint32_t> worker_of_row(labels.size());
  uint64_t label = 0;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end, ++label) {
    while (end < sorted.size() && labels[sorted[end]] == labels[sorted[begin]]) ++end;
    Rng rng(seed, label);
    const std::vector<uint64_t> cuts = dirichlet_cuts(end - begin, workers, alpha, &rng);
    // Cut in a shuffled order: a worker's part of a label should not also be a stretch of the file.
    const Permutation order(end - begin, rng.next());
    uint32_t worker = 0;
    for (uint64_t i = 0; i < end - begin; ++i) {
      while (i >= cuts[worker]) ++worker;
      worker_of_row[sorted[begin + order(i)]] = worker;
    }
  }
  return listed(worker_of_row, workers);
}

}  // namespace talweg
