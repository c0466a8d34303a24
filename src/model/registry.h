// The models a job file may name. A registry is a value: who makes a worker decides what its users may ask for, and
// adding to it needs no change anywhere else.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "model/model.h"

namespace talweg {

class ModelRegistry {
 public:
  // Fails when the config makes no sense for this model; the message starts with the setting's name.
  template <class Real>
  using Factory = std::function<Result<std::unique_ptr<Model<Real>>>(const ModelConfig&)>;

  // linear, logistic, hinge, softmax, fm, ffm, mf.
  static ModelRegistry standard();

  // Under a name that exists already, the new one takes its place.
  void add(std::string name, Factory<float> for_float, Factory<double> for_double);

  // The same for a class template whose every config makes sense: M<Real> is made from the config.
  template <template <class> class M>
  void add_model(std::string name) {
    add(std::move(name), &make_one<float, M<float>>, &make_one<double, M<double>>);
  }

  template <class Real>
  Result<std::unique_ptr<Model<Real>>> make(const ModelConfig& config) const;

  std::vector<std::string> names() const;

 private:
  template <class Real, class M>
  static Result<std::unique_ptr<Model<Real>>> make_one(const ModelConfig& config) {
    return std::unique_ptr<Model<Real>>(std::make_unique<M>(config));
  }

  std::map<std::string, std::tuple<Factory<float>, Factory<double>>> factories_;
};

}  // namespace talweg
