#include "optim/rowwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "optim/testing.h"

namespace talweg {
namespace {

template <class Real>
class RowwiseOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowwiseOf, Reals);

TYPED_TEST(RowwiseOf, many_rows_in_any_order_each_get_their_own_gradient) {
  for (const double clip : {0.0, 1e6}) {
    const auto sgd = make_standard<TypeParam>({.type = "sgd", .lr = 1, .clip_value = clip});
    for (const size_t width : {1u, 2u, 37u}) {
      Storage<TypeParam> storage(*sgd, 100, width);
      std::vector<uint32_t> listed;
      std::vector<TypeParam> gradients;
      for (uint32_t i = 0; i < 100; ++i) {
        listed.push_back((i * 37) % 100);
        for (size_t j = 0; j < width; ++j) gradients.push_back(TypeParam(listed.back()) - TypeParam(j));
      }
      sgd->apply(storage.rows(listed, gradients.data()));
      for (size_t at = 0; at < storage.values.size(); ++at) {
        ASSERT_EQ(storage.values[at], TypeParam(at % width) - TypeParam(at / width));
      }
    }
  }
}

// The loop over a row runs on vectors with a rest; each weight must come out as if it were alone.
TYPED_TEST(RowwiseOf, every_optimizer_gives_a_weight_the_same_bits_in_any_row) {
  for (const std::string& type : OptimizerRegistry::standard().names()) {
    if (type == "shampoo") continue;
    const OptimizerConfig config{.type = type, .lr = 0.1, .l2 = 0.01};
    OneRow<TypeParam> wide(config, std::vector<TypeParam>(21, TypeParam(0.7))), narrow(config, {TypeParam(0.7)});
    for (int step = 0; step < 5; ++step) {
      const TypeParam gradient = TypeParam(0.3) * static_cast<TypeParam>(step) - TypeParam(0.5);
      const TypeParam alone = narrow.after(gradient);
      EXPECT_EQ(wide.after(std::vector<TypeParam>(21, gradient)), std::vector<TypeParam>(21, alone)) << type;
    }
  }
}

TYPED_TEST(RowwiseOf, a_rate_of_half_is_half_the_learning_rate) {
  for (const std::string& type : OptimizerRegistry::standard().names()) {
    OneRow<TypeParam> half({.type = type, .lr = 0.25}, {0, 0}, {1, 2}),
        given({.type = type, .lr = 0.125}, {0, 0}, {1, 2}), full({.type = type, .lr = 0.25}, {0, 0}, {1, 2});
    for (int step = 0; step < 3; ++step) {
      const std::vector<TypeParam> gradient = {TypeParam(1 + step), TypeParam(-0.5)};
      const std::vector<TypeParam> weights = half.after(gradient, 0.5), expected = given.after(gradient);
      for (int j = 0; j < 2; ++j) EXPECT_NEAR(weights[j], expected[j], 1e-6 * std::abs(expected[j])) << type;
      EXPECT_NE(weights, full.after(gradient)) << type;
    }
  }
}

TYPED_TEST(RowwiseOf, a_rate_of_zero_moves_nothing) {
  for (const std::string& type : OptimizerRegistry::standard().names()) {
    OneRow<TypeParam> row({.type = type, .lr = 0.25}, {0, 0}, {1, 2});
    EXPECT_EQ(row.after({3, -4}, 0), (std::vector<TypeParam>{0, 0})) << type;
    EXPECT_NE(row.after({3, -4}, 1), (std::vector<TypeParam>{0, 0})) << type;
  }
}

// At the first update the means of a gradient are corrected to the gradient itself; much later they are as they are.
TEST(Rowwise, the_number_of_the_update_drives_adams_corrections) {
  for (const char* type : {"adam", "adamw"}) {
    OneRow<double> early({.type = type, .lr = 0.5, .epsilon = 0}, {0}),
        late = OneRow<double>({.type = type, .lr = 0.5, .epsilon = 0}, {0});
    EXPECT_NEAR(early.after(2), -0.5, 1e-12) << type;
    late.number = 1'000'000'000'000;
    EXPECT_NEAR(late.after(2), -0.5 * 0.1 / std::sqrt(0.001), 1e-12) << type;
  }
}

// What a user would add: the sign of the gradient and a count of updates.
template <class Real>
struct SignUpdate {
  static constexpr size_t kState = 1;
  Real lr;
  explicit SignUpdate(const OptimizerConfig& config) : lr(static_cast<Real>(config.lr)) {}
  Real initial_state(size_t) const { return 10; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& count) const {
    weight -= std::copysign(lr, gradient);
    count[0] += 1;
  }
};

TYPED_TEST(RowwiseOf, a_users_update_runs_beside_the_standard_ones_and_follows_the_rate) {
  auto registry = OptimizerRegistry::standard();
  registry.add_update<SignUpdate>("sign");
  auto sign = registry.make<TypeParam>({.type = "sign", .lr = 1});
  ASSERT_TRUE(sign.ok());
  Storage<TypeParam> storage(**sign, 2, 1);
  const uint32_t listed[] = {1};
  const TypeParam gradient = 7;
  Rows<TypeParam> rows = storage.rows(listed, &gradient);
  (*sign)->apply(rows);
  rows.rate = 0.25;
  (*sign)->apply(rows);
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{0, 10, -1.25, 12}));
}

}  // namespace
}  // namespace talweg
