#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace talweg {
namespace {

using Type = ScheduleType;

TEST(Schedule, constant_is_one_forever) {
  const ScheduleConfig constant;
  for (const int64_t step : {int64_t{0}, int64_t{1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(constant.rate_at(step), 1);
  }
}

TEST(Schedule, warmup_rises_from_zero_in_a_straight_line_whatever_follows) {
  for (const Type type :
       {Type::kConstant, Type::kLinear, Type::kCosine, Type::kStep, Type::kInverseSqrt, Type::kExponential}) {
    const ScheduleConfig schedule{.type = type, .warmup = 8, .decay_steps = 10};
    EXPECT_EQ(schedule.rate_at(0), 0);
    EXPECT_EQ(schedule.rate_at(1), 0.125);
    EXPECT_EQ(schedule.rate_at(7), 0.875);
    EXPECT_EQ(schedule.rate_at(8), 1);
  }
}

TEST(Schedule, linear_falls_to_the_floor_and_stays) {
  const ScheduleConfig linear{.type = Type::kLinear, .warmup = 2, .decay_steps = 4, .floor = 0.5};
  const double expected[] = {0, 0.5, 1, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5};
  for (int step = 0; step < 9; ++step) EXPECT_EQ(linear.rate_at(step), expected[step]) << step;
}

TEST(Schedule, cosine_falls_to_the_floor_and_stays) {
  const ScheduleConfig cosine{.type = Type::kCosine, .decay_steps = 4, .floor = 0.2};
  EXPECT_EQ(cosine.rate_at(0), 1);
  EXPECT_NEAR(cosine.rate_at(1), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_NEAR(cosine.rate_at(2), 0.6, 1e-15);
  EXPECT_NEAR(cosine.rate_at(3), 0.2 + 0.8 * (1 - std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_EQ(cosine.rate_at(4), 0.2);
  EXPECT_EQ(cosine.rate_at(5), 0.2);
}

TEST(Schedule, step_falls_at_every_multiple_of_its_steps) {
  const ScheduleConfig step{.type = Type::kStep, .warmup = 1, .decay_steps = 3, .decay_rate = 0.5, .floor = 0.2};
  const double expected[] = {0, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2};
  for (int s = 0; s < 12; ++s) EXPECT_EQ(step.rate_at(s), expected[s]) << s;
}

TEST(Schedule, exponential_falls_by_its_factor_in_its_steps_and_smoothly_between) {
  const ScheduleConfig exponential{.type = Type::kExponential, .decay_steps = 2, .decay_rate = 0.25, .floor = 0.05};
  const double expected[] = {1, 0.5, 0.25, 0.125, 0.0625, 0.05, 0.05};
  for (int s = 0; s < 7; ++s) EXPECT_EQ(exponential.rate_at(s), expected[s]) << s;
}

TEST(Schedule, inverse_sqrt_follows_its_time_scale_and_without_one_the_warmup) {
  const ScheduleConfig scaled{.type = Type::kInverseSqrt, .decay_steps = 3, .floor = 0.3};
  EXPECT_EQ(scaled.rate_at(0), 1);
  EXPECT_EQ(scaled.rate_at(9), 0.5);
  EXPECT_EQ(scaled.rate_at(3000), 0.3);
  const ScheduleConfig transformer{.type = Type::kInverseSqrt, .warmup = 100};
  EXPECT_EQ(transformer.rate_at(50), 0.5);
  EXPECT_EQ(transformer.rate_at(100), 1);
  EXPECT_EQ(transformer.rate_at(400), 0.5);
  EXPECT_EQ(ScheduleConfig{.type = Type::kInverseSqrt}.rate_at(3), 0.5);
}

TEST(Schedule, every_rate_is_from_zero_to_one_however_late_or_odd) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  for (const Type type :
       {Type::kConstant, Type::kLinear, Type::kCosine, Type::kStep, Type::kInverseSqrt, Type::kExponential}) {
    for (const int64_t decay_steps : {int64_t{0}, int64_t{1}, int64_t{7}, kLast}) {
      for (const int64_t warmup : {int64_t{0}, int64_t{1}, kLast}) {
        for (const double part : {0.0, 1e-300, 0.1, 1.0}) {
          const ScheduleConfig schedule{type, warmup, decay_steps, part, part};
          for (const int64_t step : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{1000}, kLast - 1, kLast}) {
            const double rate = schedule.rate_at(step);
            EXPECT_TRUE(rate >= 0 && rate <= 1) << config_to_text(schedule) << " at " << step << ": " << rate;
          }
        }
      }
    }
  }
}

TEST(Schedule, what_decays_in_steps_must_say_in_how_many) {
  EXPECT_TRUE(ScheduleConfig{}.check().ok());
  EXPECT_TRUE((ScheduleConfig{.type = Type::kInverseSqrt, .warmup = 5}).check().ok());
  EXPECT_TRUE((ScheduleConfig{.type = Type::kCosine, .decay_steps = 1}).check().ok());
  EXPECT_EQ(ScheduleConfig{.type = Type::kCosine}.check().message(), "schedule cosine needs decay_steps of at least 1");
  EXPECT_FALSE(ScheduleConfig{.type = Type::kLinear}.check().ok());
  EXPECT_FALSE(ScheduleConfig{.type = Type::kStep}.check().ok());
  EXPECT_FALSE(ScheduleConfig{.type = Type::kExponential}.check().ok());
}

}  // namespace
}  // namespace talweg
