#include "data/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>

namespace talweg {
namespace {

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t kLargestExactPower = 22;
constexpr uint64_t kLargestExactMantissa = uint64_t{1} << 53;
constexpr int64_t kExponentCap = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Digits {
  uint64_t mantissa = 0;  // wraps past 19 digits
  int64_t count = 0;
};

const char* take_digits(const char* p, const char* end, Digits* digits) {
  for (; p < end && is_digit(*p); ++p, ++digits->count) {
    digits->mantissa = digits->mantissa * 10 + static_cast<uint64_t>(*p - '0');
  }
  return p;
}

// "e5" is an exponent; in "e", "ex" or "e+" the number ends before the e.
const char* take_exponent(const char* p, const char* end, int64_t* exponent) {
  if (p == end || (*p != 'e' && *p != 'E')) return p;
  const char* q = p + 1;
  const bool negative = q < end && *q == '-';
  if (q < end && (*q == '-' || *q == '+')) ++q;
  if (q == end || !is_digit(*q)) return p;
  int64_t value = 0;
  for (; q < end && is_digit(*q); ++q) value = std::min(value * 10 + (*q - '0'), kExponentCap);
  *exponent += negative ? -value : value;
  return q;
}

// Whether the digits of [p, end), shifted by `exponent` places, are below one.
bool is_below_one(const char* p, const char* end, int64_t exponent) {
  while (p < end && *p == '0') ++p;
  int64_t places = 0;
  for (; p < end && is_digit(*p); ++p) ++places;
  if (places == 0 && p < end && *p == '.') {
    for (++p; p < end && *p == '0'; ++p) --places;
  }
  return places + exponent <= 0;
}

double slow_value(const char* p, const char* end, int64_t exponent) {
  double value = 0;
  if (std::from_chars(p, end, value).ec != std::errc::result_out_of_range) return value;
  return is_below_one(p, end, exponent) ? 0.0 : std::numeric_limits<double>::infinity();
}

}  // namespace

const char* parse_decimal(const char* p, const char* end, float* out) {
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* const first = p;
  Digits digits;
  p = take_digits(p, end, &digits);
  int64_t fraction = 0;
  if (p < end && *p == '.') {
    const int64_t whole = digits.count;
    p = take_digits(p + 1, end, &digits);
    fraction = digits.count - whole;
  }
  if (digits.count == 0) return nullptr;
  int64_t written_exponent = 0;
  p = take_exponent(p, end, &written_exponent);

  // Both factors are exact doubles here, so the one rounding gives the nearest (Clinger 1990).
  const int64_t exponent = written_exponent - fraction;
  double value;
  if (digits.count <= 19 && digits.mantissa <= kLargestExactMantissa && std::abs(exponent) <= kLargestExactPower) {
    value = static_cast<double>(digits.mantissa);
    value = exponent < 0 ? value / kPowersOfTen[-exponent] : value * kPowersOfTen[exponent];
  } else {
    value = slow_value(first, p, written_exponent);
  }
  const float magnitude =
      value > std::numeric_limits<float>::max() ? std::numeric_limits<float>::infinity() : static_cast<float>(value);
  *out = negative ? -magnitude : magnitude;
  return p;
}

}  // namespace talweg
