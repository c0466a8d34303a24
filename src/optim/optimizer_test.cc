// Hand-computed sequences, to the last bit the arithmetic of each type gives.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "optim/registry.h"

namespace talweg {
namespace {

// Rows of `width` weights in chunks of two, so that every test crosses a chunk.
template <class Real>
struct Storage {
  static constexpr unsigned kShift = 1;
  Storage(const Optimizer<Real>& optimizer, size_t count, size_t width)
      : width(width), stride(width * (1 + optimizer.state_per_weight())), values(count * stride) {
    for (size_t r = 0; r < count; ++r) {
      for (size_t k = 0; k < optimizer.state_per_weight(); ++k) {
        for (size_t j = 0; j < width; ++j) values[r * stride + (k + 1) * width + j] = optimizer.initial_state(k);
      }
    }
    for (size_t r = 0; r < count; r += 1u << kShift) chunks.push_back(values.data() + r * stride);
  }
  Rows<Real> rows(std::span<const uint32_t> listed, const Real* gradients) const {
    return {chunks.data(), kShift, stride, width, width, listed, gradients};
  }
  size_t width, stride;
  std::vector<Real> values;
  std::vector<Real*> chunks;
};

template <class Real>
class OptimizerOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerOf, Reals);

TYPED_TEST(OptimizerOf, sgd_steps_are_the_hand_computed_ones) {
  auto sgd = OptimizerRegistry::standard().make<TypeParam>({.type = "sgd", .lr = 0.5, .l2 = 0.25});
  ASSERT_TRUE(sgd.ok());
  EXPECT_EQ((*sgd)->state_per_weight(), 0u);
  Storage<TypeParam> storage(**sgd, 3, 1);
  const uint32_t listed[] = {2, 0};
  const TypeParam gradients[] = {4, -8};
  (*sgd)->apply(storage.rows(listed, gradients));
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{4, 0, -2}));
  (*sgd)->apply(storage.rows(listed, gradients));  // -2 - .5 * (4 - .5) and 4 - .5 * (-8 + 1)
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{7.5, 0, -3.75}));
}

