#include "optim/clip.h"

#include <gtest/gtest.h>

#include <vector>

#include "optim/testing.h"

namespace talweg {
namespace {

template <class Real>
std::vector<Real> clipped(const OptimizerConfig& config, std::vector<Real> row) {
  const RowClip<Real> clip = Clip(config).of_row(row.data(), row.size());
  for (Real& value : row) value = clip(value);
  return row;
}
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(Clip, is_off_unless_asked_for) {
  EXPECT_FALSE(Clip(OptimizerConfig{}).on());
  EXPECT_TRUE(Clip(OptimizerConfig{.clip_value = 1}).on());
  EXPECT_TRUE(Clip(OptimizerConfig{.clip_row_norm = 1}).on());
}

TEST(Clip, a_value_bounds_each_element_on_both_sides) {
  EXPECT_EQ(clipped<double>({.clip_value = 2}, {1, -1, 2, 3, -5, 1e300}), (Doubles{1, -1, 2, 2, -2, 2}));
}

TEST(Clip, a_norm_shortens_a_longer_row_and_leaves_a_shorter_one) {
  EXPECT_EQ(clipped<double>({.clip_row_norm = 2.5}, {3, -4}), (Doubles{1.5, -2}));
  EXPECT_EQ(clipped<double>({.clip_row_norm = 5}, {3, -4}), (Doubles{3, -4}));
  EXPECT_EQ(clipped<double>({.clip_row_norm = 1}, {0, 0}), (Doubles{0, 0}));
}

TEST(Clip, the_norm_is_of_the_whole_row) {
  for (const size_t width : {1u, 7u, 8u, 9u, 25u}) {
    EXPECT_EQ(clipped<double>({.clip_row_norm = 1}, Doubles(width, 3)),
              Doubles(width, 3 * (1 / std::sqrt(9.0 * static_cast<double>(width)))))
        << width;
  }
}

TEST(Clip, the_norm_comes_before_the_value) {
  EXPECT_EQ(clipped<double>({.clip_value = 1.75, .clip_row_norm = 2.5}, {3, -4}), (Doubles{1.5, -1.75}));
}

TEST(Clip, squares_of_large_floats_do_not_overflow) {
  EXPECT_EQ(clipped<float>({.clip_row_norm = 5}, {3e38f, 0}), (Floats{5, 0}));
}

TEST(Clip, what_is_not_a_number_is_not_hidden) {
  EXPECT_TRUE(std::isnan(clipped<double>({.clip_value = 1}, {NAN})[0]));
  EXPECT_TRUE(std::isnan(clipped<double>({.clip_row_norm = 1}, {NAN, 1})[0]));
}

TEST(Clip, optimizers_clip_each_row_by_itself) {
  const auto sgd = make_standard<double>({.type = "sgd", .lr = 1, .clip_row_norm = 2.5});
  Storage<double> storage(*sgd, 3, 2);
  const uint32_t listed[] = {2, 0};
  const double gradients[] = {3, 4, 1, 2};
  sgd->apply(storage.rows(listed, gradients));
  EXPECT_EQ(storage.values, (Doubles{-1, -2, 0, 0, -1.5, -2}));
}

TEST(Clip, the_penalty_is_not_clipped) {
  EXPECT_EQ(OneRow<double>({.lr = 1, .l2 = 0.5, .clip_value = 1}, {8}).after(4), 8 - 1 - 4);
}

TEST(Clip, every_optimizer_clips) {
  const auto registry = OptimizerRegistry::standard();
  for (const std::string& type : registry.names()) {
    OneRow<double> clipping({.type = type, .lr = 0.1, .clip_value = 0.5, .clip_row_norm = 2.5}, {0, 0}, {1, 2});
    OneRow<double> given({.type = type, .lr = 0.1}, {0, 0}, {1, 2});
    clipping.after({0.25, 0.25});
    given.after({0.25, 0.25});
    EXPECT_EQ(clipping.after({30, -40}), given.after({0.5, -0.5})) << type;
  }
}

}  // namespace
}  // namespace talweg
