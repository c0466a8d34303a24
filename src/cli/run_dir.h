// The folder of one run: the resolved job, metrics as JSON lines, the model, a report, a log.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "train/node.h"

namespace talweg {

class RunDir {
 public:
  // Makes runs/<name>-<date>-<time>, or the same with a number behind it if that is taken.
  static Result<RunDir> create(const JobConfig& job);

  const std::string& path() const { return path_; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string model_path() const { return path_ + "/model.talweg"; }

  // Adds a line to metrics.jsonl. A disk that is full is noticed here.
  Status write_metrics(const Progress& progress, const char* event);
  Status write_model(const TrainedModel& model, const JobConfig& job);
  // report.json: what every worker and shard counted.
  Status write_report(const JobConfig& job, const JobResult& result);

 private:
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  RunDir(std::string path, File metrics) : path_(std::move(path)), metrics_(std::move(metrics)) {}

  std::string path_;
  File metrics_;
};

}  // namespace talweg
