#include "optim/shampoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "optim/testing.h"

namespace talweg {
namespace {

constexpr double kTiny = 1e-30;

TEST(Shampoo, of_one_weight_is_adagrad) {
  OneRow<double> row({.type = "shampoo", .lr = 0.5, .epsilon = 2}, {1}, {1, 1});
  // L = R = 2 + 2^2, then 6 + 5^2: the two fourth roots make one square root.
  EXPECT_NEAR(row.after(2), 1 - 0.5 * 2 / std::sqrt(6), 1e-15);
  EXPECT_NEAR(row.after(-5), 1 - 0.5 * 2 / std::sqrt(6) + 0.5 * 5 / std::sqrt(31), 1e-15);
}

TEST(Shampoo, steps_are_the_hand_computed_ones) {
  OneRow<double> row({.type = "shampoo", .lr = 0.25, .epsilon = kTiny}, {0, 0, 0, 0}, {2, 2});
  // L = R = diag(16, 81), whose inverse fourth roots are diag(1/2, 1/3): the step is diag(4/4, 9/9).
  const std::vector<double> first = row.after({4, 0, 0, 9});
  // Then G = (0 2; 3 0): L = diag(20, 90), R = diag(25, 85).
  const std::vector<double> second = row.after({0, 2, 3, 0});
  const double expected[] = {-0.25, -0.25 * 2 / std::pow(20 * 85, 0.25), -0.25 * 3 / std::pow(90 * 25, 0.25), -0.25};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(first[i], i == 0 || i == 3 ? -0.25 : 0, 1e-15) << i;
    EXPECT_NEAR(second[i], expected[i], 1e-15) << i;
  }
}

// With G = U S V^T, the first step is L^(-1/4) G R^(-1/4) = U V^T: its columns are orthonormal.
TEST(Shampoo, the_first_step_of_a_large_block_is_orthogonal) {
  constexpr size_t kRows = 70, kColumns = 50;
  Rng rng(1, 2);
  std::vector<double> gradient(kRows * kColumns);
  for (double& value : gradient) value = rng.normal();
  OneRow<double> row({.type = "shampoo", .lr = 1, .epsilon = 1e-12}, std::vector<double>(kRows * kColumns),
                     {kRows, kColumns});
  const std::vector<double> step = row.after(gradient);
  for (size_t a = 0; a < kColumns; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      double product = 0;
      for (size_t r = 0; r < kRows; ++r) product += step[r * kColumns + a] * step[r * kColumns + b];
      ASSERT_NEAR(product, a == b ? 1 : 0, 1e-9) << a << " " << b;
    }
  }
}

TEST(Shampoo, roots_are_kept_between_their_updates) {
  OneRow<double> row({.type = "shampoo", .lr = 1, .epsilon = kTiny, .precondition_every = 2}, {0}, {1, 1});
  EXPECT_NEAR(row.after(3), -1, 1e-15);
  EXPECT_NEAR(row.after(6), -1 - 6 / 3.0, 1e-15);                              // still the root of 9
  EXPECT_NEAR(row.after(2), -1 - 6 / 3.0 - 2 / std::sqrt(9 + 36 + 4), 1e-15);  // and now of all three
}

TEST(Shampoo, a_block_first_updated_between_roots_takes_its_own) {
  OneRow<double> row({.type = "shampoo", .lr = 1, .epsilon = kTiny, .precondition_every = 10}, {0}, {1, 1});
  row.number = 4;
  EXPECT_NEAR(row.after(3), -1, 1e-15);
  EXPECT_NEAR(row.after(6), -1 - 6 / 3.0, 1e-15);
}

// All that matters lies in the table's values: a fresh optimizer goes on where another one stopped.
TEST(Shampoo, another_optimizer_goes_on_from_the_same_values) {
  const OptimizerConfig config{.type = "shampoo", .lr = 0.1, .precondition_every = 3};
  OneRow<float> once(config, {1, 2, 3, 4, 5, 6}, {2, 3}), moved = OneRow<float>(config, {1, 2, 3, 4, 5, 6}, {2, 3});
  for (int step = 0; step < 8; ++step) {
    const std::vector<float> gradient = {1.5f, -2, 0.3f * static_cast<float>(step), 0, 1, -1};
    moved.optimizer = make_standard<float>(config, {2, 3});
    EXPECT_EQ(once.after(gradient), moved.after(gradient)) << step;
  }
}

