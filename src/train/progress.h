// What the coordinator knows of a running job: the workers' reports, added up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/mailbox.h"
#include "model/metrics.h"
#include "train/train.pb.h"

namespace talweg {

struct EpochResult {
  uint64_t epoch = 0;  // from 0
  uint64_t rows = 0;   // held out; none: nothing was evaluated
  double loss = 0;
  double auc = 0.5;
  std::vector<std::pair<std::string, double>> summary = {};  // every measure that applies, by name
  double seconds = 0;                                        // since the training began

  std::optional<double> measure(std::string_view name) const;
};

struct Progress {
  double seconds = 0;  // since the first report's step began
  uint64_t epoch = 0, epochs = 0;
  uint64_t step = 0, steps = 0;  // of the slowest worker, over all epochs
  uint64_t rows = 0;             // used for training, over all epochs
  double rows_per_second = 0;
  double loss = 0;  // mean over the rows reported last by each worker
  uint64_t bytes = 0, messages = 0;
  double idle_share = 0;                  // of the workers' time that they waited
  std::optional<EpochResult> evaluation;  // the latest
};

class ProgressBoard {
 public:
  // No epochs: a stream's, of which nobody knows how many there will be.
  ProgressBoard(uint64_t epochs, uint64_t steps, uint32_t workers)
      : epochs_(epochs), steps_(steps), workers_(workers) {}

  // The clock starts here.
  void start(Time now) { started_ = now; }
  // True when it completed the evaluation of an epoch.
  Result<bool> add(Peer from, const std::string& payload, Time now);

  Progress progress() const;
  // The workers' latest, in the order of their ranks.
  std::vector<proto::WorkerReport> workers() const;
  // Rounds that the tables have been through.
  int64_t rounds() const;
  const std::vector<EpochResult>& epochs() const { return results_; }

 private:
  // Kept as they came until all are there: merged in the order of the workers, they give the same bits however late
  // each was.
  using Parts = std::map<Peer, std::string>;

  Result<bool> add_evaluation(Peer from, const proto::Evaluation& part);
  static Result<EpochResult> merged(uint64_t epoch, const Parts& parts);

  uint64_t epochs_, steps_;
  uint32_t workers_;
  Time started_{}, latest_{};
  std::map<Peer, proto::WorkerReport> reports_;
  std::map<uint64_t, Parts> evaluating_;
  std::vector<EpochResult> results_;
};

}  // namespace talweg
