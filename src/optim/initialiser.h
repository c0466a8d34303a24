// What a parameter is before anything was learned. The value of a row depends on the seed and the row's key alone, so
// it is the same on any number of shards and in whatever order rows are made.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/config.h"
#include "base/rng.h"

namespace talweg {

enum class InitType { kZeros, kConstant, kUniform, kNormal };
template <>
struct Choices<InitType> {
  static constexpr std::string_view names[] = {"zeros", "constant", "uniform", "normal"};
};

struct InitConfig {
  InitType type = InitType::kZeros;
  double scale = 0.01;
  uint64_t seed = 1;

  bool operator==(const InitConfig&) const = default;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type, "zeros, constant, uniform (from -scale to scale), normal (standard deviation scale)");
    f("scale", scale, "the constant, or how far from zero");
    f("seed", seed, "another seed gives other random values", at_least(0));
  }

  template <class Real>
  void fill(uint64_t key, std::span<Real> row) const {
    Rng rng(seed, key);
    for (Real& value : row) {
      switch (type) {
        case InitType::kZeros: value = 0; break;
        case InitType::kConstant: value = static_cast<Real>(scale); break;
        case InitType::kUniform: value = static_cast<Real>(scale * (2 * rng.uniform() - 1)); break;
        case InitType::kNormal: value = static_cast<Real>(scale * rng.normal()); break;
      }
    }
  }
};

}  // namespace talweg
