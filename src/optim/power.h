// Powers and a cosine made of additions, multiplications and square roots only. Those round alike on every machine; the
// C library's pow and cos need not, and a learning rate that differs in its last bit is a model that differs.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace talweg {

inline double whole_power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

// base from 0 to 1, exponent from 0 to 2^63. The digits of the fraction choose among the base's root, its root's
// root...
inline double power(double base, double exponent) {
  const double whole = std::floor(exponent);
  double result = whole_power(base, static_cast<uint64_t>(whole));
  double root = base;
  for (double fraction = exponent - whole; fraction > 0; fraction -= std::floor(fraction)) {
    fraction *= 2;
    root = std::sqrt(root);
    if (fraction >= 1) result *= root;
  }
  return result;
}

// cos(pi * x) for x from 0 to 1; exact at both ends.
inline double cosine_of_half_turns(double x) {
  if (x > 0.5) return -cosine_of_half_turns(1 - x);
  const double angle = std::numbers::pi * x;
  // The rest of the series, from the 26th power on, is below the last bit.
  double series = 1;
  for (int k = 12; k >= 1; --k) series = 1 - angle * angle * series / ((2 * k - 1) * (2 * k));
  return series;
}

}  // namespace talweg
