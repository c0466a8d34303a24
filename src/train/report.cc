#include "train/report.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace talweg {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Json json_of(const Message& message);

// Whole numbers stay numbers, which protobuf's own JSON makes text of.
Json value_of(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT64: return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_INT64: return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32: return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE: return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_STRING: return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE: return json_of(reflection.GetMessage(message, &field));
    default: break;
  }
  CHECK(false && "a kind of field that no report has");
  return {};
}

Json list_of(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  Json list = Json::array();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      list.push_back(json_of(reflection.GetRepeatedMessage(message, &field, i)));
    } else {
      CHECK(field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64);
      list.push_back(reflection.GetRepeatedUInt64(message, &field, i));
    }
  }
  return list;
}

// Every field, those that are zero too; only a message that is not there is left out.
Json json_of(const Message& message) {
  Json object = Json::object();
  const auto& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) {
      object[field.name()] = list_of(message, field);
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
               message.GetReflection()->HasField(message, &field)) {
      object[field.name()] = value_of(message, field);
    }
  }
  return object;
}

Json epoch_json(const EpochResult& epoch) {
  Json object = {{"epoch", epoch.epoch}, {"seconds", epoch.seconds}, {"rows", epoch.rows}};
  for (const auto& [name, value] : epoch.summary) object[name] = value;
  return object;
}

Json worker_json(const proto::WorkerReport& worker) {
  Json object = json_of(worker);
  const double wait = static_cast<double>(worker.wait_ns()), all = wait + static_cast<double>(worker.compute_ns());
  object["idle_share"] = all > 0 ? wait / all : 0;
  return object;
}

void add(const proto::TableStats& stats, TableTotals& total) {
  total.name = stats.name();
  total.rows += stats.rows();
  total.bytes += stats.bytes();
  // Only keys are received or known; dense tables have none.
  if (stats.keys_received() + stats.lists_known() > 0) total.key_lists += stats.pulls() + stats.pushes();
  total.lists_known += stats.lists_known();
  total.not_admitted += stats.not_admitted();
  total.expired += stats.expired();
  total.zeroed += stats.zeroed();
  total.late += stats.late();
  total.widest_gap = std::max(total.widest_gap, stats.widest_gap());
  total.staleness.resize(std::max<size_t>(total.staleness.size(), static_cast<size_t>(stats.staleness_size())));
  for (int i = 0; i < stats.staleness_size(); ++i) total.staleness[static_cast<size_t>(i)] += stats.staleness(i);
}

}  // namespace

double TableTotals::mean_staleness() const {
  double pushes = 0, missed = 0;
  for (size_t i = 0; i < staleness.size(); ++i) {
    pushes += static_cast<double>(staleness[i]);
    missed += static_cast<double>(i) * static_cast<double>(staleness[i]);
  }
  return pushes > 0 ? missed / pushes : 0;
}

std::vector<TableTotals> table_totals(const std::vector<proto::StatsReply>& shards) {
  std::vector<TableTotals> totals;
  for (const proto::StatsReply& shard : shards) {
    totals.resize(std::max<size_t>(totals.size(), static_cast<size_t>(shard.tables_size())));
    for (int i = 0; i < shard.tables_size(); ++i) add(shard.tables(i), totals[static_cast<size_t>(i)]);
  }
  return totals;
}

std::string report_text(const JobConfig& job, const JobResult& result) {
  Json report = {{"job", job.name},
                 {"sync", job.distribute.sync.text()},
                 {"seconds", result.progress.seconds},
                 {"rows", result.progress.rows},
                 {"reached_target", result.reached_target}};
  if (!result.status.ok()) report["error"] = result.status.text();
  Json& epochs = report["epochs"] = Json::array();
  for (const EpochResult& epoch : result.epochs) epochs.push_back(epoch_json(epoch));
  Json& workers = report["workers"] = Json::array();
  for (const proto::WorkerReport& worker : result.workers) workers.push_back(worker_json(worker));
  Json& shards = report["shards"] = Json::array();
  for (const proto::StatsReply& shard : result.shards) shards.push_back(json_of(shard));
  // Text that is no UTF-8, as a file's name in an error may be, must not end the job.
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace talweg
