// Model: what a worker computes, and nothing of how workers agree. A model says which tables its parameters live in; a
// batch's gradients have the shape of the parameters it was given. Real is float or double.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "data/batch.h"
#include "optim/initialiser.h"

namespace talweg {

struct TableShape {
  std::string name;
  bool sparse = true;
  uint32_t width = 1;  // sparse: values per key
  uint64_t size = 0;   // dense: values in all
  InitConfig init = {};
};

// One array per table of the layout. Sparse: `width` values for each of the batch's keys, in their order. Dense: all.
template <class Real>
struct Parameters {
  std::vector<std::vector<Real>> tables;
};
template <class Real>
using Gradients = Parameters<Real>;

struct StepResult {
  double loss_sum = 0;
  uint64_t rows = 0;
};

struct StepCost {
  double flops = 0;
  double bytes = 0;
};

struct ModelConfig {
  std::string type = "logistic";
  uint64_t features = uint64_t{1} << 20;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type, "what is computed: logistic");
    f("features", features, "keys in the data are below this", at_least(1));
  }
};

template <class Real>
class Model {
 public:
  virtual ~Model() = default;
  virtual const std::vector<TableShape>& layout() const = 0;
  // Whether this data can be learned from.
  virtual Status check(const Dataset& data) const = 0;
  virtual StepCost cost(const Batch& batch) const = 0;
  // The loss of the batch, and the sum of its rows' gradients times `scale`.
  virtual StepResult step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                          Gradients<Real>* gradients) = 0;
  // A score for each row (higher: more likely positive), and the loss.
  virtual StepResult evaluate(const Batch& batch, const Parameters<Real>& parameters,
                              std::vector<float>* scores) const = 0;
};

// Makes `parameters` large enough for the batch; what is in it afterwards is unspecified.
template <class Real>
void shape_for(const Batch& batch, const std::vector<TableShape>& layout, Parameters<Real>* parameters) {
  parameters->tables.resize(layout.size());
  for (size_t i = 0; i < layout.size(); ++i) {
    parameters->tables[i].resize(layout[i].sparse ? batch.keys.size() * layout[i].width : layout[i].size);
  }
}

template <class Real>
Result<std::unique_ptr<Model<Real>>> make_model(const ModelConfig& config);

}  // namespace talweg
