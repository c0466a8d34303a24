// Vector kernels over spans of float and double. A kernel gives the same bits on every machine, whatever vector unit
// executes it: element-wise kernels round each step on its own, and reductions add in one fixed order (below), written
// once with vectors of a fixed lane count and compiled for several instruction sets. Each has a plain twin in
// talweg::scalar that says what the result is.
//
// The order of a sum of n terms: term i is added to lane i mod kSumLanes, each lane from zero and in rising i; then the
// upper half of the lanes is added to the lower half, until one is left.
//
// Pure functions; spans that are read together must be of one length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace talweg {

// Four 64-byte vectors: enough independent additions in flight to keep up with the first-level cache.
template <class T>
constexpr size_t kSumLanes = 256 / sizeof(T);
// Terms read through an index arrive one by one, so fewer lanes serve.
constexpr size_t kGatherLanes = 8;

// dst += a
void add(std::span<float> dst, std::span<const float> a);
void add(std::span<double> dst, std::span<const double> a);
// y += a * x
void axpy(float a, std::span<const float> x, std::span<float> y);
void axpy(double a, std::span<const double> x, std::span<double> y);
// x *= a
void scale(std::span<float> x, float a);
void scale(std::span<double> x, double a);

float sum(std::span<const float> x);
double sum(std::span<const double> x);
float dot(std::span<const float> x, std::span<const float> y);
double dot(std::span<const double> x, std::span<const double> y);

// Whether every value is finite: neither infinite nor not a number.
bool all_finite(std::span<const float> x);
bool all_finite(std::span<const double> x);

// out = 1 / (1 + exp(-in)). The only kernel whose last bit may differ between machines: exp is the C library's.
void sigmoid(std::span<const float> in, std::span<float> out);
void sigmoid(std::span<const double> in, std::span<double> out);

// The sum of table[index[i]] * values[i]; no values means all ones. Summed in kGatherLanes lanes.
float gather_dot(const float* table, std::span<const uint32_t> index, std::span<const float> values);
double gather_dot(const double* table, std::span<const uint32_t> index, std::span<const float> values);
// table[index[i]] += a * values[i], in rising i, so an index may repeat; no values means all ones.
void scatter_axpy(float* table, std::span<const uint32_t> index, std::span<const float> values, float a);
void scatter_axpy(double* table, std::span<const uint32_t> index, std::span<const float> values, double a);

namespace scalar {

void add(std::span<float> dst, std::span<const float> a);
void add(std::span<double> dst, std::span<const double> a);
void axpy(float a, std::span<const float> x, std::span<float> y);
void axpy(double a, std::span<const double> x, std::span<double> y);
void scale(std::span<float> x, float a);
void scale(std::span<double> x, double a);
float sum(std::span<const float> x);
double sum(std::span<const double> x);
float dot(std::span<const float> x, std::span<const float> y);
double dot(std::span<const double> x, std::span<const double> y);
bool all_finite(std::span<const float> x);
bool all_finite(std::span<const double> x);
float gather_dot(const float* table, std::span<const uint32_t> index, std::span<const float> values);
double gather_dot(const double* table, std::span<const uint32_t> index, std::span<const float> values);
void scatter_axpy(float* table, std::span<const uint32_t> index, std::span<const float> values, float a);
void scatter_axpy(double* table, std::span<const uint32_t> index, std::span<const float> values, double a);

}  // namespace scalar
}  // namespace talweg
