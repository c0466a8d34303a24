// The report of a run: what every worker and every shard counted, as JSON (docs/formats.md). A count that is added to
// train.proto or store.proto is in the report without another line here.
#pragma once

#include <string>

#include "train/node.h"

namespace talweg {

// What all shards counted for one table.
struct TableTotals {
  std::string name;
  uint64_t rows = 0, bytes = 0;
  uint64_t key_lists = 0, lists_known = 0;  // sparse: that were named by a pull or push; of those, by a hash
  uint64_t not_admitted = 0, expired = 0, zeroed = 0, late = 0;
  int64_t widest_gap = 0;
  std::vector<uint64_t> staleness;  // counts of 0, 1, 2, ... updates missed

  // The mean is a little low when some were staler than what is counted one by one.
  double mean_staleness() const;
  uint64_t largest_staleness() const { return staleness.empty() ? 0 : staleness.size() - 1; }
};
// In the order of the model's tables.
std::vector<TableTotals> table_totals(const std::vector<proto::StatsReply>& shards);

// One JSON object, indented. Of a job that failed, all that is known, and why it failed.
std::string report_text(const JobConfig& job, const JobResult& result);

}  // namespace talweg
