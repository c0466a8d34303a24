#include "data/decimal.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/rng.h"

namespace talweg {
namespace {

// The number that all of `text` is, or NaN.
float parse(const std::string& text) {
  float value = 0;
  const char* const end = text.data() + text.size();
  return parse_decimal(text.data(), end, &value) == end ? value : NAN;
}

TEST(Decimal, the_usual_notations_are_read) {
  EXPECT_EQ(parse("1"), 1.0f);
  EXPECT_EQ(parse("+1"), 1.0f);
  EXPECT_EQ(parse("-0.5"), -0.5f);
  EXPECT_EQ(parse(".25"), 0.25f);
  EXPECT_EQ(parse("3."), 3.0f);
  EXPECT_EQ(parse("1e3"), 1000.0f);
  EXPECT_EQ(parse("12.5E-1"), 1.25f);
  EXPECT_EQ(parse("00001"), 1.0f);
}

TEST(Decimal, what_is_not_a_number_is_refused) {
  for (const char* text :
       {"", "+", "-", ".", "-.", "e5", "x", "nan", "inf", "-inf", "0x10", "1e", "1e+", "1,5", "--1", "1 "}) {
    EXPECT_TRUE(std::isnan(parse(text))) << text;
  }
}

TEST(Decimal, a_number_ends_where_it_cannot_go_on) {
  const std::string text = "1.5e,";
  float value = 0;
  EXPECT_EQ(parse_decimal(text.data(), text.data() + text.size(), &value), text.data() + 3);
  EXPECT_EQ(value, 1.5f);
}

TEST(Decimal, too_large_is_infinite_and_too_small_is_zero) {
  EXPECT_EQ(parse("1e39"), INFINITY);
  EXPECT_EQ(parse("-1e400"), -INFINITY);
  EXPECT_EQ(parse("1e99999999999999999999"), INFINITY);
  EXPECT_EQ(parse("1e-400"), 0.0f);
  EXPECT_EQ(parse("1e-99999999999999999999"), 0.0f);
  EXPECT_EQ(parse("0." + std::string(500, '0') + "1"), 0.0f);
  EXPECT_EQ(parse(std::string(500, '9')), INFINITY);
  EXPECT_EQ(parse("0." + std::string(500, '0') + "1e501"), 1.0f);
  EXPECT_EQ(parse("0e99999"), 0.0f);
}

TEST(Decimal, long_and_short_numbers_are_the_nearest_double_rounded_to_float) {
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const double x = rng.normal() * std::pow(10.0, 60 * rng.uniform() - 30);
    char text[64];
    const auto end =
        std::to_chars(text, text + sizeof(text), x, std::chars_format::general, 1 + int(rng.below(20))).ptr;
    const std::string digits(text, end);
    ASSERT_EQ(parse(digits), static_cast<float>(std::strtod(digits.c_str(), nullptr))) << digits;
  }
}

}  // namespace
}  // namespace talweg
