// Bodies are templates inlined into one entry point per type, because only plain functions can be cloned per
// instruction set.
#include "math/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

// Clones are picked by the dynamic linker before a sanitizer's runtime is ready, so sanitized builds go without.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TALWEG_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TALWEG_CLONES
#endif
#define TALWEG_INLINE inline __attribute__((always_inline))

namespace talweg {
namespace {

constexpr size_t kVectorBytes = 64;
constexpr size_t kAccumulators = 4;

template <class T>
struct Lanes {
  static constexpr size_t kCount = kVectorBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  // The same lanes in memory, where a caller's span may start at any element.
  typedef T Stored __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};

template <class T>
TALWEG_INLINE const typename Lanes<T>::Stored& at(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::Stored*>(p);
}
template <class T>
TALWEG_INLINE typename Lanes<T>::Stored& at(T* p) {
  return *reinterpret_cast<typename Lanes<T>::Stored*>(p);
}

template <class T>
TALWEG_INLINE void add_body(std::span<T> dst, std::span<const T> a) {
  CHECK(dst.size() == a.size());
  size_t i = 0;
  for (; i + Lanes<T>::kCount <= a.size(); i += Lanes<T>::kCount) at(&dst[i]) += at(&a[i]);
  for (; i < a.size(); ++i) dst[i] += a[i];
}

template <class T>
TALWEG_INLINE void axpy_body(T a, std::span<const T> x, std::span<T> y) {
  CHECK(x.size() == y.size());
  size_t i = 0;
  for (; i + Lanes<T>::kCount <= x.size(); i += Lanes<T>::kCount) at(&y[i]) += a * at(&x[i]);
  for (; i < x.size(); ++i) y[i] += a * x[i];
}

template <class T>
TALWEG_INLINE void scale_body(std::span<T> x, T a) {
  size_t i = 0;
  for (; i + Lanes<T>::kCount <= x.size(); i += Lanes<T>::kCount) at(&x[i]) *= a;
  for (; i < x.size(); ++i) x[i] *= a;
}

template <class T, size_t kCount>
TALWEG_INLINE T fold(T (&lanes)[kCount]) {
  for (size_t half = kCount / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

// Sums the terms that `vector_term` gives a vector at a time. A lane is never -0 (it starts at +0), so adding the zeros
// that `partial_term` pads the last vector with changes nothing.
template <class T, class VectorTerm, class PartialTerm>
TALWEG_INLINE T reduce(size_t n, VectorTerm vector_term, PartialTerm partial_term) {
  constexpr size_t kLanes = Lanes<T>::kCount;
  typename Lanes<T>::Vector acc[kAccumulators] = {};
  size_t i = 0;
  for (; i + kAccumulators * kLanes <= n; i += kAccumulators * kLanes) {
    for (size_t v = 0; v < kAccumulators; ++v) vector_term(i + v * kLanes, acc[v]);
  }
  for (size_t v = 0; v < kAccumulators && i < n; ++v, i += kLanes) {
    if (i + kLanes <= n) {
      vector_term(i, acc[v]);
    } else {
      partial_term(i, n - i, acc[v]);
    }
  }
  acc[0] += acc[2];
  acc[1] += acc[3];
  acc[0] += acc[1];
  T lanes[kLanes];
  std::memcpy(lanes, &acc[0], sizeof(lanes));
  return fold(lanes);
}

template <class T>
TALWEG_INLINE T sum_body(std::span<const T> x) {
  return reduce<T>(
      x.size(), [&](size_t i, auto& acc) __attribute__((always_inline)) { acc += at(&x[i]); },
      [&](size_t i, size_t count, auto& acc) __attribute__((always_inline)) {
        T padded[Lanes<T>::kCount] = {};
        std::memcpy(padded, &x[i], count * sizeof(T));
        acc += at(padded);
      });
}

template <class T>
TALWEG_INLINE T dot_body(std::span<const T> x, std::span<const T> y) {
  CHECK(x.size() == y.size());
  return reduce<T>(
      x.size(), [&](size_t i, auto& acc) __attribute__((always_inline)) { acc += at(&x[i]) * at(&y[i]); },
      [&](size_t i, size_t count, auto& acc) __attribute__((always_inline)) {
        T padded_x[Lanes<T>::kCount] = {}, padded_y[Lanes<T>::kCount] = {};
        std::memcpy(padded_x, &x[i], count * sizeof(T));
        std::memcpy(padded_y, &y[i], count * sizeof(T));
        acc += at(padded_x) * at(padded_y);
      });
}

// An exponent of ones only is an infinity or no number. There is no way out of the loop, so that it runs on vectors.
template <class Bits, class T>
TALWEG_INLINE bool all_finite_body(std::span<const T> x, Bits exponent) {
  Bits found = 0;
  for (const T value : x) found |= (std::bit_cast<Bits>(value) & exponent) == exponent ? Bits{1} : Bits{0};
  return found == 0;
}

template <class T>
void sigmoid_body(std::span<const T> in, std::span<T> out) {
  CHECK(in.size() == out.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = T{1} / (T{1} + std::exp(-in[i]));
}

template <class T, class Term>
TALWEG_INLINE T gather_sum(size_t n, Term term) {
  T lanes[kGatherLanes] = {};
  size_t i = 0;
  for (; i + kGatherLanes <= n; i += kGatherLanes) {
    for (size_t j = 0; j < kGatherLanes; ++j) lanes[j] += term(i + j);
  }
  for (size_t j = 0; i < n; ++i, ++j) lanes[j] += term(i);
  return fold(lanes);
}

template <class T>
TALWEG_INLINE T gather_dot_body(const T* table, std::span<const uint32_t> index, std::span<const float> values) {
  CHECK(values.empty() || values.size() == index.size());
  if (values.empty()) return gather_sum<T>(index.size(), [&](size_t i) { return table[index[i]]; });
  return gather_sum<T>(index.size(), [&](size_t i) { return table[index[i]] * static_cast<T>(values[i]); });
}

template <class T>
void scatter_axpy_body(T* table, std::span<const uint32_t> index, std::span<const float> values, T a) {
  CHECK(values.empty() || values.size() == index.size());
  if (values.empty()) {
    for (const uint32_t at : index) table[at] += a;
    return;
  }
  for (size_t i = 0; i < index.size(); ++i) table[index[i]] += a * static_cast<T>(values[i]);
}

}  // namespace

TALWEG_CLONES void add(std::span<float> dst, std::span<const float> a) { add_body(dst, a); }
TALWEG_CLONES void add(std::span<double> dst, std::span<const double> a) { add_body(dst, a); }
TALWEG_CLONES void axpy(float a, std::span<const float> x, std::span<float> y) { axpy_body(a, x, y); }
TALWEG_CLONES void axpy(double a, std::span<const double> x, std::span<double> y) { axpy_body(a, x, y); }
TALWEG_CLONES void scale(std::span<float> x, float a) { scale_body(x, a); }
TALWEG_CLONES void scale(std::span<double> x, double a) { scale_body(x, a); }
TALWEG_CLONES bool all_finite(std::span<const float> x) { return all_finite_body<uint32_t>(x, 0x7f80'0000u); }
TALWEG_CLONES bool all_finite(std::span<const double> x) {
  return all_finite_body<uint64_t>(x, 0x7ff0'0000'0000'0000u);
}
TALWEG_CLONES float sum(std::span<const float> x) { return sum_body(x); }
TALWEG_CLONES double sum(std::span<const double> x) { return sum_body(x); }
TALWEG_CLONES float dot(std::span<const float> x, std::span<const float> y) { return dot_body(x, y); }
TALWEG_CLONES double dot(std::span<const double> x, std::span<const double> y) { return dot_body(x, y); }

void sigmoid(std::span<const float> in, std::span<float> out) { sigmoid_body(in, out); }
void sigmoid(std::span<const double> in, std::span<double> out) { sigmoid_body(in, out); }

TALWEG_CLONES float gather_dot(const float* table, std::span<const uint32_t> index, std::span<const float> values) {
  return gather_dot_body(table, index, values);
}
TALWEG_CLONES double gather_dot(const double* table, std::span<const uint32_t> index, std::span<const float> values) {
  return gather_dot_body(table, index, values);
}
void scatter_axpy(float* table, std::span<const uint32_t> index, std::span<const float> values, float a) {
  scatter_axpy_body(table, index, values, a);
}
void scatter_axpy(double* table, std::span<const uint32_t> index, std::span<const float> values, double a) {
  scatter_axpy_body(table, index, values, a);
}

}  // namespace talweg
