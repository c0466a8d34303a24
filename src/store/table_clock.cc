#include "store/table_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace talweg {

std::unique_ptr<TableClock> TableClock::make(Table& table, uint32_t workers, uint32_t shards) {
  const Sync& sync = table.spec().sync;
  switch (sync.kind) {
    case Sync::Kind::kBsp: return std::make_unique<StepClock>(table, workers, 0);
    case Sync::Kind::kBackup: return std::make_unique<StepClock>(table, workers, static_cast<uint32_t>(sync.steps));
    case Sync::Kind::kAsp: return std::make_unique<FreeClock>(table, workers, FreeClock::kNoBound, 0);
    case Sync::Kind::kSsp: return std::make_unique<FreeClock>(table, workers, sync.steps, 0);
    case Sync::Kind::kValue: break;
  }
  // Each shard sees its own part of the weights: if every part is within this, the whole is within the distance.
  return std::make_unique<FreeClock>(table, workers, FreeClock::kNoBound, sync.distance / std::sqrt(shards));
}

// --- StepClock

StepClock::StepClock(Table& table, uint32_t workers, uint32_t backups)
    : TableClock(table, workers),
      needed_(workers - backups),
      in_turn_(backups == 0),
      slots_((limits::kStepsAhead + 1) * workers),
      latest_(workers, -1),
      past_(workers) {
  CHECK(backups < workers);
}

StepClock::Slot& StepClock::slot(int64_t step, uint32_t rank) {
  return slots_[static_cast<size_t>(step) % (limits::kStepsAhead + 1) * workers_ + rank];
}

Arrival StepClock::judge(int64_t step, uint32_t rank) const {
  if (step > latest_[rank] && step < step_) return Arrival::kLate;
  if (step < step_ - kPastSteps) return Arrival::kRepeated;
  if (step < step_) return (past_[rank] >> (step_ - 1 - step) & 1) != 0 ? Arrival::kRepeated : Arrival::kLate;
  if (step > step_ + limits::kStepsAhead) return Arrival::kTooEarly;
  return slot(step, rank).taken ? Arrival::kRepeated : Arrival::kWanted;
}

bool StepClock::rests_until_push(int64_t step, uint32_t rank) const {
  return in_turn_ && step == step_ && !slot(step, rank).taken;
}

std::vector<uint32_t> StepClock::missing(int64_t) const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (!slot(step_, rank).taken) ranks.push_back(rank);
  }
  return ranks;
}

bool StepClock::add(int64_t step, uint32_t rank, Contribution contribution) {
  CHECK(judge(step, rank) == Arrival::kWanted);
  const int64_t before = step_;
  slot(step, rank) = {.taken = true, .contribution = std::move(contribution)};
  latest_[rank] = std::max(latest_[rank], step);
  ++held_count_;
  if (step == step_) ++arrived_;
  if (in_turn_) sum_in_turn();
  while (arrived_ == needed_) {
    end_step();
    if (in_turn_) sum_in_turn();
  }
  return step_ != before;
}

// With one worker there is nothing to sum.
void StepClock::take_out(uint32_t rank) {
  auto& contribution = slot(step_, rank).contribution;
  if (needed_ == 1) {
    table_.apply_one(*contribution, rate_at(step_));
  } else {
    table_.accumulate(*contribution);
  }
  contribution.reset();
  --held_count_;
}

void StepClock::sum_in_turn() {
  while (next_rank_ < workers_ && slot(step_, next_rank_).contribution) take_out(next_rank_++);
}

void StepClock::end_step() {
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (slot(step_, rank).contribution) take_out(rank);
    past_[rank] = past_[rank] << 1 | (slot(step_, rank).taken ? 1 : 0);
    slot(step_, rank).taken = false;
  }
  if (needed_ > 1) table_.apply(rate_at(step_));
  ++meter_.updates;
  meter_.staleness[0] += needed_;
  ++step_;
  next_rank_ = 0;
  arrived_ = 0;
  for (uint32_t rank = 0; rank < workers_; ++rank) arrived_ += slot(step_, rank).taken ? 1 : 0;
}

