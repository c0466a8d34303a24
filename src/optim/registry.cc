#include "optim/registry.h"

#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>

#include "optim/shampoo.h"
#include "optim/updates.h"

namespace talweg {
namespace {

// A config need not have come from a file, so what its fields allow is checked here too.
struct NumberCheck {
  std::string prefix;
  Status status = {};

  template <class T>
  void operator()(std::string_view key, T& field, std::string_view, Bounds bounds = {}) {
    if constexpr (HasFields<T>) {
      NumberCheck nested{fmt::format("{}{}.", prefix, key)};
      field.fields(nested);
      if (status.ok()) status = nested.status;
    } else if constexpr (IsOptional<T>) {
      if (field.has_value()) (*this)(key, *field, "", bounds);
    } else if constexpr (std::is_arithmetic_v<T>) {
      const double number = static_cast<double>(field);
      if (!status.ok() || (std::isfinite(number) && number >= bounds.least && number <= bounds.most)) return;
      const std::string most = std::isfinite(bounds.most) ? fmt::format(" and at most {}", bounds.most) : "";
      status = error(Code::kInvalid, "{}{} must be a finite number of at least {}{}, not {}", prefix, key, bounds.least,
                     most, number);
    }
  }
};

Status check_numbers(OptimizerConfig config) {
  NumberCheck check{fmt::format("optimizer {}: ", config.type)};
  config.fields(check);
  return check.status;
}

}  // namespace

OptimizerRegistry OptimizerRegistry::standard() {
  OptimizerRegistry registry;
  registry.add_update<SgdUpdate, ProximalSgdUpdate>("sgd");
  registry.add_update<MomentumUpdate>("momentum");
  registry.add_update<NesterovUpdate>("nesterov");
  registry.add_update<AdagradUpdate, ProximalAdagradUpdate>("adagrad");
  registry.add_update<RmspropUpdate>("rmsprop");
  registry.add_update<AdamUpdate>("adam");
  registry.add_update<AdamwUpdate>("adamw");
  registry.add_update<FtrlUpdate>("ftrl");
  registry.add("shampoo", &make_shampoo<float>, &make_shampoo<double>);
  return registry;
}

void OptimizerRegistry::add(std::string name, Factory<float> for_float, Factory<double> for_double, L1 l1) {
  entries_.insert_or_assign(std::move(name), Entry{{std::move(for_float), std::move(for_double)}, l1});
}

Status OptimizerRegistry::check(const OptimizerConfig& config, const Entry& entry) const {
  TRY(check_numbers(config));
  TRY(config.schedule.check().within(fmt::format("optimizer {}", config.type)));
  if (config.l1 == 0 || entry.l1 == L1::kHeeded) return {};
  std::vector<std::string> heeding;
  for (const auto& [name, other] : entries_) {
    if (other.l1 == L1::kHeeded) heeding.push_back(name);
  }
  return error(Code::kInvalid, "optimizer {}: l1 must be 0 here; these have it: {}", config.type,
               fmt::join(heeding, ", "));
}

template <class Real>
OptimizerRegistry::Made<Real> OptimizerRegistry::make(const OptimizerConfig& config, BlockShape shape) const {
  const auto found = entries_.find(config.type);
  if (found == entries_.end()) {
    const std::vector<std::string> known = names();
    const auto near = nearest(config.type, known);
    return error(Code::kInvalid, "there is no optimizer '{}'{}; there are: {}", config.type,
                 near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", "));
  }
  TRY(check(config, found->second));
  return std::get<Factory<Real>>(found->second.factories)(config, shape);
}
template OptimizerRegistry::Made<float> OptimizerRegistry::make<float>(const OptimizerConfig&, BlockShape) const;
template OptimizerRegistry::Made<double> OptimizerRegistry::make<double>(const OptimizerConfig&, BlockShape) const;

std::vector<std::string> OptimizerRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

}  // namespace talweg
