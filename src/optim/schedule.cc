#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "optim/power.h"

namespace talweg {

Status ScheduleConfig::check() const {
  const bool can_do_without = type == ScheduleType::kConstant || type == ScheduleType::kInverseSqrt;
  if (decay_steps > 0 || can_do_without) return {};
  return error(Code::kInvalid, "schedule {} needs decay_steps of at least 1",
               Choices<ScheduleType>::names[static_cast<size_t>(type)]);
}

double ScheduleConfig::rate_at(int64_t step) const {
  step = std::max<int64_t>(step, 0);
  if (step < warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  return decayed(step - std::max<int64_t>(warmup, 0));
}

double ScheduleConfig::decayed(int64_t t) const {
  const int64_t unset = type == ScheduleType::kInverseSqrt ? warmup : 0;
  const int64_t whole_steps = std::max<int64_t>(decay_steps > 0 ? decay_steps : unset, 1);
  const double steps = static_cast<double>(whole_steps), periods = static_cast<double>(t) / steps;
  switch (type) {
    case ScheduleType::kConstant: return 1;
    case ScheduleType::kLinear: return floor + (1 - floor) * (1 - std::min(periods, 1.0));
    case ScheduleType::kCosine: return floor + (1 - floor) * ((1 + cosine_of_half_turns(std::min(periods, 1.0))) / 2);
    case ScheduleType::kStep: return std::max(floor, whole_power(decay_rate, static_cast<uint64_t>(t / whole_steps)));
    case ScheduleType::kInverseSqrt: return std::max(floor, std::sqrt(steps / (steps + static_cast<double>(t))));
    case ScheduleType::kExponential: return std::max(floor, power(decay_rate, periods));
  }
  return 1;
}

}  // namespace talweg