// --- FreeClock

FreeClock::FreeClock(Table& table, uint32_t workers, int64_t bound, double distance)
    : TableClock(table, workers),
      bound_(bound),
      distance_(distance),
      pushed_(workers),
      window_(workers),
      seen_(workers),
      computing_(workers),
      drift_(workers) {}

int64_t FreeClock::slowest() const { return *std::min_element(pushed_.begin(), pushed_.end()); }

Arrival FreeClock::judge(int64_t step, uint32_t rank) const {
  const int64_t ahead = step - pushed_[rank];
  if (ahead < 0) return Arrival::kRepeated;
  if (ahead > limits::kStepsAhead) return Arrival::kTooEarly;
  return window_.has(ahead, rank) ? Arrival::kRepeated : Arrival::kWanted;
}

bool FreeClock::may_pull(int64_t step, uint32_t rank) const {
  if (pushed_[rank] < step) return false;
  for (const Held& held : held_) {
    if (held.rank == rank) return false;
  }
  return step - slowest() <= bound_;
}

int64_t FreeClock::settled() const {
  int64_t settled = slowest();
  for (const Held& held : held_) settled = std::min(settled, held.step);
  return settled;
}

void FreeClock::pulled(int64_t step, uint32_t rank) {
  // A repeated call may be answered after the worker has gone on, and that it computes would not be true then.
  if (step < pushed_[rank]) return;
  meter_.widest_gap = std::max(meter_.widest_gap, step - slowest());
  seen_[rank] = meter_.updates;
  computing_[rank] = true;
  drift_[rank] = 0;
}

std::vector<uint32_t> FreeClock::missing(int64_t step) const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (step - pushed_[rank] > std::min<int64_t>(bound_, INT64_MAX / 2) || (!held_.empty() && computing_[rank])) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

double FreeClock::note_staleness(uint32_t rank) {
  // A shard that holds nothing of what a worker pulls is not asked, but hears of its push: that one is not stale.
  if (!computing_[rank]) return 1;
  const uint64_t missed = meter_.updates - seen_[rank];
  ++meter_.staleness[std::min<uint64_t>(missed, SyncMeter::kStaleness - 1)];
  if (!table_.spec().rate_by_staleness) return 1;
  return 1 / std::max(1.0, static_cast<double>(missed) / workers_);
}

bool FreeClock::add(int64_t step, uint32_t rank, Contribution contribution) {
  CHECK(judge(step, rank) == Arrival::kWanted);
  window_.set(step - pushed_[rank], rank);
  for (; window_.has(0, rank); ++pushed_[rank]) window_.shift(rank);
  const double rate = note_staleness(rank) * rate_at(step);
  computing_[rank] = false;
  if (distance_ > 0) {
    held_.push_back({.step = step, .rank = rank, .rate = rate, .contribution = std::move(contribution)});
    apply_held();
  } else {
    table_.apply_one(contribution, rate);
    ++meter_.updates;
  }
  return true;
}

double FreeClock::room_beside(uint32_t rank) const {
  double room = std::numeric_limits<double>::infinity();
  for (uint32_t other = 0; other < workers_; ++other) {
    if (other != rank && computing_[other]) room = std::min(room, distance_ - drift_[other]);
  }
  return room;
}

void FreeClock::apply_held() {
  while (!held_.empty()) {
    const Held& first = held_.front();
    if (!first_is_summed_) table_.accumulate(first.contribution);
    const double room = room_beside(first.rank);
    double moved = 0;
    first_is_summed_ = std::isfinite(room) && !table_.apply_if(first.rate, room, &moved);
    if (first_is_summed_) return;
    if (!std::isfinite(room)) table_.apply(first.rate);
    ++meter_.updates;
    for (uint32_t other = 0; other < workers_; ++other) {
      if (other == first.rank || !computing_[other]) continue;
      drift_[other] += moved;
      meter_.farthest = std::max(meter_.farthest, drift_[other]);
    }
    held_.pop_front();
  }
}

}  // namespace talweg
