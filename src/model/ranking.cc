#include "model/ranking.h"

#include <algorithm>
#include <cmath>

namespace talweg {

uint32_t Ranking::bucket_of(float score) {
  if (std::isnan(score)) return 0;
  const float position = (std::clamp(score, -kRange, kRange) + kRange) / (2 * kRange) * (kBuckets - 1);
  return static_cast<uint32_t>(position);
}

double Ranking::area() const {
  double ordered_pairs = 0, negatives_below = 0, positives = 0;
  for (size_t i = 0; i < positives_.size(); ++i) {
    const auto p = static_cast<double>(positives_[i]), n = static_cast<double>(negatives_[i]);
    ordered_pairs += p * (negatives_below + n / 2);
    negatives_below += n;
    positives += p;
  }
  const double pairs = positives * negatives_below;
  return pairs > 0 ? ordered_pairs / pairs : 0.5;
}

}  // namespace talweg
