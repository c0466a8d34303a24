#include "train/simulate.h"

#include <cmath>

#include "sim/world.h"

namespace talweg {
namespace {

int64_t widest_gap(const JobResult& job) {
  int64_t widest = 0;
  for (const auto& shard : job.shards) {
    for (const auto& table : shard.tables()) widest = std::max(widest, table.widest_gap());
  }
  return widest;
}

uint64_t late_pushes(const JobResult& job) {
  uint64_t late = 0;
  for (const auto& worker : job.workers) late += worker.late();
  return late;
}

Status check_outcome(const Expectation& expect, const SimulatedRun& run) {
  const Status& outcome = run.job.status;
  if (!run.world.ok()) return run.world.within("the run did not end");
  if (expect.outcome == Outcome::kOk && !outcome.ok())
    return error(Code::kInvalid, "the job failed: {}", outcome.text());
  if (expect.outcome == Outcome::kFails && outcome.ok()) return Status(Code::kInvalid, "the job did not fail");
  if (!expect.error.empty() && outcome.message().find(expect.error) == std::string::npos) {
    return error(Code::kInvalid, "the error does not say '{}': {}", expect.error, outcome.text());
  }
  return {};
}

Status check_measures(const Expectation& expect, const JobResult& job) {
  const EpochResult last = job.epochs.empty() ? EpochResult{.auc = 0} : job.epochs.back();
  if (expect.auc > 0 && last.auc < expect.auc)
    return error(Code::kInvalid, "AUC {:.4f}, not {:.4f}", last.auc, expect.auc);
  const auto at_most = [&](const char* name, const std::optional<double>& bound) -> Status {
    const double value = last.measure(name).value_or(INFINITY);
    if (!bound || value <= *bound) return {};
    return error(Code::kInvalid, "{} {:.4f}, not at most {:.4f}", name, value, *bound);
  };
  TRY(at_most("loss", expect.loss));
  TRY(at_most("rmse", expect.rmse));
  const double accuracy = last.measure("accuracy").value_or(0);
  if (expect.accuracy && accuracy < *expect.accuracy)
    return error(Code::kInvalid, "accuracy {:.4f}, not {:.4f}", accuracy, *expect.accuracy);
  if (expect.reaches_target && !job.reached_target) return Status(Code::kInvalid, "the target was not reached");
  return {};
}

Status check(const Expectation& expect, const SimulatedRun& run) {
  TRY(check_outcome(expect, run));
  TRY(check_measures(expect, run.job));
  if (expect.clock_gap && widest_gap(run.job) > *expect.clock_gap) {
    return error(Code::kInvalid, "a worker was {} steps ahead, not at most {}", widest_gap(run.job), *expect.clock_gap);
  }
  if (late_pushes(run.job) < expect.late)
    return error(Code::kInvalid, "{} pushes came late, not at least {}", late_pushes(run.job), expect.late);
  if (expect.within && run.virtual_seconds > to_seconds(*expect.within)) {
    return error(Code::kInvalid, "took {:.3f} s of virtual time, not {}", run.virtual_seconds,
                 format_duration(*expect.within));
  }
  return {};
}

// Over all pushes of all tables; what lies beyond the meter counts as the first of it.
double mean_staleness(const JobResult& job) {
  double sum = 0, pushes = 0;
  for (const auto& shard : job.shards) {
    for (const auto& table : shard.tables()) {
      for (int i = 0; i < table.staleness_size(); ++i) {
        sum += static_cast<double>(table.staleness(i)) * i;
        pushes += static_cast<double>(table.staleness(i));
      }
    }
  }
  return pushes > 0 ? sum / pushes : 0;
}

}  // namespace

SimulatedRun simulate(const JobConfig& job, const TrainingData& data, const SimConfig& config, const Faults& faults,
                      const JobParts& parts, JobEvents events) {
  SimulatedRun run;
  const Layout layout = job.distribute.layout();
  const NodeContext context{Identity(0, "simulated"), parts,
                            [&data](const JobConfig&) -> Result<TrainingData> { return data; }, job.cluster,
                            kCoordinatorNode};
  std::vector<Status> outcomes(layout.nodes());
  bool coordinated = false;
  World world(config, faults);
  world.add_node(kCoordinatorNode, [&](Io& io) -> Task<> {
    CoordinatorNode coordinator(io, job, parts, data, events);
    co_await coordinator.run(&run.job);
    coordinated = true;
  });
  for (Peer id = 1; id < layout.nodes(); ++id) {
    world.add_node(id, [&, id](Io& io) { return run_member(io, context, &outcomes[id]); });
  }
  run.job.status = Status(Code::kUnavailable, "the coordinator did not come to an end");
  run.world = world.run();
  // Who else could tell? The nodes that waited for it.
  for (Peer id = 1; id < layout.nodes() && !coordinated; ++id) {
    if (!outcomes[id].ok()) run.job.status = outcomes[id].within(layout.name_of(id)), coordinated = true;
  }
  run.trace_hash = world.trace_hash();
  run.virtual_seconds = to_seconds(world.now().time_since_epoch());
  run.events = world.events();
  return run;
}

Result<Scenario> load_scenario(const std::string& path, const std::vector<std::string>& settings) {
  ASSIGN(const YAML::Node node, settings_tree<Scenario>(path, settings));
  ASSIGN(Scenario scenario, config_from_yaml<Scenario>(node, path));
  TRY(scenario.workload.check(path));
  resolve_data_paths(scenario.workload, path);
  return scenario;
}

ScenarioRun run_scenario(const Scenario& scenario, const TrainingData& data, uint64_t seed, const JobParts& parts) {
  SimConfig cluster = scenario.cluster;
  cluster.seed = seed;
  ScenarioRun result;
  result.run = simulate(scenario.workload, data, cluster, scenario.faults, parts);
  result.held = check(scenario.expect, result.run);
  if (!result.held.ok() || !scenario.expect.same_model_without_faults) return result;
  const SimulatedRun calm = simulate(scenario.workload, data, cluster, Faults{}, parts);
  if (!(calm.job.model == result.run.job.model))
    result.held = Status(Code::kInvalid, "the model differs from the one without faults");
  return result;
}

RunMeasures measures_of(const SimulatedRun& run) {
  const JobResult& job = run.job;
  RunMeasures measures;
  measures.virtual_seconds = run.virtual_seconds;
  if (job.reached_target) measures.seconds_to_target = job.epochs.back().seconds;
  for (const auto& worker : job.workers) measures.steps += static_cast<double>(worker.steps_done());
  measures.idle_share = job.progress.idle_share;
  measures.staleness = mean_staleness(job);
  measures.late = static_cast<double>(late_pushes(job));
  measures.clock_gap = static_cast<double>(widest_gap(job));
  measures.bytes = static_cast<double>(job.progress.bytes);
  if (!job.epochs.empty()) measures.loss = job.epochs.back().loss, measures.auc = job.epochs.back().auc;
  return measures;
}

RunMeasures mean_of(const std::vector<RunMeasures>& runs) {
  RunMeasures mean;
  const auto n = static_cast<double>(runs.size());
  for (double RunMeasures::*field :
       {&RunMeasures::virtual_seconds, &RunMeasures::steps, &RunMeasures::idle_share, &RunMeasures::staleness,
        &RunMeasures::late, &RunMeasures::clock_gap, &RunMeasures::bytes, &RunMeasures::loss, &RunMeasures::auc}) {
    double sum = 0;
    for (const RunMeasures& run : runs) sum += run.*field;
    mean.*field = sum / n;
  }
  mean.seconds_to_target = 0;
  for (const RunMeasures& run : runs) {
    if (!run.seconds_to_target || !mean.seconds_to_target)
      mean.seconds_to_target = std::nullopt;
    else
      *mean.seconds_to_target += *run.seconds_to_target / n;
  }
  return mean;
}

Result<RunMeasures> measure(const Scenario& scenario, const TrainingData& data, const JobParts& parts) {
  std::vector<RunMeasures> runs;
  for (int64_t seed = 1; seed <= scenario.seeds; ++seed) {
    SimConfig cluster = scenario.cluster;
    cluster.seed = static_cast<uint64_t>(seed);
    const SimulatedRun run = simulate(scenario.workload, data, cluster, scenario.faults, parts);
    TRY(run.world.within(fmt::format("seed {}: the run did not end", seed)));
    TRY(run.job.status.within(fmt::format("seed {}", seed)));
    runs.push_back(measures_of(run));
  }
  return mean_of(runs);
}

}  // namespace talweg
