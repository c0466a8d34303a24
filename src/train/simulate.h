// A job in the simulator, and scenarios: a job, a simulated cluster, faults, and what must hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  std::optional<double> loss, accuracy, rmse;
  bool reaches_target = false;
  std::optional<int64_t> clock_gap;
  uint64_t late = 0;
  bool same_model_without_faults = false;
  std::optional<Duration> within;

  template <class Fields>
  void fields(Fields& f) {
    f("outcome", outcome, "how the job ends: ok, fails");
    f("error", error, "a failing job's error contains this");
    f("auc", auc, "the held-out rows are ranked at least this well at the end", between(0, 1));
    f("loss", loss, "their loss is at most this");
    f("accuracy", accuracy, "and their accuracy at least this", between(0, 1));
    f("rmse", rmse, "and their root mean square error at most this", at_least(0));
    f("reaches_target", reaches_target, "the job's target is reached");
    f("clock_gap", clock_gap, "no worker is further ahead of the slowest, in steps, than this", at_least(0));
    f("late", late, "at least so many pushes come too late and are dropped", at_least(0));
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

// Settings replace single ones of the file, as "workload.distribute.sync=asp".
Result<Scenario> load_scenario(const std::string& path, const std::vector<std::string>& settings = {});

struct ScenarioRun {
  SimulatedRun run;
  Status held;  // what did not, else ok
};
ScenarioRun run_scenario(const Scenario& scenario, const TrainingData& data, uint64_t seed, const JobParts& parts);

// What a run came to. Of several runs: the means.
struct RunMeasures {
  double virtual_seconds = 0;
  std::optional<double> seconds_to_target;  // since the training began; none: a run did not reach it
  double steps = 0;                         // that were computed, of all workers together
  double idle_share = 0;                    // of the workers' time
  double staleness = 0;                     // updates by others between a worker's pull and its push, mean over pushes
  double late = 0;                          // pushes that were dropped
  double clock_gap = 0;                     // the widest
  double bytes = 0;                         // sent by the workers and received by them
  double loss = 0, auc = 0.5;               // of the held-out rows, at the end
};
RunMeasures measures_of(const SimulatedRun& run);
RunMeasures mean_of(const std::vector<RunMeasures>& runs);
// Runs all seeds, with a look at how they end only: an error when one does not end well.
Result<RunMeasures> measure(const Scenario& scenario, const TrainingData& data, const JobParts& parts);

}  // namespace talweg
