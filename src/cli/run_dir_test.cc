#include "cli/run_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/temp_dir.h"

namespace talweg {
namespace {

JobConfig job_in(const TempDir& dir) {
  JobConfig job;
  job.name = "clicks";
  job.data.train = "a.svm";
  job.runs = dir.path("runs");
  return job;
}

TEST(RunDir, two_runs_at_once_get_folders_of_their_own) {
  const TempDir dir;
  const auto first = RunDir::create(job_in(dir)), second = RunDir::create(job_in(dir));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->path(), second->path());
}

TEST(RunDir, keeps_the_job_as_it_was_resolved) {
  const TempDir dir;
  const auto run = RunDir::create(job_in(dir));
  ASSERT_TRUE(run.ok());
  const auto job = job_from_text(TempDir::read(run->path() + "/job.yaml"), "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status().text();
  EXPECT_EQ(config_to_text(*job), config_to_text(job_in(dir)));
}

TEST(RunDir, metrics_are_one_json_object_a_line) {
  const TempDir dir;
  auto run = RunDir::create(job_in(dir));
  ASSERT_TRUE(run.ok());
  Progress progress;
  progress.step = 3;
  ASSERT_TRUE(run->write_metrics(progress, "progress").ok());
  progress.evaluation = EpochResult{.epoch = 0, .rows = 10, .loss = 0.5, .summary = {{"loss", 0.5}, {"auc", 0.75}}};
  ASSERT_TRUE(run->write_metrics(progress, "epoch").ok());
  std::istringstream lines(TempDir::read(run->path() + "/metrics.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line).at("step"), 3);
  EXPECT_FALSE(nlohmann::json::parse(line).contains("auc"));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line).at("event"), "epoch");
  EXPECT_EQ(nlohmann::json::parse(line).at("auc"), 0.75);
  EXPECT_EQ(nlohmann::json::parse(line).at("test_loss"), 0.5);
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(RunDir, the_report_is_one_json_object_with_workers_and_shards) {
  const TempDir dir;
  auto run = RunDir::create(job_in(dir));
  ASSERT_TRUE(run.ok());
  JobResult result;
  result.workers.resize(3);
  result.shards.resize(2);
  ASSERT_TRUE(run->write_report(job_in(dir), result).ok());
  const auto report = nlohmann::json::parse(TempDir::read(run->path() + "/report.json"));
  EXPECT_EQ(report.at("job"), "clicks");
  EXPECT_EQ(report.at("workers").size(), 3u);
  EXPECT_EQ(report.at("shards").size(), 2u);
}

TEST(RunDir, a_runs_folder_that_is_a_file_is_an_error_that_names_it) {
  const TempDir dir;
  JobConfig job = job_in(dir);
  job.runs = dir.write("file", "");
  const auto run = RunDir::create(job);
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find(job.runs), std::string::npos) << run.status().message();
}

}  // namespace
}  // namespace talweg
