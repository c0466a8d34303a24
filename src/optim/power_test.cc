#include "optim/power.h"

#include <gtest/gtest.h>

#include <cmath>

namespace talweg {
namespace {

TEST(Power, whole_powers_are_products) {
  EXPECT_EQ(whole_power(0.5, 0), 1);
  EXPECT_EQ(whole_power(0.5, 1), 0.5);
  EXPECT_EQ(whole_power(3, 5), 243);
  EXPECT_EQ(whole_power(0, 0), 1);
  EXPECT_EQ(whole_power(0, 3), 0);
  EXPECT_EQ(whole_power(1, ~uint64_t{0}), 1);
  EXPECT_EQ(whole_power(0.999, ~uint64_t{0}), 0);
  EXPECT_NEAR(whole_power(0.999, 1000), std::pow(0.999, 1000), 1e-13);
}

TEST(Power, fractions_are_roots) {
  EXPECT_EQ(power(0.25, 0.5), 0.5);
  EXPECT_EQ(power(0.25, 1.5), 0.125);
  EXPECT_EQ(power(0.0625, 0.75), 0.125);
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(0, 0.1), 0);
  EXPECT_EQ(power(1, 0x1p62 / 3), 1);
  EXPECT_EQ(power(0.5, 0x1p62), 0);
  for (const double base : {1e-300, 0.001, 0.3, 0.5, 0.97, 1.0}) {
    for (const double exponent : {1e-17, 1e-5, 0.1, 1 / 3.0, 0.999999, 1.0, 2.7, 40.123}) {
      const double reference = std::pow(base, exponent);
      EXPECT_NEAR(power(base, exponent), reference, 1e-13 * reference) << base << " ^ " << exponent;
    }
  }
}

TEST(Power, the_cosine_is_exact_at_both_ends_and_near_between) {
  EXPECT_EQ(cosine_of_half_turns(0), 1);
  EXPECT_EQ(cosine_of_half_turns(1), -1);
  for (int i = 0; i <= 1000; ++i) {
    EXPECT_NEAR(cosine_of_half_turns(i / 1000.0), std::cos(std::numbers::pi * i / 1000.0), 1e-15) << i;
  }
}

}  // namespace
}  // namespace talweg
