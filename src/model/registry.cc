#include "model/registry.h"

#include <fmt/ranges.h>

#include <cmath>

#include "model/ffm.h"
#include "model/fm.h"
#include "model/linear.h"
#include "model/mf.h"
#include "model/softmax.h"

namespace talweg {
namespace {

template <class Real>
using Made = Result<std::unique_ptr<Model<Real>>>;

// A model that computes a score, under the loss that the config asks for.
template <class Real, template <class> class Score>
Made<Real> make_with_loss(const ModelConfig& config, LossChoice preferred) {
  const LossChoice loss = config.loss == LossChoice::kAuto ? preferred : config.loss;
  if (loss == LossChoice::kLogistic) {
    return std::unique_ptr<Model<Real>>(std::make_unique<ScoredModel<Real, LogisticLoss, Score>>(config));
  }
  return std::unique_ptr<Model<Real>>(std::make_unique<ScoredModel<Real, SquaredLoss, Score>>(config));
}

template <class Real>
Made<Real> make_fm(const ModelConfig& config) {
  return make_with_loss<Real, FmScore>(config, LossChoice::kLogistic);
}

template <class Real>
Made<Real> make_ffm(const ModelConfig& config) {
  TRY(FfmScore<Real>::check_config(config));
  return make_with_loss<Real, FfmScore>(config, LossChoice::kLogistic);
}

template <class Real>
Made<Real> make_mf(const ModelConfig& config) {
  return make_with_loss<Real, MfScore>(config, LossChoice::kSquared);
}

Status check_numbers(const ModelConfig& config) {
  if (std::isfinite(config.init_scale)) return {};
  return error(Code::kInvalid, "model.init_scale: must be a finite number, not {}", config.init_scale);
}

}  // namespace

ModelRegistry ModelRegistry::standard() {
  ModelRegistry registry;
  registry.add_model<LinearRegression>("linear");
  registry.add_model<Logistic>("logistic");
  registry.add_model<Hinge>("hinge");
  registry.add_model<Softmax>("softmax");
  registry.add("fm", &make_fm<float>, &make_fm<double>);
  registry.add("ffm", &make_ffm<float>, &make_ffm<double>);
  registry.add("mf", &make_mf<float>, &make_mf<double>);
  return registry;
}

void ModelRegistry::add(std::string name, Factory<float> for_float, Factory<double> for_double) {
  factories_.insert_or_assign(std::move(name), std::tuple(std::move(for_float), std::move(for_double)));
}

template <class Real>
Result<std::unique_ptr<Model<Real>>> ModelRegistry::make(const ModelConfig& config) const {
  const auto found = factories_.find(config.type);
  if (found == factories_.end()) {
    const std::vector<std::string> known = names();
    const auto near = nearest(config.type, known);
    return error(Code::kInvalid, "model.type: there is no model '{}'{}; there are: {}", config.type,
                 near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", "));
  }
  TRY(check_numbers(config));
  return std::get<Factory<Real>>(found->second)(config);
}
template Result<std::unique_ptr<Model<float>>> ModelRegistry::make<float>(const ModelConfig&) const;
template Result<std::unique_ptr<Model<double>>> ModelRegistry::make<double>(const ModelConfig&) const;

std::vector<std::string> ModelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factories] : factories_) names.push_back(name);
  return names;
}

}  // namespace talweg
