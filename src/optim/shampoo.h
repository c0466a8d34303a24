// Shampoo (Gupta, Koren, Singer, ICML 2018) for a matrix W of rows x columns with gradient G:
//
//   L += G G^T,  R += G^T G,  W -= lr * L^(-1/4) G R^(-1/4),  where L and R start as epsilon * I.
//
// The state lies where all state does, behind the weights, so that it is kept and moved as theirs is: L and R without
// the epsilon and, where precondition_every is more than 1, the two roots in use. Sums and roots are taken in double;
// the same build gives the same bits on every machine.
#pragma once

#include <memory>

#include "base/status.h"
#include "optim/optimizer.h"

namespace talweg {

// The roots take a time of the order of the longer side's cube.
constexpr uint64_t kMaxShampooSide = 2048;

template <class Real>
Result<std::unique_ptr<Optimizer<Real>>> make_shampoo(const OptimizerConfig& config, BlockShape shape);

}  // namespace talweg
