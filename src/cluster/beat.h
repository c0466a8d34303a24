// Beats and the reasons they carry, to and from their wire form.
#pragma once

#include "base/status.h"
#include "cluster/cluster.pb.h"

namespace talweg {

// A reason longer than this is cut: an error text must not make a beat too large to send.
constexpr size_t kMaxReasonBytes = 4096;

std::string encode_beat(proto::Phase phase, const Status& reason);

struct HeardBeat {
  proto::Phase phase = proto::PHASE_UNSPECIFIED;
  Status reason;
};
Result<HeardBeat> decode_beat(const std::string& head);

// Whether a failure may be just what another node's death looks like from here.
bool may_be_consequence(const Status& failure);

}  // namespace talweg
