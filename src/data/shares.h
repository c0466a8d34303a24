// Which rows belong to which worker, for partitions that are fixed for a whole job. Computed from the arguments alone,
// so it is the same on every node. Immutable and thread-safe.
//
// Of those that use labels: "by label" is the pathological split of McMahan et al., "Communication-efficient learning
// of deep networks from decentralized data" (2017); "dirichlet" is that of Hsu, Qi and Brown, "Measuring the effects of
// non-identical data distribution for federated visual classification" (2019).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace talweg {

class Shares {
 public:
  // A row's worker is a hash of its number: shares of about equal size, whatever the order of the file.
  static std::shared_ptr<const Shares> by_hash(uint64_t rows, uint32_t workers, uint64_t seed);
  // Equal slices of the data's order (sizes differ by at most one), and behind each the first floor(overlap * its size)
  // rows of the next worker's slice; the last worker's neighbour is the first. 0 <= overlap <= 1. A worker alone has no
  // neighbour and takes every row once. Needs no memory.
  static std::shared_ptr<const Shares> overlapping(uint64_t rows, uint32_t workers, double overlap);
  // The rows sorted by label (rows of one label in the data's order), cut into equal slices.
  static std::shared_ptr<const Shares> by_label(std::span<const float> labels, uint32_t workers);
  // The rows of each label are divided in proportions drawn from a symmetric Dirichlet distribution: the smaller alpha
  // (above 0), the fewer workers hold most of a label. A share is in the data's order.
  static std::shared_ptr<const Shares> dirichlet(std::span<const float> labels, uint32_t workers, double alpha,
                                                 uint64_t seed);

  uint64_t size(uint32_t worker) const { return slices_[worker].size; }
  uint64_t row(uint32_t worker, uint64_t i) const {
    const uint64_t place = slices_[worker].begin + i;
    return rows_.empty() ? place % total_ : rows_[place];
  }

 private:
  struct Slice {
    uint64_t begin = 0, size = 0;
  };
  // Each worker's rows in rising order.
  static std::shared_ptr<const Shares> listed(std::span<const uint32_t> worker_of_row, uint32_t workers);

  // Rows listed worker by worker; none are listed when a share is a run of the data's own order.
  std::vector<uint64_t> rows_;
  std::vector<Slice> slices_;
  uint64_t total_ = 0;
};

}  // namespace talweg
