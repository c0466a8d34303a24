#include "store/table.h"

#include <algorithm>
#include <bit>
#include <new>

#include "store/dense_table.h"
#include "store/sparse_table.h"

namespace talweg {
namespace {

template <class Real>
Result<std::unique_ptr<Table>> make_of(const TableSpec& spec, uint32_t shard, uint32_t shards,
                                       const OptimizerRegistry& optimizers) {
  auto optimizer = optimizers.make<Real>(spec.optimizer);
  if (!optimizer.ok()) return optimizer.status().within(spec.label());
  std::unique_ptr<Table> table;
  if (spec.sparse) {
    table = std::make_unique<SparseTableOf<Real>>(spec, std::move(*optimizer));
  } else {
    table = std::make_unique<DenseTableOf<Real>>(spec, shard_range(spec.size, shard, shards), std::move(*optimizer));
  }
  return table;
}

template <class Real, class Bits>
std::optional<size_t> find_in(Bytes bytes, Bits exponent) {
  const std::span values(reinterpret_cast<const Real*>(bytes.data()), bytes.size() / sizeof(Real));
  const auto bad = [exponent](Real value) { return (std::bit_cast<Bits>(value) & exponent) == exponent; };
  // Without a way out of the loop it runs on vectors; which value it was matters only to the error.
  bool any = false;
  for (const Real value : values) any |= bad(value);
  if (!any) return std::nullopt;
  return std::find_if(values.begin(), values.end(), bad) - values.begin();
}

}  // namespace

Table::~Table() {
  if (budget_ != nullptr) budget_->used -= charged_;
}

Status Table::share(MemoryBudget& budget) {
  CHECK(budget_ == nullptr);
  if (budget.limit != 0 && budget.used + bytes() > budget.limit) {
    return error(Code::kFull, "{} takes {} bytes; of the {} bytes for all tables of a shard {} are in use",
                 spec_.label(), bytes(), budget.limit, budget.used);
  }
  budget_ = &budget;
  charge();
  return {};
}

const MemoryBudget* Table::exceeded_by(size_t bytes) const {
  return budget_ != nullptr && budget_->limit != 0 && budget_->used + bytes > budget_->limit ? budget_ : nullptr;
}

void Table::charge() {
  if (budget_ == nullptr) return;
  budget_->used -= charged_;
  charged_ = bytes();
  budget_->used += charged_;
}

double Table::apply_measured(double rate) {
  const double norm = try_apply(rate, next_update());
  keep_tried();
  return norm;
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

std::optional<size_t> find_non_finite(Bytes values, ValueType type) {
  if (type == ValueType::kFloat32) return find_in<float, uint32_t>(values, 0x7f80'0000u);
  return find_in<double, uint64_t>(values, 0x7ff0'0000'0000'0000u);
}

}  // namespace talweg
