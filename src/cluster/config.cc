#include "cluster/config.h"

#include "base/config.h"

namespace talweg {
namespace {

// A reconnection may cost a few beats; fewer than this and a hiccup of the network would be taken for a death.
constexpr int kLeastBeatsToLoss = 3;

}  // namespace

Status ClusterConfig::check() const {
  if (heartbeat <= Duration::zero()) return error(Code::kInvalid, "heartbeat must be more than 0");
  if (lost_after < heartbeat * kLeastBeatsToLoss) {
    return error(Code::kInvalid, "lost_after is {}: it must be at least {} heartbeats of {}",
                 format_duration(lost_after), kLeastBeatsToLoss, format_duration(heartbeat));
  }
  if (join_timeout <= Duration::zero()) return error(Code::kInvalid, "join_timeout must be more than 0");
  if (call_timeout <= Duration::zero()) return error(Code::kInvalid, "call_timeout must be more than 0");
  return {};
}

}  // namespace talweg
