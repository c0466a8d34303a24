// How the learning rate changes while a job runs. A schedule is a function of the step alone, so every server knows the
// rate without asking, and gives the same bits on every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/config.h"
#include "base/status.h"

namespace talweg {

enum class ScheduleType { kConstant, kLinear, kCosine, kStep, kInverseSqrt, kExponential };
template <>
struct Choices<ScheduleType> {
  static constexpr std::string_view names[] = {"constant", "linear", "cosine", "step", "inverse_sqrt", "exponential"};
};

struct ScheduleConfig {
  ScheduleType type = ScheduleType::kConstant;
  int64_t warmup = 0;
  int64_t decay_steps = 0;
  double decay_rate = 0.1;
  double floor = 0;

  bool operator==(const ScheduleConfig&) const = default;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type, "constant, linear, cosine, step, inverse_sqrt or exponential");
    f("warmup", warmup, "steps in which the rate rises from 0 to lr in a straight line, before all else", at_least(0));
    f("decay_steps", decay_steps,
      "linear, cosine: steps until the floor; step, exponential: steps per factor of decay_rate; inverse_sqrt: its "
      "time "
      "scale, 0 for warmup",
      at_least(0));
    f("decay_rate", decay_rate, "step, exponential: the factor", between(0, 1));
    f("floor", floor, "the rate never decays below this part of lr", between(0, 1));
  }

  // Whether the type has what it needs.
  Status check() const;

  // What the learning rate is multiplied by at `step`, counted from 0: from 0 to 1 for every step of at least 0.
  //
  // With w = warmup, D = decay_steps, r = decay_rate, f = floor:
  //   in warmup     step / w, for step < w; below, t = step - w
  //   constant      1
  //   linear        f + (1 - f) * (1 - min(t / D, 1))
  //   cosine        f + (1 - f) * (1 + cos(pi * min(t / D, 1))) / 2    (Loshchilov, Hutter, ICLR 2017, one period)
  //   step          max(f, r ^ floor(t / D))
  //   exponential   max(f, r ^ (t / D))
  //   inverse_sqrt  max(f, sqrt(D / (D + t)))    (with D = w the sqrt(w / step) of Vaswani et al., 2017)
  double rate_at(int64_t step) const;

 private:
  double decayed(int64_t t) const;
};

}  // namespace talweg
