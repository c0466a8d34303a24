// Model: what a worker computes, and nothing of how workers agree. A model says which tables its parameters live in; a
// batch's gradients have the shape of the parameters it was given. Real is float or double.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "data/batch.h"
#include "model/metrics.h"
#include "optim/initialiser.h"

namespace talweg {

struct TableShape {
  std::string name;
  bool sparse = true;
  uint32_t width = 1;    // sparse: values per key
  uint64_t size = 0;     // dense: values in all
  uint64_t columns = 0;  // dense: of a matrix, whose rows lie one after the other; 0: a vector
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

enum class LossChoice { kAuto, kLogistic, kSquared };
template <>
struct Choices<LossChoice> {
  static constexpr std::string_view names[] = {"auto", "logistic", "squared"};
};

// The most values a sparse table's row may have.
constexpr uint64_t kMostRowValues = 1 << 16;

struct ModelConfig {
  std::string type = "logistic";
  uint64_t features = uint64_t{1} << 20;
  uint32_t classes = 2;
  uint32_t factors = 8;
  uint32_t field_count = 39;
  double init_scale = 0.01;
  LossChoice loss = LossChoice::kAuto;

  template <class Fields>
  void fields(Fields& f) {
    f("type", type, "what is computed: linear, logistic, hinge, softmax, fm, ffm, mf, or one that was added");
    f("features", features, "keys in the data are below this", at_least(1));
    f("classes", classes, "softmax: labels are below this", between(2, kMostRowValues));
    f("factors", factors, "fm, ffm, mf: length of a factor vector", between(1, kMostRowValues));
    f("fields", field_count, "ffm: the keys are cut into this many equal fields", between(1, kMostRowValues));
    f("init_scale", init_scale, "fm, ffm, mf: standard deviation of the first factors", at_least(0));
    f("loss", loss, "fm, ffm, mf: auto (fm and ffm: logistic, mf: squared), logistic, squared");
  }
};

template <class Real>
class Model {
 public:
  virtual ~Model() = default;
  virtual const std::vector<TableShape>& layout() const = 0;
  virtual Objective objective() const = 0;
  // Whether this data can be learned from. The other functions may only see rows of data that passed.
  virtual Status check(const Dataset& data) const = 0;
  virtual StepCost cost(const Batch& batch) const = 0;
  // The loss of the batch, and the sum of its rows' gradients times `scale`.
  virtual StepResult step(const Batch& batch, const Parameters<Real>& parameters, Real scale,
                          Gradients<Real>* gradients) = 0;
  // Adds the batch's rows to metrics of this model's objective.
  virtual void evaluate(const Batch& batch, const Parameters<Real>& parameters, Metrics* metrics) const = 0;
};

// Makes `parameters` large enough for the batch; what is in it afterwards is unspecified.
template <class Real>
void shape_for(const Batch& batch, const std::vector<TableShape>& layout, Parameters<Real>* parameters) {
  parameters->tables.resize(layout.size());
  for (size_t i = 0; i < layout.size(); ++i) {
    parameters->tables[i].resize(layout[i].sparse ? batch.keys.size() * layout[i].width : layout[i].size);
  }
}

}  // namespace talweg
