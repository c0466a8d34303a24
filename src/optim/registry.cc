#include "optim/registry.h"

#include <fmt/ranges.h>

#include <cmath>

#include "optim/updates.h"

namespace talweg {
namespace {

Status check_numbers(const OptimizerConfig& config) {
  const std::pair<const char*, double> numbers[] = {{"lr", config.lr},
                                                    {"l2", config.l2},
                                                    {"epsilon", config.epsilon},
                                                    {"initial_accumulator", config.initial_accumulator}};
  for (const auto& [name, number] : numbers) {
    if (!std::isfinite(number) || number < 0) {
      return error(Code::kInvalid, "optimizer {}: {} must be a finite number of at least 0, not {}", config.type, name,
                   number);
    }
  }
  return {};
}

}  // namespace

OptimizerRegistry OptimizerRegistry::standard() {
  OptimizerRegistry registry;
  registry.add_update<SgdUpdate>("sgd");
  registry.add_update<AdagradUpdate>("adagrad");
  return registry;
}

void OptimizerRegistry::add(std::string name, Factory<float> for_float, Factory<double> for_double) {
  factories_.insert_or_assign(std::move(name), std::tuple(std::move(for_float), std::move(for_double)));
}

template <class Real>
Result<std::unique_ptr<Optimizer<Real>>> OptimizerRegistry::make(const OptimizerConfig& config) const {
  const auto found = factories_.find(config.type);
  if (found == factories_.end()) {
    const std::vector<std::string> known = names();
    const auto near = nearest(config.type, known);
    return error(Code::kInvalid, "there is no optimizer '{}'{}; there are: {}", config.type,
                 near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", "));
  }
  TRY(check_numbers(config));
  return std::get<Factory<Real>>(found->second)(config);
}
template Result<std::unique_ptr<Optimizer<float>>> OptimizerRegistry::make<float>(const OptimizerConfig&) const;
template Result<std::unique_ptr<Optimizer<double>>> OptimizerRegistry::make<double>(const OptimizerConfig&) const;

std::vector<std::string> OptimizerRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factories] : factories_) names.push_back(name);
  return names;
}

}  // namespace talweg
