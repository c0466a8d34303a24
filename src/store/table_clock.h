// The clock of one table on one shard: which pushes become updates and when, and which pulls must wait. There are two
// families, and a policy is an instance of one of them:
//
//   StepClock   bsp, backup(b)      the pushes of a step are summed and applied together
//   FreeClock   asp, ssp(s), value  a push is applied by itself, when it comes
//
// A worker's steps count from 0 in each table. It pulls a step, then pushes it; its clock is the step it has pulled
// and not yet pushed. Nothing here waits: the server asks, and asks again when `add` says that something changed.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "store/limits.h"
#include "store/sync.h"
#include "store/table.h"

namespace talweg {

enum class Arrival {
  kWanted,
  kRepeated,  // it was taken before
  kLate,      // its step went on without it
  kTooEarly,  // more than limits::kStepsAhead ahead
};

struct SyncMeter {
  // How many updates others made between a worker's pull and its push: counts of 0, 1, 2, ... and of all beyond.
  static constexpr size_t kStaleness = 65;
  std::array<uint64_t, kStaleness> staleness{};
  uint64_t updates = 0;
  uint64_t late = 0;       // pushes dropped
  int64_t widest_gap = 0;  // steps between the fastest worker and the slowest, when the fastest pulled
  double farthest = 0;     // value: how far the weights have been from those a worker computed with
};

class TableClock {
 public:
  static std::unique_ptr<TableClock> make(Table& table, uint32_t workers, uint32_t shards);
  virtual ~TableClock() = default;

  virtual Arrival judge(int64_t step, uint32_t rank) const = 0;
  // Takes a contribution that is wanted. True if pulls that wait may go on now.
  virtual bool add(int64_t step, uint32_t rank, Contribution contribution) = 0;
  // A push that comes late, for the count.
  void drop() { ++meter_.late; }

  virtual bool may_pull(int64_t step, uint32_t rank) const = 0;
  virtual void pulled(int64_t step, uint32_t rank) = 0;
  // Whether the values stay as they are until this worker pushes this step: then they may be sent from where they are.
  virtual bool rests_until_push(int64_t step, uint32_t rank) const = 0;

  // All steps before this one are over: what evaluation and export wait for.
  virtual int64_t settled() const = 0;
  // Pushes that were taken and wait for their turn.
  virtual size_t held() const = 0;
  // The workers that a pull of `step` waits for.
  virtual std::vector<uint32_t> missing(int64_t step) const = 0;

  const SyncMeter& meter() const { return meter_; }

 protected:
  TableClock(Table& table, uint32_t workers) : table_(table), workers_(workers) {}

  double rate_at(int64_t step) const { return table_.spec().optimizer.schedule.rate_at(step); }

  Table& table_;
  const uint32_t workers_;
  SyncMeter meter_;
};

// Which of the next steps have come, for each worker: kStepsAhead beyond the first that has not.
class ArrivalWindow {
 public:
  explicit ArrivalWindow(uint32_t workers) : bits_(workers) {}
  bool has(int64_t offset, uint32_t rank) const { return (bits_[rank] >> offset & 1) != 0; }
  void set(int64_t offset, uint32_t rank) { bits_[rank] |= uint32_t{1} << offset; }
  void shift(uint32_t rank) { bits_[rank] >>= 1; }

 private:
  static_assert(limits::kStepsAhead < 32);
  std::vector<uint32_t> bits_;
};

// Bulk-synchronous (Valiant, "A bridging model for parallel computation", 1990), with backup workers (Chen et al.,
// "Revisiting distributed synchronous SGD", 2016): a step is over when all but `backups` workers have pushed it. Their
// gradients are summed in the order of ranks, whatever order they come in, and the optimizer runs once: the result has
// the same bits for every order of arrival. Without backups, what is in turn is summed at once, which spreads the work.
class StepClock final : public TableClock {
 public:
  StepClock(Table& table, uint32_t workers, uint32_t backups);

  Arrival judge(int64_t step, uint32_t rank) const override;
  bool add(int64_t step, uint32_t rank, Contribution contribution) override;
  bool may_pull(int64_t step, uint32_t) const override { return step <= step_; }
  void pulled(int64_t, uint32_t) override {}
  bool rests_until_push(int64_t step, uint32_t rank) const override;
  int64_t settled() const override { return step_; }
  size_t held() const override { return held_count_; }
  std::vector<uint32_t> missing(int64_t step) const override;

 private:
  struct Slot {
    bool taken = false;
    std::optional<Contribution> contribution;  // until it is summed
  };
  Slot& slot(int64_t step, uint32_t rank);
  const Slot& slot(int64_t step, uint32_t rank) const { return const_cast<StepClock*>(this)->slot(step, rank); }
  void sum_in_turn();
  void end_step();
  void take_out(uint32_t rank);

  const uint32_t needed_;
  const bool in_turn_;
  int64_t step_ = 0;
  uint32_t arrived_ = 0;    // at the present step
  uint32_t next_rank_ = 0;  // whose turn it is to be summed
  std::vector<Slot> slots_;
  // By rank: the last step that was taken, and which of the kPastSteps before the present one were (the lowest bit is
  // the youngest). Pushes of one worker may overtake each other, so the last alone does not tell a late one.
  static constexpr int64_t kPastSteps = 64;
  std::vector<int64_t> latest_;
  std::vector<uint64_t> past_;
  size_t held_count_ = 0;
};

// Asynchronous (Dean et al., "Large scale distributed deep networks", 2012: Downpour), stale-synchronous (Ho et al.,
// "More effective distributed ML via a stale synchronous parallel parameter server", 2013) and bounded by value (Wei et
// al., "Managed communication and consistency for fast data-parallel iterative analytics", 2015). A worker always sees
// its own pushes. Where the table asks for it, a stale push counts less: its rate is divided by how many updates per
// worker it has missed (Jiang et al., "Heterogeneity-aware distributed parameter servers", 2017).
class FreeClock final : public TableClock {
 public:
  static constexpr int64_t kNoBound = INT64_MAX;
  // `distance`: 0 is no bound by value.
  FreeClock(Table& table, uint32_t workers, int64_t bound, double distance);

  Arrival judge(int64_t step, uint32_t rank) const override;
  bool add(int64_t step, uint32_t rank, Contribution contribution) override;
  bool may_pull(int64_t step, uint32_t rank) const override;
  void pulled(int64_t step, uint32_t rank) override;
  bool rests_until_push(int64_t, uint32_t) const override { return workers_ == 1; }
  int64_t settled() const override;
  size_t held() const override { return held_.size(); }
  std::vector<uint32_t> missing(int64_t step) const override;

 private:
  struct Held {
    int64_t step;
    uint32_t rank;
    double rate;
    Contribution contribution;
  };
  int64_t slowest() const;
  // Notes how stale the push is; returns what its rate is multiplied by for that.
  double note_staleness(uint32_t rank);
  void apply_held();
  // How far the weights may go before one who computes with old ones has them too far from its own.
  double room_beside(uint32_t rank) const;

  const int64_t bound_;
  const double distance_;
  std::vector<int64_t> pushed_;  // by rank: all steps before are in
  ArrivalWindow window_;
  std::vector<uint64_t> seen_;  // by rank: the number of updates when it pulled

  // By value. A push that would take the weights too far from what another worker computes with is held until that
  // one has pushed; those behind it wait too. The first is in the table's sum already.
  std::deque<Held> held_;
  bool first_is_summed_ = false;
  std::vector<bool> computing_;  // by rank: has pulled and not yet pushed
  std::vector<double> drift_;    // by rank: an upper bound of how far the weights went since it pulled
};

}  // namespace talweg
