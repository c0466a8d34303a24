// The plain twins of the kernels: the definition of their results, one element at a time.
#include <cmath>
#include <vector>

#include "math/kernels.h"

namespace talweg::scalar {
namespace {

template <class T>
void add_each(std::span<T> dst, std::span<const T> a) {
  for (size_t i = 0; i < a.size(); ++i) dst[i] += a[i];
}

template <class T>
void axpy_each(T a, std::span<const T> x, std::span<T> y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}

template <class T>
void scale_each(std::span<T> x, T a) {
  for (T& element : x) element *= a;
}

template <class T, class Term>
T sum_in_lanes(size_t lane_count, size_t n, Term term) {
  std::vector<T> lanes(lane_count);
  for (size_t i = 0; i < n; ++i) lanes[i % lane_count] += term(i);
  for (size_t half = lane_count / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

template <class T>
bool each_finite(std::span<const T> x) {
  for (const T value : x) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

template <class T>
T sum_all(std::span<const T> x) {
  return sum_in_lanes<T>(kSumLanes<T>, x.size(), [&](size_t i) { return x[i]; });
}

template <class T>
T dot_all(std::span<const T> x, std::span<const T> y) {
  return sum_in_lanes<T>(kSumLanes<T>, x.size(), [&](size_t i) { return x[i] * y[i]; });
}

template <class T>
T gather_dot_all(const T* table, std::span<const uint32_t> index, std::span<const float> values) {
  return sum_in_lanes<T>(kGatherLanes, index.size(), [&](size_t i) {
    return values.empty() ? table[index[i]] : table[index[i]] * static_cast<T>(values[i]);
  });
}

template <class T>
void scatter_axpy_each(T* table, std::span<const uint32_t> index, std::span<const float> values, T a) {
  for (size_t i = 0; i < index.size(); ++i) table[index[i]] += values.empty() ? a : a * static_cast<T>(values[i]);
}

}  // namespace

void add(std::span<float> dst, std::span<const float> a) { add_each(dst, a); }
void add(std::span<double> dst, std::span<const double> a) { add_each(dst, a); }
void axpy(float a, std::span<const float> x, std::span<float> y) { axpy_each(a, x, y); }
void axpy(double a, std::span<const double> x, std::span<double> y) { axpy_each(a, x, y); }
void scale(std::span<float> x, float a) { scale_each(x, a); }
void scale(std::span<double> x, double a) { scale_each(x, a); }
float sum(std::span<const float> x) { return sum_all(x); }
double sum(std::span<const double> x) { return sum_all(x); }
float dot(std::span<const float> x, std::span<const float> y) { return dot_all(x, y); }
double dot(std::span<const double> x, std::span<const double> y) { return dot_all(x, y); }
bool all_finite(std::span<const float> x) { return each_finite(x); }
bool all_finite(std::span<const double> x) { return each_finite(x); }
float gather_dot(const float* table, std::span<const uint32_t> index, std::span<const float> values) {
  return gather_dot_all(table, index, values);
}
double gather_dot(const double* table, std::span<const uint32_t> index, std::span<const float> values) {
  return gather_dot_all(table, index, values);
}
void scatter_axpy(float* table, std::span<const uint32_t> index, std::span<const float> values, float a) {
  scatter_axpy_each(table, index, values, a);
}
void scatter_axpy(double* table, std::span<const uint32_t> index, std::span<const float> values, double a) {
  scatter_axpy_each(table, index, values, a);
}

}  // namespace talweg::scalar
