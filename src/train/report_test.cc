#include "train/report.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace talweg {
namespace {

using Json = nlohmann::json;

proto::TableStats stats(const std::string& name, uint64_t rows, std::vector<uint64_t> staleness) {
  proto::TableStats stats;
  stats.set_name(name);
  stats.set_rows(rows);
  stats.set_bytes(8 * rows);
  for (uint64_t count : staleness) stats.add_staleness(count);
  return stats;
}

JobResult some_result() {
  JobResult result;
  result.progress.seconds = 2.5;
  result.epochs = {{.epoch = 0, .rows = 10, .loss = 0.5, .summary = {{"loss", 0.5}, {"rmse", 1.25}}, .seconds = 1.5}};
  proto::WorkerReport worker;
  worker.set_rank(0);
  worker.set_compute_ns(1000);
  worker.set_wait_ns(3000);
  worker.set_bytes_pushed(uint64_t{1} << 60);
  result.workers = {worker, proto::WorkerReport()};
  result.shards.resize(2);
  *result.shards[0].add_tables() = stats("weights", 5, {1, 2});
  *result.shards[1].add_tables() = stats("weights", 6, {});
  result.shards[1].mutable_tables(0)->add_hot_keys(77);
  result.shards[1].mutable_tables(0)->add_hot_counts(9);
  return result;
}

void expect_every_field(const Json& object, const google::protobuf::Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->name() == "evaluation") continue;  // a part of an epoch's, taken out when it came
    EXPECT_TRUE(object.contains(type.field(i)->name())) << type.full_name() << "." << type.field(i)->name();
  }
}

TEST(Report, has_every_count_of_every_worker_and_shard_under_its_name) {
  const Json report = Json::parse(report_text(JobConfig{}, some_result()));
  ASSERT_EQ(report.at("workers").size(), 2u);
  for (const Json& worker : report.at("workers")) expect_every_field(worker, *proto::WorkerReport::descriptor());
  ASSERT_EQ(report.at("shards").size(), 2u);
  for (const Json& shard : report.at("shards")) {
    expect_every_field(shard.at("tables").at(0), *proto::TableStats::descriptor());
  }
  EXPECT_EQ(report["workers"][0]["bytes_pushed"], uint64_t{1} << 60) << "whole numbers keep all their digits";
  EXPECT_EQ(report["shards"][0]["tables"][0]["staleness"], Json({1, 2}));
  EXPECT_EQ(report["shards"][1]["tables"][0]["hot_keys"], Json({77}));
  EXPECT_EQ(report["shards"][1]["tables"][0]["rows"], 6);
}

TEST(Report, tells_how_the_job_went) {
  JobConfig job;
  job.name = "ratings";
  job.distribute.sync = Sync::ssp(4);
  JobResult result = some_result();
  result.reached_target = true;
  const Json report = Json::parse(report_text(job, result));
  EXPECT_EQ(report.at("job"), "ratings");
  EXPECT_EQ(report.at("sync"), "ssp(4)");
  EXPECT_EQ(report.at("seconds"), 2.5);
  EXPECT_EQ(report.at("reached_target"), true);
  EXPECT_EQ(report.at("epochs"), Json::parse(R"([{"epoch":0,"seconds":1.5,"rows":10,"loss":0.5,"rmse":1.25}])"));
  EXPECT_EQ(report.at("workers").at(0).at("idle_share"), 0.75);
  EXPECT_EQ(report.at("workers").at(1).at("idle_share"), 0) << "who has not begun has not waited";
  EXPECT_FALSE(report.contains("error"));
}

TEST(Report, of_a_job_that_failed_says_why_and_can_be_read) {
  JobResult result = some_result();
  result.status = Status(Code::kInvalid, "\"x\xff.svm\" is bad");
  result.epochs[0].summary[1].second = NAN;
  const Json report = Json::parse(report_text(JobConfig{}, result));
  EXPECT_NE(report.at("error").get<std::string>().find("is bad"), std::string::npos);
  EXPECT_TRUE(report["epochs"][0]["rmse"].is_null()) << "JSON has no word for what is no number";
}

TEST(TableTotals, add_up_over_the_shards_and_keep_the_worst) {
  std::vector<proto::StatsReply> shards(2);
  *shards[0].add_tables() = stats("weights", 5, {1, 2});
  *shards[1].add_tables() = stats("weights", 6, {3, 0, 0, 2});
  shards[0].mutable_tables(0)->set_widest_gap(3);
  shards[1].mutable_tables(0)->set_widest_gap(2);
  shards[1].mutable_tables(0)->set_late(4);
  *shards[0].add_tables() = stats("bias", 1, {});
  const auto totals = table_totals(shards);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, "weights");
  EXPECT_EQ(totals[0].rows, 11u);
  EXPECT_EQ(totals[0].bytes, 88u);
  EXPECT_EQ(totals[0].late, 4u);
  EXPECT_EQ(totals[0].widest_gap, 3);
  EXPECT_EQ(totals[0].staleness, (std::vector<uint64_t>{4, 2, 0, 2}));
  EXPECT_DOUBLE_EQ(totals[0].mean_staleness(), 1);
  EXPECT_EQ(totals[0].largest_staleness(), 3u);
  EXPECT_EQ(totals[1].rows, 1u);
  EXPECT_EQ(totals[1].mean_staleness(), 0);
}

TEST(TableTotals, only_tables_of_keys_have_key_lists) {
  std::vector<proto::StatsReply> shards(1);
  proto::TableStats keyed = stats("weights", 5, {});
  keyed.set_pulls(10);
  keyed.set_pushes(9);
  keyed.set_keys_received(100);
  keyed.set_lists_known(9);
  proto::TableStats dense = stats("bias", 1, {});
  dense.set_pulls(10);
  dense.set_pushes(9);
  *shards[0].add_tables() = keyed;
  *shards[0].add_tables() = dense;
  const auto totals = table_totals(shards);
  EXPECT_EQ(totals[0].key_lists, 19u);
  EXPECT_EQ(totals[0].lists_known, 9u);
  EXPECT_EQ(totals[1].key_lists, 0u);
}

}  // namespace
}  // namespace talweg
