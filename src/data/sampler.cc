#include "data/sampler.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace talweg {
namespace {

constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(mix64(key)) {
  const unsigned bits = n > 1 ? static_cast<unsigned>(std::bit_width(n - 1)) : 0;
  right_bits_ = bits - bits / 2;
  right_mask_ = (uint64_t{1} << right_bits_) - 1;
  left_mask_ = (uint64_t{1} << (bits / 2)) - 1;
}

// Halves of unequal width do not swap places; each round changes one by a function of the other, which can be undone.
uint64_t Permutation::encrypt(uint64_t x) const {
  uint64_t left = x >> right_bits_, right = x & right_mask_;
  for (uint64_t round = 0; round < kRounds; round += 2) {
    right ^= mix64(left + key_ + (round << 56)) & right_mask_;
    left ^= mix64(right + key_ + ((round + 1) << 56)) & left_mask_;
  }
  return left << right_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  CHECK(i < n_);
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

Sampler::Sampler(uint64_t rows, uint64_t batch, uint32_t workers, std::optional<uint64_t> shuffle_seed,
                 Partition partition)
    : rows_(rows), batch_(batch), workers_(workers), shuffle_seed_(shuffle_seed), partition_(partition) {
  CHECK(batch > 0 && workers > 0);
}

uint64_t Sampler::batch_rows(uint64_t step) const {
  CHECK(step < steps_per_epoch());
  return std::min(batch_, rows_ - step * batch_);
}

void Sampler::rows_of(uint64_t epoch, uint64_t step, uint32_t worker, std::vector<uint64_t>* out) const {
  CHECK(worker < workers_);
  const uint64_t count = batch_rows(step), share = count / workers_, extra = count % workers_;
  out->clear();
  const uint64_t size = share + (worker < extra ? 1 : 0);
  const bool contiguous = partition_ == Partition::kContiguous;
  const uint64_t begin = step * batch_ + (contiguous ? worker * share + std::min<uint64_t>(worker, extra) : worker);
  const uint64_t stride = contiguous ? 1 : workers_;
  for (uint64_t i = 0; i < size; ++i) out->push_back(begin + i * stride);
  if (!shuffle_seed_) return;
  const Permutation order(rows_, mix64(*shuffle_seed_) ^ epoch);
  for (uint64_t& row : *out) row = order(row);
}

}  // namespace talweg
