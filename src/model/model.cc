#include "model/model.h"

#include <fmt/ranges.h>

#include "model/logistic.h"

namespace talweg {

template <class Real>
Result<std::unique_ptr<Model<Real>>> make_model(const ModelConfig& config) {
  if (config.type == "logistic") return std::unique_ptr<Model<Real>>(std::make_unique<Logistic<Real>>(config.features));
  const std::vector<std::string> known = {"logistic"};
  const auto near = nearest(config.type, known);
  return error(Code::kInvalid, "model.type: there is no model '{}'{}; there are: {}", config.type,
               near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", "));
}

template Result<std::unique_ptr<Model<float>>> make_model(const ModelConfig&);
template Result<std::unique_ptr<Model<double>>> make_model(const ModelConfig&);

}  // namespace talweg
