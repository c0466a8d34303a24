// The click rows that several benchmarks train on, and the ranking of held-out rows by a model's weights.
#pragma once

#include <cstdint>
#include <vector>

#include "data/generator.h"
#include "model/ranking.h"

namespace talweg::bench {

constexpr uint64_t kClickRows = 800'000, kClickTestRows = 100'000, kClickFeatures = uint64_t{1} << 20;

struct ClickWeights {
  std::vector<float> of_key = std::vector<float>(kClickFeatures);
  float bias = 0;
};

inline double held_out_auc(const Dataset& test, const ClickWeights& weights) {
  Ranking ranking;
  for (size_t row = 0; row < test.rows(); ++row) {
    float score = weights.bias;
    test.visit(row, [&](auto keys, std::span<const float>) {
      for (const auto key : keys) score += weights.of_key[key];
    });
    ranking.add(score, test.label(row) > 0);
  }
  return ranking.area();
}

}  // namespace talweg::bench
