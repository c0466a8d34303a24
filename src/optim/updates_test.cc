// Hand-computed sequences, to the last bit where the arithmetic gives exact numbers.
#include "optim/updates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "optim/testing.h"

namespace talweg {
namespace {

template <class Real>
class UpdateOf : public ::testing::Test {
 protected:
  static constexpr Real kNear = 8 * std::numeric_limits<Real>::epsilon();
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UpdateOf, Reals);

TYPED_TEST(UpdateOf, sgd_steps_are_the_hand_computed_ones) {
  const auto sgd = make_standard<TypeParam>({.type = "sgd", .lr = 0.5, .l2 = 0.25});
  EXPECT_EQ(sgd->state_per_weight(), 0u);
  Storage<TypeParam> storage(*sgd, 3, 1);
  const uint32_t listed[] = {2, 0};
  const TypeParam gradients[] = {4, -8};
  sgd->apply(storage.rows(listed, gradients));
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{4, 0, -2}));
  sgd->apply(storage.rows(listed, gradients));  // -2 - .5 * (4 - .5) and 4 - .5 * (-8 + 1)
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{7.5, 0, -3.75}));
}

TYPED_TEST(UpdateOf, momentum_steps_are_the_hand_computed_ones) {
  OneRow<TypeParam> row({.type = "momentum", .lr = 0.5, .l2 = 0.25, .momentum = 0.5}, {0});
  EXPECT_EQ(row.optimizer->state_per_weight(), 1u);
  EXPECT_EQ(row.after(4), -2);         // v = 4
  EXPECT_EQ(row.after(4), -4.75);      // v = 2 + (4 - .5) = 5.5
  EXPECT_EQ(row.after(-8), -1.53125);  // v = 2.75 + (-8 - 1.1875) = -6.4375
}

TYPED_TEST(UpdateOf, nesterov_steps_are_the_hand_computed_ones) {
  OneRow<TypeParam> row({.type = "nesterov", .lr = 0.5, .l2 = 0.25, .momentum = 0.5}, {0});
  EXPECT_EQ(row.optimizer->state_per_weight(), 1u);
  EXPECT_EQ(row.after(4), -3);           // v = 4, and a step of 4 + 2
  EXPECT_EQ(row.after(4), -5.9375);      // g = 4 - .75, v = 2 + 3.25, and a step of 3.25 + 2.625
  EXPECT_EQ(row.after(-8), 0.51953125);  // g = -8 - 1.484375, v = 2.625 + g, and a step of g + v / 2
}

TYPED_TEST(UpdateOf, adagrad_steps_are_the_hand_computed_ones) {
  using Real = TypeParam;
  const auto adagrad =
      make_standard<Real>({.type = "adagrad", .lr = 0.1, .l2 = 0.01, .epsilon = 1e-3, .initial_accumulator = 0.5});
  EXPECT_EQ(adagrad->state_per_weight(), 1u);
  Storage<Real> storage(*adagrad, 3, 3);
  const uint32_t listed[] = {1};
  Real weights[3] = {}, accumulators[3] = {Real(0.5), Real(0.5), Real(0.5)};
  for (int step = 0; step < 5; ++step) {
    const Real gradients[3] = {Real(0.3) * step, Real(-1.7), Real(1e-6)};
    adagrad->apply(storage.rows(listed, gradients));
    for (int j = 0; j < 3; ++j) {
      const Real g = gradients[j] + Real(0.01) * weights[j];
      accumulators[j] += g * g;
      weights[j] -= Real(0.1) * g / (std::sqrt(accumulators[j]) + Real(1e-3));
    }
  }
  for (int j = 0; j < 3; ++j) {
    EXPECT_EQ(storage.values[6 + j], weights[j]);
    EXPECT_EQ(storage.values[9 + j], accumulators[j]);
    EXPECT_EQ(storage.values[j], 0) << "a row that was not listed changed";
    EXPECT_EQ(storage.values[12 + j], 0) << "a row that was not listed changed";
  }
}

