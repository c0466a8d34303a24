#include "model/ranking.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace talweg {
namespace {

struct Scored {
  float score;
  bool positive;
};

std::vector<Scored> random_scores(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<Scored> scores;
  for (size_t i = 0; i < count; ++i) {
    const bool positive = rng.below(3) == 0;
    scores.push_back({static_cast<float>(rng.normal() + (positive ? 0.7 : 0)), positive});
  }
  return scores;
}

double area_of_all_pairs(const std::vector<Scored>& scores) {
  double ordered = 0, pairs = 0;
  for (const Scored& a : scores) {
    for (const Scored& b : scores) {
      if (!a.positive || b.positive) continue;
      ++pairs;
      ordered += a.score > b.score ? 1 : a.score == b.score ? 0.5 : 0;
    }
  }
  return ordered / pairs;
}

Ranking ranking_of(const std::vector<Scored>& scores) {
  Ranking ranking;
  for (const auto& [score, positive] : scores) ranking.add(score, positive);
  return ranking;
}

TEST(Ranking, the_area_is_that_of_all_pairs_but_for_pairs_in_one_bucket) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto scores = random_scores(500, seed);
    EXPECT_NEAR(ranking_of(scores).area(), area_of_all_pairs(scores), 5e-4) << seed;
  }
}

TEST(Ranking, equal_scores_count_half) {
  EXPECT_EQ(ranking_of({{1, true}, {1, false}}).area(), 0.5);
  EXPECT_EQ(ranking_of({{1, true}, {1, false}, {0, false}}).area(), 0.75);
}

TEST(Ranking, a_perfect_order_has_area_one_and_its_reverse_zero) {
  EXPECT_EQ(ranking_of({{1, true}, {2, true}, {0, false}, {-1, false}}).area(), 1);
  EXPECT_EQ(ranking_of({{1, false}, {2, false}, {0, true}, {-1, true}}).area(), 0);
}

TEST(Ranking, without_pairs_the_area_is_a_half) {
  EXPECT_EQ(Ranking().area(), 0.5);
  EXPECT_EQ(ranking_of({{1, true}, {2, true}}).area(), 0.5);
  EXPECT_EQ(ranking_of({{1, false}}).area(), 0.5);
}

TEST(Ranking, scores_beyond_the_range_stay_in_order_with_those_within) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ranking_of({{kFar, true}, {15, false}, {-15, true}, {-kFar, false}}).area(), 0.75);
  EXPECT_EQ(ranking_of({{1e30f, true}, {-1e30f, false}}).area(), 1);
}

TEST(Ranking, a_score_that_is_no_number_ranks_last) {
  EXPECT_EQ(ranking_of({{std::nanf(""), false}, {-20, true}, {0, true}}).area(), 0.75);
}

// What workers do: each counts its share, the coordinator adds the counts in the order they come.
TEST(Ranking, parts_merge_to_the_same_area_in_any_order) {
  const auto scores = random_scores(600, 9);
  std::vector<Ranking> parts(3);
  for (size_t i = 0; i < scores.size(); ++i) parts[i * i % 3].add(scores[i].score, scores[i].positive);
  const double whole = ranking_of(scores).area();
  for (const auto& order : {std::array{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    Ranking merged;
    for (int part : order) {
      parts[static_cast<size_t>(part)].visit(
          [&](uint32_t bucket, uint64_t positives, uint64_t negatives) { merged.add(bucket, positives, negatives); });
    }
    EXPECT_EQ(merged.area(), whole);
  }
}

}  // namespace
}  // namespace talweg
