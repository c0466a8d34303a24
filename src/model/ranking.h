// The area under the ROC curve from counts of scores per bucket. Counts add up exactly in any order, so the workers'
// parts can be merged as they come and the result does not depend on who evaluated what.
#pragma once

#include <cstdint>
#include <vector>

namespace talweg {

class Ranking {
 public:
  // Scores are logits; beyond +-kRange they share the outermost buckets. A bucket is 0.0005 wide, so the area is exact
  // but for pairs that are nearer than that, which count half.
  static constexpr int kBuckets = 1 << 16;
  static constexpr float kRange = 16;

  Ranking() : positives_(kBuckets), negatives_(kBuckets) {}

  void add(float score, bool positive) { ++(positive ? positives_ : negatives_)[bucket_of(score)]; }
  void add(uint32_t bucket, uint64_t positives, uint64_t negatives) {
    positives_[bucket] += positives;
    negatives_[bucket] += negatives;
  }
  // Half when there are no pairs.
  double area() const;
  // Calls visit(bucket, positives, negatives) for the buckets that are not empty.
  template <class Visit>
  void visit(Visit&& visit) const {
    for (uint32_t i = 0; i < kBuckets; ++i) {
      if (positives_[i] + negatives_[i] > 0) visit(i, positives_[i], negatives_[i]);
    }
  }

 private:
  static uint32_t bucket_of(float score);
  std::vector<uint64_t> positives_, negatives_;
};

}  // namespace talweg