TYPED_TEST(UpdateOf, rmsprop_steps_are_the_hand_computed_ones) {
  OneRow<TypeParam> row({.type = "rmsprop", .lr = 0.5, .l2 = 0.25, .smoothing = 0.75, .epsilon = 2}, {0});
  EXPECT_EQ(row.optimizer->state_per_weight(), 1u);
  EXPECT_EQ(row.after(4), -0.5);       // mean square 16 / 4, a step of 4 / (2 + 2)
  EXPECT_EQ(row.after(2.125), -0.75);  // g = 2.125 - .125, mean square 3 + 4 / 4, a step of 2 / (2 + 2)
  EXPECT_EQ(row.after(-1.8125), -0.5);
}

TYPED_TEST(UpdateOf, adam_steps_are_the_hand_computed_ones) {
  OneRow<TypeParam> row({.type = "adam", .lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1}, {0});
  EXPECT_EQ(row.optimizer->state_per_weight(), 2u);
  // The corrected means of a first gradient are the gradient and its square: 3 / (3 + 1).
  EXPECT_EQ(row.after(3), -0.375);
  // Means .75 - .5 = .25 and 1.6875 + .25 = 1.9375, corrected by 1 - .25 and 1 - .5625.
  EXPECT_NEAR(row.after(-1), -0.375 - 0.5 * (0.25 / 0.75) / (std::sqrt(1.9375 / 0.4375) + 1), this->kNear);
}

TYPED_TEST(UpdateOf, adamw_takes_its_part_of_the_weight_beside_the_step) {
  OneRow<TypeParam> row({.type = "adamw", .lr = 0.5, .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1},
                        {1});
  // The steps are Adam's from above; before each, a quarter of the weight goes.
  EXPECT_EQ(row.after(3), 0.75 - 0.375);
  EXPECT_NEAR(row.after(-1), 0.375 * 0.75 - 0.5 * (0.25 / 0.75) / (std::sqrt(1.9375 / 0.4375) + 1), this->kNear);
}

TYPED_TEST(UpdateOf, ftrl_steps_are_the_hand_computed_ones) {
  OneRow<TypeParam> row({.type = "ftrl", .lr = 0.5, .l1 = 1, .l2 = 0.5, .beta = 1}, {0});
  EXPECT_EQ(row.optimizer->state_per_weight(), 2u);
  // n = 9, z = 3, w = -(3 - 1) / ((1 + 3) / .5 + .5)
  EXPECT_NEAR(row.after(3), -2 / 8.5, this->kNear);
  // n = 25, sigma = (5 - 3) / .5, z = 3 - 4 + 4 * 2 / 8.5, which is nearer to 0 than l1
  EXPECT_EQ(row.after(-4), 0);
  // n = 169, z = -1 + 8 / 8.5 + 12, w = -(z - 1) / ((1 + 13) / .5 + .5)
  EXPECT_NEAR(row.after(12), -(10 + 8 / 8.5) / 28.5, this->kNear);
}

TEST(Ftrl, is_finite_with_nothing_to_divide_by) {
  OneRow<double> row({.type = "ftrl", .lr = 0, .beta = 0}, {0});
  EXPECT_EQ(row.after(0), 0);
  EXPECT_EQ(row.after(3), 0);
}

// Without penalties FTRL is AdaGrad, whose rate is what a schedule gives at the time, and no other.
TEST(Ftrl, follows_a_rate_that_changes) {
  OneRow<double> ftrl({.type = "ftrl", .lr = 0.5, .beta = 1}, {0});
  double weight = 0, n = 0, rate = 1;
  for (const double gradient : {1.0, -0.5, 0.0, 3.0, 0.25, 0.0}) {
    n += gradient * gradient;
    weight -= 0.5 * rate * gradient / (std::sqrt(n) + 1);
    EXPECT_NEAR(ftrl.after(gradient, rate), weight, 1e-15);
    rate = rate > 0.1 ? rate / 4 : 0;
  }
}