// Vector code may treat the first values of an unaligned array apart, and then adds in another order.
TEST(Shampoo, the_bits_do_not_depend_on_where_a_block_lies) {
  constexpr size_t kRows = 33, kColumns = 61, kWidth = kRows * kColumns;
  const auto shampoo =
      make_standard<double>({.type = "shampoo", .l2 = 0.1, .precondition_every = 2}, {kRows, kColumns});
  const size_t block_values = kWidth * (1 + shampoo->state_per_weight());
  std::vector<double> storage(2 * block_values + 1);
  double* const blocks[] = {storage.data(), storage.data() + block_values + (block_values % 2 == 0 ? 1 : 0)};
  const uint32_t listed[] = {0, 1};
  Rng rng(3, 4);
  for (uint64_t number = 1; number <= 3; ++number) {
    std::vector<double> gradients(2 * kWidth);
    for (size_t i = 0; i < kWidth; ++i) gradients[i] = gradients[kWidth + i] = rng.normal();
    shampoo->apply({.chunks = blocks,
                    .chunk_shift = 0,
                    .stride = 0,
                    .state_offset = kWidth,
                    .width = kWidth,
                    .rows = listed,
                    .gradients = gradients.data(),
                    .number = number});
    ASSERT_TRUE(std::equal(blocks[0], blocks[0] + block_values, blocks[1])) << number;
    ASSERT_NE(blocks[0][0], 0);
  }
}

TEST(Shampoo, needs_room_for_two_square_matrices_and_two_more_for_kept_roots) {
  const auto state = [](int64_t every, BlockShape shape) {
    return make_standard<float>({.type = "shampoo", .precondition_every = every}, shape)->state_per_weight();
  };
  EXPECT_EQ(state(1, {4, 4}), 2u);
  EXPECT_EQ(state(1, {2, 3}), 3u);  // 4 + 9 values behind 6 weights
  EXPECT_EQ(state(5, {2, 3}), 5u);
  EXPECT_EQ(state(1, {5, 1}), 6u);
}

TEST(Shampoo, the_penalty_is_part_of_the_gradient) {
  OneRow<double> with({.type = "shampoo", .lr = 0.1, .l2 = 0.5}, {1, -2}, {1, 2});
  OneRow<double> without({.type = "shampoo", .lr = 0.1}, {1, -2}, {1, 2});
  EXPECT_EQ(with.after({3, 4}), without.after({3.5, 3}));
}

TEST(Shampoo, a_gradient_of_zeros_changes_nothing) {
  OneRow<double> row({.type = "shampoo"}, {1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(row.after({0, 0, 0, 0}), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Shampoo, an_overflow_shows_in_the_weights) {
  OneRow<double> row({.type = "shampoo"}, {0, 0}, {1, 2});
  EXPECT_TRUE(std::isnan(row.after({1e200, 1})[0]));
}

TEST(Shampoo, only_it_needs_the_whole_block) {
  EXPECT_TRUE(make_standard<float>({.type = "shampoo"}, {2, 3})->needs_whole_block());
  EXPECT_FALSE(make_standard<float>({.type = "adam"}, {2, 3})->needs_whole_block());
}

TEST(Shampoo, blocks_it_cannot_have_are_refused) {
  const auto refusal = [](BlockShape shape, std::optional<double> epsilon = {}) {
    return OptimizerRegistry::standard().make<float>({.type = "shampoo", .epsilon = epsilon}, shape).status().message();
  };
  EXPECT_EQ(refusal({}), "optimizer shampoo: needs a dense table with columns; a sparse table or a vector has none");
  EXPECT_EQ(refusal({100, 0}), refusal({}));
  EXPECT_EQ(refusal({3, 5000}), "optimizer shampoo: a block of 3 x 5000 is too large; at most 2048 x 2048 are allowed");
  EXPECT_EQ(refusal({~uint64_t{0}, ~uint64_t{0}}).substr(0, 31), "optimizer shampoo: a block of 1");
  EXPECT_EQ(refusal({3, 5}, 0), "optimizer shampoo: epsilon must be more than 0, or its matrices have no roots");
}

}  // namespace
}  // namespace talweg
