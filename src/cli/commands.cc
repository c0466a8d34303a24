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
#include "data/file.h"
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

// The values of "key=a,b(1,2),c": commas inside of brackets belong to a value.
std::vector<std::string> values_of(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  for (char c : text) {
    if (std::strchr("([{", c)) ++depth;
    if (std::strchr(")]}", c)) --depth;
    if (c == ',' && depth == 0)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

Result<TrainingData> data_for(const Scenario& scenario, const JobParts& parts) {
  ASSIGN(TrainingData data, open_data(scenario.workload));
  TRY(check_job(scenario.workload, data, parts));
  return data;
}

std::string command_for(const SimulateCommand& command, uint64_t seed) {
  std::string line = "talweg simulate " + shell_quoted(command.scenario_file);
  for (const std::string& setting : command.settings) line += " --set " + shell_quoted(setting);
  return line + fmt::format(" --seed {}", seed);
}

// A value may hold commas and quotes.
std::string csv_quoted(const std::string& value) {
  if (value.find_first_of(",\"\n") == std::string::npos) return value;
  std::string quoted = "\"";
  for (char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::string& value, const RunMeasures& m) {
  const std::string target = m.seconds_to_target ? fmt::format("{}", *m.seconds_to_target) : "";
  return fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_quoted(value), m.virtual_seconds, target, m.steps,
                     m.idle_share, m.staleness, m.late, m.bytes, m.loss, m.auc);
}

// Runs the scenario with each value, and shows what comes of it. What the file expects holds for its own value only,
// so nothing of that is checked but that the jobs do not fail.
Status compare_values(const SimulateCommand& command, const JobParts& parts) {
  const size_t equals = command.vary.find('=');
  if (equals == std::string::npos || equals + 1 == command.vary.size())
    return error(Code::kInvalid, "--vary {}: give key=value,value, as workload.distribute.workers=2,4,8", command.vary);
  const std::string key = command.vary.substr(0, equals);
  std::string csv = "value,virtual_seconds,seconds_to_target,steps,idle_share,staleness,late,bytes,loss,auc\n";
  fmt::print("{:>20} {:>10} {:>10} {:>10} {:>6} {:>9} {:>8} {:>9} {:>8} {:>7}\n", key.substr(key.rfind('.') + 1),
             "virtual s", "target s", "steps", "idle", "staleness", "late", "moved", "loss", "AUC");
  for (const std::string& value : values_of(command.vary.substr(equals + 1))) {
    std::vector<std::string> settings = command.settings;
    settings.push_back(key + "=" + value);
    ASSIGN(const Scenario scenario, load_scenario(command.scenario_file, settings));
    ASSIGN(const TrainingData data, data_for(scenario, parts));
    ASSIGN(const RunMeasures m, measure(scenario, data, parts));
    const std::string target = m.seconds_to_target ? fmt::format("{:.3f}", *m.seconds_to_target) : "-";
    fmt::print("{:>20} {:>10.3f} {:>10} {:>10.0f} {:>5.0f}% {:>9.2f} {:>8.0f} {:>9} {:>8.4f} {:>7.4f}\n", value,
               m.virtual_seconds, target, m.steps, 100 * m.idle_share, m.staleness, m.late, human_bytes(m.bytes),
               m.loss, m.auc);
    std::fflush(stdout);
    csv += csv_line(value, m);
  }
  if (command.csv.empty()) return {};
  ASSIGN(AtomicFile file, AtomicFile::create(command.csv));
  TRY(file.write(bytes_of(csv)));
  return file.commit();
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
  if (!command.vary.empty()) {
    const Status compared = compare_values(command, parts);
    return compared.ok() ? 0 : fail(compared);
  }
  auto scenario = load_scenario(command.scenario_file, command.settings);
  if (!scenario.ok()) return fail(scenario.status());
  auto data = data_for(*scenario, parts);
  if (!data.ok()) return fail(data.status());
  const uint64_t first = command.seed == 0 ? 1 : command.seed;
  const uint64_t last = command.seed == 0 ? static_cast<uint64_t>(scenario->seeds) : command.seed;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const ScenarioRun result = run_scenario(*scenario, *data, seed, parts);
    const SimulatedRun& run = result.run;
    const std::string auc = run.job.epochs.empty() ? "" : fmt::format("  AUC {:.4f}", run.job.epochs.back().auc);
    fmt::print("seed {}  trace {:016x}  {:.3f} s virtual  {} events{}  {}\n", seed, run.trace_hash, run.virtual_seconds,
               run.events, auc, run.job.status.ok() ? "ok" : run.job.status.text());
    if (result.held.ok()) continue;
    fmt::print(stderr, "talweg: {}\nreproduce with: {}\n", result.held.message(), command_for(command, seed));
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