TEST(Ftrl, a_weight_that_l1_holds_at_zero_stays_there_as_the_rate_decays) {
  OneRow<double> ftrl({.type = "ftrl", .lr = 0.5, .l1 = 1}, {0});
  EXPECT_EQ(ftrl.after(0.9), 0);
  EXPECT_EQ(ftrl.after(0, 0.01), 0);
  EXPECT_EQ(ftrl.after(0, 0), 0);
}

TYPED_TEST(UpdateOf, sgd_with_l1_steps_to_exact_zeros) {
  OneRow<TypeParam> row({.type = "sgd", .lr = 0.5, .l1 = 1}, {0});
  EXPECT_EQ(row.after(-4), 1.5);     // 2, less lr * l1
  EXPECT_EQ(row.after(1), 0.5);      // 1, less .5
  EXPECT_EQ(row.after(0.5), 0);      // .25 is within .5 of zero
  EXPECT_EQ(row.after(-1), 0);       // and so is .5
  EXPECT_EQ(row.after(1.5), -0.25);  // -.75, and .5 nearer to zero
  EXPECT_EQ(row.after(0, 0.25), -0.125) << "the threshold follows the rate";
}

TYPED_TEST(UpdateOf, adagrad_with_l1_uses_the_weights_own_rate) {
  OneRow<TypeParam> row({.type = "adagrad", .lr = 1, .l1 = 0.5, .epsilon = 0}, {0});
  EXPECT_EQ(row.after(4), -0.875);                  // -4 / 4, and .5 / 4 nearer to zero
  EXPECT_NEAR(row.after(-3), -0.175, this->kNear);  // -.875 + 3 / 5, and .5 / 5 nearer
  EXPECT_EQ(row.after(-0.5), 0);                    // -.175 + .5 / 5.025, which is within .5 / 5.025 of zero
}

TEST(L1, gives_exact_zeros_where_l2_does_not) {
  for (const char* type : {"sgd", "adagrad", "ftrl"}) {
    OneRow<double> l1({.type = type, .lr = 0.1, .l1 = 0.5}, {0, 0}), l2({.type = type, .lr = 0.1, .l2 = 0.5}, {0, 0});
    std::vector<double> with_l1, with_l2;
    for (int step = 0; step < 100; ++step) {
      // The first weight's gradient is small and changes sign; the second one's pulls in one direction.
      const std::vector<double> gradient = {step % 2 == 0 ? 0.1 : -0.1, -2};
      with_l1 = l1.after(gradient);
      with_l2 = l2.after(gradient);
    }
    EXPECT_EQ(with_l1[0], 0) << type;
    EXPECT_FALSE(std::signbit(with_l1[0])) << type;
    EXPECT_GT(with_l1[1], 0.1) << type;
    EXPECT_NE(with_l2[0], 0) << type;
  }
}

// torch.optim.Adagrad(lr=0.1, weight_decay=0.01, initial_accumulator_value=0, eps=1e-10) on w = 1, gradients 0.5, -0.2,
// 0.3: g1 = .51, w = 1 - .1 = .9; g2 = -.191, s = .2601 + .036481; g3 = .3 + .01 w.
TEST(Adagrad, follows_the_reference_definition) {
  OneRow<double> row({.type = "adagrad", .lr = 0.1, .l2 = 0.01}, {1});
  row.after(0.5);
  row.after(-0.2);
  const double second = 0.9 + 0.1 * 0.191 / std::sqrt(0.296581), third = 0.3 + 0.01 * second;
  EXPECT_NEAR(row.after(0.3), second - 0.1 * third / std::sqrt(0.296581 + third * third), 1e-10);
  EXPECT_NEAR(row.storage.values[1], 0.296581 + third * third, 1e-12);
}

}  // namespace
}  // namespace talweg
