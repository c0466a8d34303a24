// The optimizers a job file may name. A registry is a value: who makes a server decides what its users may ask for, and
// adding to it needs no change anywhere else.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "optim/optimizer.h"

namespace talweg {

class OptimizerRegistry {
 public:
  template <class Real>
  using Factory = std::function<std::unique_ptr<Optimizer<Real>>(const OptimizerConfig&)>;

  // sgd and adagrad.
  static OptimizerRegistry standard();

  // Under a name that exists already, the new one takes its place.
  void add(std::string name, Factory<float> for_float, Factory<double> for_double);

  // The same for the arithmetic of one weight: Update<Real> is made from the config.
  template <template <class> class Update>
  void add_update(std::string name) {
    add(std::move(name), &make_rowwise<float, Update<float>>, &make_rowwise<double, Update<double>>);
  }

  template <class Real>
  Result<std::unique_ptr<Optimizer<Real>>> make(const OptimizerConfig& config) const;

  std::vector<std::string> names() const;

 private:
  template <class Real, class Update>
  static std::unique_ptr<Optimizer<Real>> make_rowwise(const OptimizerConfig& config) {
    return std::make_unique<RowwiseOptimizer<Real, Update>>(Update(config));
  }

  std::map<std::string, std::tuple<Factory<float>, Factory<double>>> factories_;
};

}  // namespace talweg
