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
#include "optim/rowwise.h"

namespace talweg {

enum class L1 { kRefused, kHeeded };

class OptimizerRegistry {
 public:
  template <class Real>
  using Made = Result<std::unique_ptr<Optimizer<Real>>>;
  template <class Real>
  using Factory = std::function<Made<Real>(const OptimizerConfig&, BlockShape)>;

  // sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, ftrl, shampoo.
  static OptimizerRegistry standard();

  // Under a name that exists already, the new one takes its place. A config with l1 reaches only those that heed it.
  void add(std::string name, Factory<float> for_float, Factory<double> for_double, L1 l1 = L1::kRefused);

  // The same for the arithmetic of one weight (see WeightUpdate), and another one for when there is an l1, so that
  // those without do not pay for it.
  template <template <class> class Update, template <class> class UpdateWithL1 = Update>
  void add_update(std::string name) {
    add(std::move(name), &make_rowwise<float, Update<float>, UpdateWithL1<float>>,
        &make_rowwise<double, Update<double>, UpdateWithL1<double>>,
        kHeedsL1<UpdateWithL1<double>> ? L1::kHeeded : L1::kRefused);
  }

  // An optimizer for rows of weights or, where a shape is given, for the one matrix of a dense table.
  template <class Real>
  Made<Real> make(const OptimizerConfig& config, BlockShape shape = {}) const;

  std::vector<std::string> names() const;

 private:
  struct Entry {
    std::tuple<Factory<float>, Factory<double>> factories;
    L1 l1;
  };

  template <class Real, class Update, class UpdateWithL1>
  static Made<Real> make_rowwise(const OptimizerConfig& config, BlockShape) {
    std::unique_ptr<Optimizer<Real>> made;
    if (config.l1 > 0) {
      made = std::make_unique<RowwiseOptimizer<Real, UpdateWithL1>>(config);
    } else {
      made = std::make_unique<RowwiseOptimizer<Real, Update>>(config);
    }
    return made;
  }
  Status check(const OptimizerConfig& config, const Entry& entry) const;

  std::map<std::string, Entry> entries_;
};

}  // namespace talweg
