// A job in the simulator, and scenarios: a job, a simulated cluster, faults, and what must hold.
#pragma once

#include <string>

#include "sim/config.h"
#include "train/node.h"

namespace talweg {

struct SimulatedRun {
  JobResult job;
  Status world;  // stuck, or over a limit
  uint64_t trace_hash = 0;
  double virtual_seconds = 0;
  int64_t events = 0;
};

SimulatedRun simulate(const JobConfig& job, const TrainingData& data, const SimConfig& config, const Faults& faults,
                      const JobParts& parts, JobEvents events = {});

enum class Outcome { kOk, kFails };
template <>
struct Choices<Outcome> {
  static constexpr std::string_view names[] = {"ok", "fails"};
};

struct Expectation {
  Outcome outcome = Outcome::kOk;
  std::string error;
  double auc = 0;
  bool same_model_without_faults = false;
  std::optional<Duration> within;

  template <class Fields>
  void fields(Fields& f) {
    f("outcome", outcome, "how the job ends: ok, fails");
    f("error", error, "a failing job's error contains this");
    f("auc", auc, "the held-out rows are ranked at least this well at the end", between(0, 1));
    f("same_model_without_faults", same_model_without_faults, "the model has the bits it has without faults");
    f("within", within, "virtual time");
  }
};

struct Scenario {
  std::string about;
  int64_t seeds = 1;
  SimConfig cluster;
  Faults faults;
  JobConfig workload;
  Expectation expect;

  template <class Fields>
  void fields(Fields& f) {
    f("about", about, "what this shows");
    f("seeds", seeds, "run with so many seeds, from 1 on", at_least(1));
    f("cluster", cluster, "the simulated machines");
    f("faults", faults, "what happens to them");
    f("workload", workload, "the job");
    f("expect", expect, "what must hold");
  }
};

Result<Scenario> load_scenario(const std::string& path);

struct ScenarioRun {
  SimulatedRun run;
  Status held;  // what did not, else ok
};
ScenarioRun run_scenario(const Scenario& scenario, const TrainingData& data, uint64_t seed, const JobParts& parts);

}  // namespace talweg
