// When the updates of a table's workers meet: the word that a job file gives, as `sync: ssp(4)`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace talweg {

struct Sync {
  enum class Kind {
    kBsp,     // a step is over when every worker has pushed it; only then may the next be pulled
    kAsp,     // nobody waits: a push is applied when it comes
    kSsp,     // as asp, but no worker is more than `steps` ahead of the slowest
    kBackup,  // as bsp, but a step is over without its `steps` slowest workers, whose pushes are dropped
    kValue,   // as asp, but the weights a worker computes with are never further than `distance` from the present ones
  };
  Kind kind = Kind::kBsp;
  int64_t steps = 0;
  double distance = 0;

  static Sync bsp() { return {}; }
  static Sync asp() { return {.kind = Kind::kAsp}; }
  static Sync ssp(int64_t bound) { return {.kind = Kind::kSsp, .steps = bound}; }
  static Sync backup(int64_t workers) { return {.kind = Kind::kBackup, .steps = workers}; }
  static Sync value(double distance) { return {.kind = Kind::kValue, .distance = distance}; }

  // "bsp", "asp", "ssp(4)", "backup(1)", "value(0.5)"
  static Result<Sync> from_text(std::string_view text);
  std::string text() const;

  bool operator==(const Sync&) const = default;
};

}  // namespace talweg
