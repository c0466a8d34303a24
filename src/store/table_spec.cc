#include "store/table_spec.h"

#include "base/limits.h"
#include "store/limits.h"
#include "store/routing.h"
#include "store/store.pb.h"

namespace talweg {

std::string TableSpec::label() const { return fmt::format("table '{}'", name); }

Range TableSpec::range_at(uint32_t shard, uint32_t shards) const {
  if (columns == 0) return shard_range(size, shard, shards);
  const Range rows = shard_range(size / columns, shard, shards);
  return {rows.begin * columns, rows.end * columns};
}

Status check(const TableSpec& spec, uint32_t shards) {
  if (spec.name.empty() || spec.name.size() > limits::kMaxNameBytes) {
    return error(Code::kInvalid, "table {} needs a name of 1 to {} bytes", spec.id, limits::kMaxNameBytes);
  }
  if (spec.sparse) {
    if (spec.width < 1 || spec.width > limits::kMaxWidth) {
      return error(Code::kInvalid, "{} has rows of {} values; 1 to {} are allowed", spec.label(), spec.width,
                   limits::kMaxWidth);
    }
    if (spec.size != 0) return error(Code::kInvalid, "{} is sparse and so has no size", spec.label());
    if (spec.columns != 0) return error(Code::kInvalid, "{} is sparse and so has no columns", spec.label());
    if (spec.rows.admit_probability <= 0) {
      return error(Code::kInvalid, "{} admits no key: rows.admit_probability is {}", spec.label(),
                   spec.rows.admit_probability);
    }
    return {};
  }
  if (spec.width != 1) return error(Code::kInvalid, "{} is dense and so has width 1, not {}", spec.label(), spec.width);
  if (spec.size == 0) return error(Code::kInvalid, "{} is dense and needs a size", spec.label());
  if (spec.columns != 0 && spec.size % spec.columns != 0) {
    return error(Code::kInvalid, "{} has {} values, which are not whole rows of {} columns", spec.label(), spec.size,
                 spec.columns);
  }
  if (spec.rows != RowPolicy()) {
    return error(Code::kInvalid, "{} is dense: all its values are there from the start, so it has no settings of rows",
                 spec.label());
  }
  // A shard's range must fit one message.
  const uint64_t most = limits::kMaxBodyBytes / size_of(spec.type);
  if (spec.size / shards >= most) {
    return error(Code::kInvalid, "{} has {} values on each of {} shards; at most {} fit one shard", spec.label(),
                 spec.size / shards, shards, most);
  }
  return {};
}

proto::TableSpec to_proto(const TableSpec& spec) {
  proto::TableSpec out;
  out.set_id(spec.id);
  out.set_name(spec.name);
  out.set_sparse(spec.sparse);
  out.set_width(spec.width);
  out.set_size(spec.size);
  out.set_value_type(static_cast<uint32_t>(spec.type));
  out.set_optimizer(config_to_text(spec.optimizer));
  out.set_sync(spec.sync.text());
  out.set_rate_by_staleness(spec.rate_by_staleness);
  out.set_non_finite(static_cast<uint32_t>(spec.non_finite));
  out.set_columns(spec.columns);
  out.set_rows(config_to_text(spec.rows));
  out.set_init(config_to_text(spec.init));
  return out;
}

Result<TableSpec> from_proto(const proto::TableSpec& in) {
  TableSpec spec{.id = in.id(),
                 .name = in.name(),
                 .sparse = in.sparse(),
                 .width = in.width(),
                 .size = in.size(),
                 .columns = in.columns()};
  if (in.value_type() >= std::size(Choices<ValueType>::names)) {
    return error(Code::kInvalid, "{} has an unknown value type {}", spec.label(), in.value_type());
  }
  spec.type = static_cast<ValueType>(in.value_type());
  if (in.non_finite() >= std::size(Choices<NonFinite>::names)) {
    return error(Code::kInvalid, "{} has an unknown policy {} for gradients that are not finite", spec.label(),
                 in.non_finite());
  }
  spec.non_finite = static_cast<NonFinite>(in.non_finite());
  spec.rate_by_staleness = in.rate_by_staleness();
  ASSIGN(spec.sync, Sync::from_text(in.sync()));
  ASSIGN(spec.optimizer, config_from_text<OptimizerConfig>(in.optimizer(), "the optimizer of " + spec.label()));
  ASSIGN(spec.init, config_from_text<InitConfig>(in.init(), "the first values of " + spec.label()));
  ASSIGN(spec.rows, config_from_text<RowPolicy>(in.rows(), "the rows of " + spec.label()));
  return spec;
}

}  // namespace talweg
