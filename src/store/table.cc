#include "store/table.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "math/kernels.h"
#include "store/dense_table.h"
#include "store/sparse_table.h"

namespace talweg {
namespace {

template <class Real>
Result<std::unique_ptr<Table>> make_of(const TableSpec& spec, uint32_t shard, uint32_t shards,
                                       const OptimizerRegistry& optimizers) {
  const Range range = spec.range_at(shard, shards);
  BlockShape shape;
  if (spec.columns > 0) shape = {.rows = range.size() / spec.columns, .columns = spec.columns};
  auto optimizer = optimizers.make<Real>(spec.optimizer, shape);
  if (!optimizer.ok()) return optimizer.status().within(spec.label());
  if ((*optimizer)->needs_whole_block() && spec.sync.kind == Sync::Kind::kValue) {
    return error(Code::kInvalid, "{}: the optimizer {} cannot be bounded by value: it keeps more than rows",
                 spec.label(), spec.optimizer.type);
  }
  if (spec.sparse) return std::unique_ptr<Table>(std::make_unique<SparseTableOf<Real>>(spec, std::move(*optimizer)));
  return std::unique_ptr<Table>(std::make_unique<DenseTableOf<Real>>(spec, range, std::move(*optimizer)));
}

template <class Real>
std::optional<size_t> find_in(Bytes bytes) {
  const std::span values(reinterpret_cast<const Real*>(bytes.data()), bytes.size() / sizeof(Real));
  if (all_finite(values)) return std::nullopt;
  return std::find_if(values.begin(), values.end(), [](Real value) { return !std::isfinite(value); }) - values.begin();
}

}  // namespace

Table::~Table() {
  for (MemoryBudget* budget = budget_; budget != nullptr; budget = budget->parent) budget->used -= charged_;
}

Status Table::share(MemoryBudget& budget) {
  CHECK(budget_ == nullptr);
  budget_ = &budget;
  if (const MemoryBudget* const full = exceeded_by(bytes())) {
    budget_ = nullptr;
    return error(Code::kFull, "{} takes {} bytes; of the {} bytes that may be taken on a shard ({}) {} are in use",
                 spec_.label(), bytes(), full->limit, full->setting, full->used);
  }
  charge();
  return {};
}

const MemoryBudget* Table::exceeded_by(size_t bytes) const {
  for (const MemoryBudget* budget = budget_; budget != nullptr; budget = budget->parent) {
    if (budget->limit != 0 && budget->used + bytes > budget->limit) return budget;
  }
  return nullptr;
}

void Table::charge() {
  const size_t before = std::exchange(charged_, bytes());
  for (MemoryBudget* budget = budget_; budget != nullptr; budget = budget->parent) {
    budget->used += charged_;
    budget->used -= before;
  }
}

bool Table::apply_if(double rate, double max_norm, double* norm) {
  *norm = try_apply(rate, updates_ + 1);
  // Not a number is not within the bound either.
  if (!(*norm <= max_norm)) {
    undo_tried();
    return false;
  }
  keep_tried();
  ++updates_;
  return true;
}

Result<std::unique_ptr<Table>> Table::make(const TableSpec& spec, uint32_t shard, uint32_t shards,
                                           const OptimizerRegistry& optimizers) {
  TRY(check(spec, shards));
  try {
    if (spec.type == ValueType::kFloat32) return make_of<float>(spec, shard, shards, optimizers);
    return make_of<double>(spec, shard, shards, optimizers);
  } catch (const std::bad_alloc&) {
    return error(Code::kFull, "{}: the system gives no memory for it on this shard", spec.label());
  }
}

size_t zero_non_finite(MutableBytes values, ValueType type) {
  const auto zero = [&]<class Real>(Real) {
    size_t count = 0;
    for (Real& value : std::span(reinterpret_cast<Real*>(values.data()), values.size() / sizeof(Real))) {
      if (std::isfinite(value)) continue;
      value = 0;
      ++count;
    }
    return count;
  };
  return type == ValueType::kFloat32 ? zero(float{}) : zero(double{});
}

std::optional<size_t> find_non_finite(Bytes values, ValueType type) {
  return type == ValueType::kFloat32 ? find_in<float>(values) : find_in<double>(values);
}

}  // namespace talweg
