#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "cli/display.h"
#include "cli/run_dir.h"
#include "train/launch.h"
#include "train/simulate.h"

namespace talweg {
namespace {

int fail(const Status& why) {
  fmt::print(stderr, "talweg: {}\n", why.message());
  return 1;
}

// So that a person can paste it.
std::string shell_quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-+=:,./@%", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string own_executable() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).string();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void say(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// Runs the job where `launch` says, the simulator included.
JobResult run_job(const TrainCommand& command, const JobConfig& job, const TrainingData& data, const JobParts& parts,
                  const JobEvents& events, const std::string& log_path) {
  if (command.launch == "simulator") {
    SimulatedRun run = simulate(job, data, SimConfig{}, Faults{}, parts, events);
    if (!run.world.ok()) run.job.status = run.world;
    return std::move(run.job);
  }
  return launch(job, data,
                {.parts = parts,
                 .events = events,
                 .executable = own_executable(),
                 .log_path = log_path,
                 .group_secret = variable(kGroupSecretVariable),
                 .say = say});
}

Status train(const TrainCommand& command, const JobConfig& job, const JobParts& parts) {
  ASSIGN(const TrainingData data, open_data(job));
  TRY(check_job(job, data, parts));
  if (data.train.skipped_rows() + data.test.skipped_rows() > 0) {
    log_warning("{} bad rows were skipped", data.train.skipped_rows() + data.test.skipped_rows());
  }
  ASSIGN(RunDir run_dir, RunDir::create(job));
  TRY(log_to_file(run_dir.log_path(), "coordinator"));
  log_info("run {}: {} rows, {} held out", run_dir.path(), data.train.rows(), data.test.rows());
  Display display(command.quiet);
  Status metrics;
  const auto record = [&](const Progress& progress, const char* event) {
    if (metrics.ok()) metrics = run_dir.write_metrics(progress, event);
  };
  const JobEvents events{.on_progress =
                             [&](const Progress& progress) {
                               display.show(progress);
                               record(progress, "progress");
                             },
                         .on_epoch =
                             [&](const Progress& progress) {
                               display.epoch(progress);
                               record(progress, "epoch");
                             }};
  const JobResult result = run_job(command, job, data, parts, events, run_dir.log_path());
  display.end();
  if (!result.status.ok()) {
    log_info("failed: {}", result.status.text());
    const Status reported = run_dir.write_report(job, result);
    if (!reported.ok()) log_info("no report: {}", reported.text());
    return result.status;
  }
  record(result.progress, "end");
  // The model first: it is worth more than its metrics.
  TRY(run_dir.write_model(result.model, job));
  const Status reported = run_dir.write_report(job, result);
  TRY(metrics);
  TRY(reported);
  log_info("done: model checksum {:08x}", result.model.checksum());
  fmt::print("{}", closing_table(job, result, std::filesystem::proximate(run_dir.model_path()).string()));
  return {};
}

}  // namespace

int run(const TrainCommand& command, const JobParts& parts) {
  std::vector<std::string> settings = command.settings;
  if (!command.launch.empty() && command.launch != "simulator")
    settings.push_back("distribute.launch=" + command.launch);
  auto job = load_job(command.job_file, settings);
  if (!job.ok()) return fail(job.status());
  if (command.explain) {
    fmt::print("{}", config_to_text(*job, true));
    return 0;
  }
  const Status outcome = train(command, *job, parts);
  return outcome.ok() ? 0 : fail(outcome);
}

int run(const NodeCommand& command, const JobParts& parts) {
  const char* secret = std::getenv(kSecretVariable);
  if (secret == nullptr) return fail(error(Code::kInvalid, "{} is not set: the coordinator tells it", kSecretVariable));
  if (!command.coordinator.starts_with("tcp:") && !command.coordinator.starts_with("shm:")) {
    return fail(error(Code::kInvalid, "--coordinator {}: give it as the coordinator tells it, as tcp:HOST:PORT",
                      command.coordinator));
  }
  const auto join_timeout = parse_duration(command.join_timeout);
  if (!join_timeout.ok()) return fail(join_timeout.status().within("--join-timeout"));
  if (!command.log.empty()) {
    const Status logging = log_to_file(command.log, fmt::format("node {}", command.id));
    if (!logging.ok()) return fail(logging);
  }
  const Status outcome = run_node_process({.coordinator = command.coordinator,
                                           .first = command.id,
                                           .count = command.count,
                                           .secret = secret,
                                           .listen = command.listen,
                                           .join_timeout = *join_timeout,
                                           .coordinator_id = command.coordinator_id,
                                           .of_group = command.group,
                                           .shares_cores = !command.own_cores},
                                          parts);
  if (outcome.ok()) return 0;
  // Who gave it a log reads that, and hears of the failure from the coordinator.
  if (command.log.empty()) return fail(outcome.within(fmt::format("node {}", command.id)));
  log_info("node {} ended: {}", command.id, outcome.text());
  return 1;
}

int run(const GroupCommand& command) {
  const auto group = load_group(command.file, command.settings);
  if (!group.ok()) return fail(group.status());
  if (command.explain) {
    fmt::print("{}", config_to_text(*group, true));
    return 0;
  }
  if (!command.log.empty()) {
    const Status logging = log_to_file(command.log, "coordinator");
    if (!logging.ok()) return fail(logging);
  }
  const Status outcome = launch_group(
      *group,
      {.executable = own_executable(), .log_path = command.log, .secret = variable(kGroupSecretVariable), .say = say});
  return outcome.ok() ? 0 : fail(outcome.within(group->name));
}

int run(const SimulateCommand& command, const JobParts& parts) {
  auto scenario = load_scenario(command.scenario_file);
  if (!scenario.ok()) return fail(scenario.status());
  auto data = open_data(scenario->workload);
  if (!data.ok()) return fail(data.status());
  const Status checked = check_job(scenario->workload, *data, parts);
  if (!checked.ok()) return fail(checked);
  const uint64_t first = command.seed == 0 ? 1 : command.seed;
  const uint64_t last = command.seed == 0 ? static_cast<uint64_t>(scenario->seeds) : command.seed;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const ScenarioRun result = run_scenario(*scenario, *data, seed, parts);
    const SimulatedRun& run = result.run;
    const std::string auc = run.job.epochs.empty() ? "" : fmt::format("  AUC {:.4f}", run.job.epochs.back().auc);
    fmt::print("seed {}  trace {:016x}  {:.3f} s virtual  {} events{}  {}\n", seed, run.trace_hash, run.virtual_seconds,
               run.events, auc, run.job.status.ok() ? "ok" : run.job.status.text());
    if (result.held.ok()) continue;
    fmt::print(stderr, "talweg: {}\nreproduce with: talweg simulate {} --seed {}\n", result.held.message(),
               shell_quoted(command.scenario_file), seed);
    return 1;
  }
  return 0;
}

int run(const GenerateCommand& command) {
  const auto generator = command.data.generator();
  if (!generator.ok()) return fail(generator.status());
  std::error_code failure;
  const auto folder = std::filesystem::path(command.out).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, failure);
  const Status written = write_rows(command.out, **generator, command.first_row, command.data.rows);
  return written.ok() ? 0 : fail(written);
}

}  // namespace talweg
