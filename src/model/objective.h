// What a model predicts, and so which measures of its predictions mean something.
#pragma once

#include <cstdint>

namespace talweg {

// The numbers travel in a worker's metrics: append only.
enum class Objective : uint8_t {
  kBinary = 0,      // a logit: ranked, and a probability of being positive
  kMargin = 1,      // a score whose sign decides: ranked, but no probability
  kRegression = 2,  // a number
  kClasses = 3,     // a probability for each of several classes
};
constexpr uint8_t kObjectives = 4;

}  // namespace talweg
