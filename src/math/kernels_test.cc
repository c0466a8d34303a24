// Every kernel against its plain twin, bit for bit: all short sizes, a long one, both types, spans off alignment.
#include "math/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace talweg {
namespace {

template <class T>
class Kernels : public testing::Test {
 protected:
  // Values of both signs over six powers of ten: in another order their sums differ in the last bits.
  std::vector<T> draw(size_t n) {
    std::vector<T> out(n);
    for (T& x : out) x = static_cast<T>(rng_.normal() * std::pow(10.0, 6 * rng_.uniform() - 3));
    return out;
  }
  std::vector<uint32_t> draw_index(size_t n, uint64_t below) {
    std::vector<uint32_t> out(n);
    for (uint32_t& i : out) i = static_cast<uint32_t>(rng_.below(below));
    return out;
  }
  // Calls `body(n, offset)` for every size and a few starts that no vector is aligned to.
  template <class Body>
  static void for_sizes(Body body) {
    for (size_t n = 0; n <= 200; ++n) body(n, n % 7);
    body(100'003, 1);
    body(65'536, 3);
  }
  static bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
  }
  static bool same_bits(T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

  Rng rng_{42};
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Kernels, Types);

TYPED_TEST(Kernels, all_finite_finds_what_its_twin_finds) {
  constexpr TypeParam kInfinity = std::numeric_limits<TypeParam>::infinity();
  this->for_sizes([&](size_t n, size_t offset) {
    auto values = this->draw(n + offset);
    const std::span<const TypeParam> span = std::span<const TypeParam>(values).subspan(offset);
    ASSERT_TRUE(all_finite(span));
    if (n == 0) return;
    auto& one = values[offset + this->rng_.below(n)];
    for (const TypeParam bad : {kInfinity, -kInfinity, std::numeric_limits<TypeParam>::quiet_NaN(), -TypeParam(NAN)}) {
      one = bad;
      ASSERT_FALSE(all_finite(span));
      ASSERT_FALSE(scalar::all_finite(span));
    }
    for (const TypeParam good : {std::numeric_limits<TypeParam>::max(), std::numeric_limits<TypeParam>::denorm_min()}) {
      one = good;
      ASSERT_TRUE(all_finite(span));
      ASSERT_TRUE(scalar::all_finite(span));
    }
  });
}

TYPED_TEST(Kernels, add_equals_its_twin_bit_for_bit) {
  this->for_sizes([&](size_t n, size_t offset) {
    auto mine = this->draw(n + offset), twin = mine;
    const auto a = this->draw(n + offset);
    add(std::span(mine).subspan(offset), std::span(a).subspan(offset));
    scalar::add(std::span(twin).subspan(offset), std::span(a).subspan(offset));
    ASSERT_TRUE(this->same_bits(mine, twin)) << n;
  });
}

TYPED_TEST(Kernels, axpy_equals_its_twin_bit_for_bit) {
  this->for_sizes([&](size_t n, size_t offset) {
    auto mine = this->draw(n + offset), twin = mine;
    const auto x = this->draw(n + offset);
    const TypeParam a = static_cast<TypeParam>(this->rng_.normal());
    axpy(a, std::span(x).subspan(offset), std::span(mine).subspan(offset));
    scalar::axpy(a, std::span(x).subspan(offset), std::span(twin).subspan(offset));
    ASSERT_TRUE(this->same_bits(mine, twin)) << n;
  });
}

TYPED_TEST(Kernels, scale_equals_its_twin_bit_for_bit) {
  this->for_sizes([&](size_t n, size_t offset) {
    auto mine = this->draw(n + offset), twin = mine;
    const TypeParam a = static_cast<TypeParam>(this->rng_.normal());
    scale(std::span(mine).subspan(offset), a);
    scalar::scale(std::span(twin).subspan(offset), a);
    ASSERT_TRUE(this->same_bits(mine, twin)) << n;
  });
}

TYPED_TEST(Kernels, sum_adds_in_the_fixed_order) {
  this->for_sizes([&](size_t n, size_t offset) {
    const auto x = this->draw(n + offset);
    const auto part = std::span<const TypeParam>(x).subspan(offset);
    ASSERT_TRUE(this->same_bits(sum(part), scalar::sum(part))) << n;
  });
}

TYPED_TEST(Kernels, dot_adds_in_the_fixed_order) {
  this->for_sizes([&](size_t n, size_t offset) {
    const auto x = this->draw(n + offset), y = this->draw(n + offset);
    const auto part_x = std::span<const TypeParam>(x).subspan(offset);
    const auto part_y = std::span<const TypeParam>(y).subspan(offset);
    ASSERT_TRUE(this->same_bits(dot(part_x, part_y), scalar::dot(part_x, part_y))) << n;
  });
}

TYPED_TEST(Kernels, a_sum_of_minus_zeros_is_the_same_in_kernel_and_twin) {
  for (size_t n : {1, 15, 16, 17, 64, 65}) {
    const std::vector<TypeParam> zeros(n, TypeParam{-0.0});
    const std::span<const TypeParam> x(zeros);
    EXPECT_TRUE(this->same_bits(sum(x), scalar::sum(x))) << n;
  }
}

TYPED_TEST(Kernels, gather_dot_adds_in_the_fixed_order) {
  const auto table = this->draw(1000);
  this->for_sizes([&](size_t n, size_t offset) {
    const auto index = this->draw_index(n + offset, table.size());
    std::vector<float> values(n + offset);
    for (float& v : values) v = static_cast<float>(this->rng_.normal());
    const auto part = std::span<const uint32_t>(index).subspan(offset);
    const auto weights = std::span<const float>(values).subspan(offset);
    ASSERT_TRUE(
        this->same_bits(gather_dot(table.data(), part, weights), scalar::gather_dot(table.data(), part, weights)));
    ASSERT_TRUE(this->same_bits(gather_dot(table.data(), part, {}), scalar::gather_dot(table.data(), part, {}))) << n;
  });
}

TYPED_TEST(Kernels, scatter_axpy_equals_its_twin_where_indices_repeat) {
  this->for_sizes([&](size_t n, size_t offset) {
    auto mine = this->draw(50), twin = mine;
    const auto index = this->draw_index(n + offset, mine.size());
    std::vector<float> values(n + offset);
    for (float& v : values) v = static_cast<float>(this->rng_.normal());
    const auto part = std::span<const uint32_t>(index).subspan(offset);
    const auto weights = std::span<const float>(values).subspan(offset);
    const TypeParam a = static_cast<TypeParam>(this->rng_.normal());
    scatter_axpy(mine.data(), part, weights, a);
    scalar::scatter_axpy(twin.data(), part, weights, a);
    scatter_axpy(mine.data(), part, {}, a);
    scalar::scatter_axpy(twin.data(), part, {}, a);
    ASSERT_TRUE(this->same_bits(mine, twin)) << n;
  });
}

TYPED_TEST(Kernels, sigmoid_is_one_half_at_zero_and_saturates_without_nan) {
  const std::vector<TypeParam> in = {0, 1, -1, 1000, -1000};
  std::vector<TypeParam> out(in.size());
  sigmoid(std::span(in), std::span(out));
  EXPECT_EQ(out[0], TypeParam{0.5});
  EXPECT_NEAR(out[1], 0.7310585786300049, 1e-6);
  EXPECT_NEAR(out[1] + out[2], 1, 1e-6);
  EXPECT_EQ(out[3], TypeParam{1});
  EXPECT_EQ(out[4], TypeParam{0});
}

}  // namespace
}  // namespace talweg
