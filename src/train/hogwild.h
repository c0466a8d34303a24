// Hogwild: threads of one process train one logistic model on weights that they share, without locks (Niu, Recht, Re,
// Wright, "Hogwild!: a lock-free approach to parallelizing stochastic gradient descent", NIPS 2011). Every row is an
// update by itself. Two threads that change one weight at the same time may lose one of the two changes; on sparse rows
// that is rare, and the paper shows why it does little harm.
//
// What most rows touch, the bias and the commonest keys, would wander from core to core with every row. Each thread has
// a replica of those, and adds its changes to the shared ones every some rows.
//
// With one thread the result is that of the serial loop, to the bit; with more it differs from run to run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "optim/config.h"

namespace talweg {

// Rows that lie beside each other are taken together, this many, and the blocks in a random order: row by row, each
// would cost a miss in the table of pages, and the misses would take most of the time.
constexpr uint64_t kHogwildBlock = 16;

struct HogwildOptions {
  uint64_t features = 0;  // keys are below this; their weights are one array
  uint32_t threads = 1;
  uint64_t epochs = 1;
  uint64_t seed = 1;          // of the order of the blocks, which is a new one in each epoch
  OptimizerConfig optimizer;  // sgd or adagrad, with lr, l2, epsilon and initial_accumulator; nothing else is heeded
};

struct HogwildResult {
  std::vector<float> weights;  // by key
  float bias = 0;
  uint64_t rows = 0;  // trained on, over all epochs
};

// Labels above zero are positive. A key that a row holds more than once changes by one of its entries.
Result<HogwildResult> train_hogwild(const Dataset& data, const HogwildOptions& options);

}  // namespace talweg
