#include "cli/run_dir.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/file.h"
#include "train/report.h"

namespace talweg {
namespace {

std::string time_stamp() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return text.data();
}

Result<std::string> make_folder(const JobConfig& job) {
  std::error_code failure;
  std::filesystem::create_directories(job.runs, failure);
  const std::string base = fmt::format("{}/{}-{}", job.runs, job.name, time_stamp());
  for (int i = 1; i <= 1000 && !failure; ++i) {
    const std::string path = i == 1 ? base : fmt::format("{}-{}", base, i);
    if (std::filesystem::create_directory(path, failure)) return path;
  }
  return error(Code::kIo, "cannot make a folder for the run in {}: {}", job.runs, failure.message());
}

Status write_whole(const std::string& path, const std::string& text) {
  ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(bytes_of(text)));
  return file.commit();
}

}  // namespace

Result<RunDir> RunDir::create(const JobConfig& job) {
  ASSIGN(std::string path, make_folder(job));
  TRY(write_whole(path + "/job.yaml", config_to_text(job)));
  File metrics(std::fopen((path + "/metrics.jsonl").c_str(), "ab"), &std::fclose);
  if (metrics == nullptr) return errno_error(errno, fmt::format("cannot write {}/metrics.jsonl", path));
  return RunDir(std::move(path), std::move(metrics));
}

Status RunDir::write_metrics(const Progress& p, const char* event) {
  nlohmann::ordered_json line = {{"event", event},         {"seconds", p.seconds},
                                 {"epoch", p.epoch},       {"step", p.step},
                                 {"rows", p.rows},         {"rows_per_second", p.rows_per_second},
                                 {"loss", p.loss},         {"bytes", p.bytes},
                                 {"messages", p.messages}, {"idle_share", p.idle_share}};
  if (p.evaluation && p.evaluation->rows > 0) {
    for (const auto& [name, value] : p.evaluation->summary) line[name == "loss" ? "test_loss" : name] = value;
  }
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), metrics_.get()) != text.size() || std::fflush(metrics_.get()) != 0) {
    return errno_error(errno, fmt::format("cannot write {}/metrics.jsonl", path_));
  }
  return {};
}

Status RunDir::write_model(const TrainedModel& model, const JobConfig& job) {
  return save_model(model, config_to_text(job), model_path());
}

Status RunDir::write_report(const JobConfig& job, const JobResult& result) {
  return write_whole(path_ + "/report.json", report_text(job, result));
}

}  // namespace talweg
