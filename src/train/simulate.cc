#include "train/simulate.h"

#include "sim/world.h"

namespace talweg {
namespace {

Status check(const Expectation& expect, const SimulatedRun& run) {
  const Status& outcome = run.job.status;
  if (!run.world.ok()) return run.world.within("the run did not end");
  if (expect.outcome == Outcome::kOk && !outcome.ok())
    return error(Code::kInvalid, "the job failed: {}", outcome.text());
  if (expect.outcome == Outcome::kFails && outcome.ok()) return Status(Code::kInvalid, "the job did not fail");
  if (!expect.error.empty() && outcome.message().find(expect.error) == std::string::npos) {
    return error(Code::kInvalid, "the error does not say '{}': {}", expect.error, outcome.text());
  }
  const double auc = run.job.epochs.empty() ? 0 : run.job.epochs.back().auc;
  if (expect.auc > 0 && auc < expect.auc) return error(Code::kInvalid, "AUC {:.4f}, not {:.4f}", auc, expect.auc);
  if (expect.within && run.virtual_seconds > to_seconds(*expect.within)) {
    return error(Code::kInvalid, "took {:.3f} s of virtual time, not {}", run.virtual_seconds,
                 format_duration(*expect.within));
  }
  return {};
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

Result<Scenario> load_scenario(const std::string& path) {
  ASSIGN(const std::string text, read_text_file(path));
  ASSIGN(Scenario scenario, config_from_text<Scenario>(text, path));
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

}  // namespace talweg