TYPED_TEST(OptimizerOf, adagrad_steps_are_the_hand_computed_ones) {
  using Real = TypeParam;
  auto adagrad = OptimizerRegistry::standard().make<Real>(
      {.type = "adagrad", .lr = 0.1, .l2 = 0.01, .epsilon = 1e-3, .initial_accumulator = 0.5});
  ASSERT_TRUE(adagrad.ok());
  EXPECT_EQ((*adagrad)->state_per_weight(), 1u);
  Storage<Real> storage(**adagrad, 3, 3);
  const uint32_t listed[] = {1};
  Real weights[3] = {}, accumulators[3] = {Real(0.5), Real(0.5), Real(0.5)};
  for (int step = 0; step < 5; ++step) {
    const Real gradients[3] = {Real(0.3) * step, Real(-1.7), Real(1e-6)};
    (*adagrad)->apply(storage.rows(listed, gradients));
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

// torch.optim.Adagrad(lr=0.1, weight_decay=0.01, initial_accumulator_value=0, eps=1e-10) on w = 1, gradients 0.5, -0.2,
// 0.3: g1 = .51, w = 1 - .1 = .9; g2 = -.191, s = .2601 + .036481; g3 = .3 + .01 w.
TEST(Adagrad, follows_the_reference_definition) {
  auto adagrad = OptimizerRegistry::standard().make<double>({.type = "adagrad", .lr = 0.1, .l2 = 0.01});
  ASSERT_TRUE(adagrad.ok());
  Storage<double> storage(**adagrad, 1, 1);
  storage.values[0] = 1;
  const uint32_t listed[] = {0};
  for (const double gradient : {0.5, -0.2, 0.3}) (*adagrad)->apply(storage.rows(listed, &gradient));
  const double second = 0.9 + 0.1 * 0.191 / std::sqrt(0.296581), third = 0.3 + 0.01 * second;
  EXPECT_NEAR(storage.values[0], second - 0.1 * third / std::sqrt(0.296581 + third * third), 1e-10);
  EXPECT_NEAR(storage.values[1], 0.296581 + third * third, 1e-12);
}

TYPED_TEST(OptimizerOf, many_rows_in_any_order_each_get_their_own_gradient) {
  auto sgd = OptimizerRegistry::standard().make<TypeParam>({.type = "sgd", .lr = 1});
  Storage<TypeParam> storage(**sgd, 100, 2);
  std::vector<uint32_t> listed;
  std::vector<TypeParam> gradients;
  for (uint32_t i = 0; i < 100; ++i) {
    listed.push_back((i * 37) % 100);
    gradients.push_back(-TypeParam(listed.back()));
    gradients.push_back(TypeParam(listed.back()));
  }
  (*sgd)->apply(storage.rows(listed, gradients.data()));
  for (uint32_t r = 0; r < 100; ++r) {
    EXPECT_EQ(storage.values[2 * r], r);
    EXPECT_EQ(storage.values[2 * r + 1], -TypeParam(r));
  }
}

TEST(OptimizerRegistry, an_unknown_name_is_answered_with_the_nearest_and_all) {
  auto made = OptimizerRegistry::standard().make<float>({.type = "adgrad"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kInvalid);
  EXPECT_EQ(made.status().message(),
            "there is no optimizer 'adgrad' (did you mean 'adagrad'?); there are: adagrad, sgd");
  EXPECT_EQ(OptimizerRegistry::standard().make<float>({.type = "lbfgs"}).status().message(),
            "there is no optimizer 'lbfgs'; there are: adagrad, sgd");
}

TEST(OptimizerRegistry, settings_that_are_no_numbers_are_refused) {
  const auto registry = OptimizerRegistry::standard();
  EXPECT_EQ(registry.make<float>({.lr = NAN}).status().message(),
            "optimizer sgd: lr must be a finite number of at least 0, not nan");
  EXPECT_FALSE(registry.make<float>({.lr = INFINITY}).ok());
  EXPECT_FALSE(registry.make<float>({.l2 = -1}).ok());
}

TEST(OptimizerRegistry, a_config_survives_its_text_form) {
  const OptimizerConfig config{
      .type = "adagrad", .lr = 0.1 + 0.2, .l2 = 1e-300, .epsilon = 0, .initial_accumulator = 1.0 / 3};
  auto read = config_from_text<OptimizerConfig>(config_to_text(config), "text");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(*read, config);
}

// Momentum, as a user would add it.
template <class Real>
struct MomentumUpdate {
  static constexpr size_t kState = 1;
  Real lr;
  explicit MomentumUpdate(const OptimizerConfig& config) : lr(static_cast<Real>(config.lr)) {}
  Real initial_state(size_t) const { return 0; }
  void operator()(Real& weight, Real gradient, std::array<Real, 1>& velocity) const {
    velocity[0] = Real(0.5) * velocity[0] + gradient;
    weight -= lr * velocity[0];
  }
};

TYPED_TEST(OptimizerOf, a_users_update_runs_beside_the_standard_ones) {
  auto registry = OptimizerRegistry::standard();
  registry.add_update<MomentumUpdate>("momentum");
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"adagrad", "momentum", "sgd"}));
  auto momentum = registry.make<TypeParam>({.type = "momentum", .lr = 1});
  ASSERT_TRUE(momentum.ok());
  Storage<TypeParam> storage(**momentum, 2, 1);
  const uint32_t listed[] = {1};
  const TypeParam gradient = 2;
  (*momentum)->apply(storage.rows(listed, &gradient));
  (*momentum)->apply(storage.rows(listed, &gradient));
  EXPECT_EQ(storage.values, (std::vector<TypeParam>{0, 0, -5, 3}));
}

}  // namespace
}  // namespace talweg
