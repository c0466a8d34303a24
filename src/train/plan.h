// Which rows are used at which step of the whole job: the sampler's batches, with batches that grow and full batches
// between online updates. Steps count from 0 over all epochs. Every node computes the same plan. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace talweg {

struct TrainConfig;

class Plan {
 public:
  Plan(const TrainConfig& train, uint32_t workers, const Dataset& data);

  uint64_t epochs() const { return first_step_.size() - 1; }
  // Steps of the epochs before; for epochs(): of all.
  int64_t first_step(uint64_t epoch) const { return first_step_[epoch]; }
  int64_t steps() const { return first_step_.back(); }

  // Of all workers together.
  uint64_t rows_at(uint64_t epoch, int64_t step) const;
  void rows_of(uint64_t epoch, int64_t step, uint32_t rank, std::vector<uint64_t>* out) const;

 private:
  struct Place {
    const Sampler& sampler;
    uint64_t step;  // of the sampler's epoch
  };
  Place place(uint64_t epoch, int64_t step) const;

  std::vector<Sampler> samplers_;    // by epoch, until the batch has grown to its last size
  std::vector<Sampler> full_batch_;  // one, if each epoch begins with a step over all rows
  std::vector<int64_t> first_step_;
};

}  // namespace talweg
