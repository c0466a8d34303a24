// The settings of an optimizer. One list serves all types: a setting that a type does not use is ignored, but it must
// be a number all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/config.h"
#include "optim/schedule.h"

namespace talweg {

struct OptimizerConfig {
  // The largest double below 1: what decays must decay.
  static constexpr double kBelowOne = 1 - 0x1p-53;

  std::string type = "sgd";
  double lr = 0.1;
  double l1 = 0;
  double l2 = 0;
  double weight_decay = 0.01;
  double momentum = 0.9;
  double smoothing = 0.99;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta = 1;
  std::optional<double> epsilon = {};
  double initial_accumulator = 0;
  int64_t precondition_every = 1;
  double clip_value = 0;
  double clip_row_norm = 0;
  ScheduleConfig schedule = {};

  bool operator==(const OptimizerConfig&) const = default;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type,
      "how a gradient changes the weights: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, ftrl, shampoo, or "
      "one "
      "that was added");
    f("lr", lr, "learning rate; ftrl: alpha", at_least(0));
    f("l1", l1, "sgd, adagrad, ftrl: weight of the L1 penalty, which makes weights exactly zero", at_least(0));
    f("l2", l2, "all: weight of the L2 penalty, applied to the rows a step touches", at_least(0));
    f("weight_decay", weight_decay, "adamw: the part of a weight, times the rate, that each update takes away",
      at_least(0));
    f("momentum", momentum, "momentum, nesterov: how much of the velocity stays", between(0, kBelowOne));
    f("smoothing", smoothing, "rmsprop: how much of the mean square stays", between(0, kBelowOne));
    f("beta1", beta1, "adam, adamw: how much of the mean stays", between(0, kBelowOne));
    f("beta2", beta2, "adam, adamw: how much of the mean square stays", between(0, kBelowOne));
    f("beta", beta, "ftrl: added to the root of the accumulator", at_least(0));
    f("epsilon", epsilon,
      "added to what is divided by: adagrad (1e-10), rmsprop, adam, adamw (1e-8); shampoo (1e-6): where the diagonals "
      "start",
      at_least(0));
    f("initial_accumulator", initial_accumulator, "adagrad, ftrl: where the accumulator starts", at_least(0));
    f("precondition_every", precondition_every, "shampoo: updates between two roots of its matrices", at_least(1));
    f("clip_value", clip_value, "all: no element of a gradient is larger than this; 0: off", at_least(0));
    f("clip_row_norm", clip_row_norm,
      "all: no row of a gradient (dense: no run) is longer than this, before clip_value; 0: off", at_least(0));
    f("schedule", schedule, "how the learning rate changes with the step");
  }
};

}  // namespace talweg
