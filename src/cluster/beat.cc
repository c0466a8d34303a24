#include "cluster/beat.h"

#include "io/rpc.h"

namespace talweg {

std::string encode_beat(proto::Phase phase, const Status& reason) {
  proto::Beat beat;
  beat.set_phase(phase);
  beat.set_reason_code(static_cast<uint32_t>(reason.code()));
  beat.set_reason(reason.message().substr(0, kMaxReasonBytes));
  return serialize(beat);
}

Result<HeardBeat> decode_beat(const std::string& head) {
  proto::Beat beat;
  TRY(parse_head(head, &beat, "beat"));
  if (beat.phase() <= proto::PHASE_UNSPECIFIED || beat.phase() > proto::PHASE_LEAVING) {
    return error(Code::kCorrupt, "a beat has the unknown phase {}", static_cast<int>(beat.phase()));
  }
  if (beat.reason_code() > static_cast<uint32_t>(Code::kIo)) {
    return error(Code::kCorrupt, "a beat has the unknown reason code {}", beat.reason_code());
  }
  HeardBeat heard{.phase = beat.phase(), .reason = {}};
  if (beat.reason_code() != 0) heard.reason = Status(static_cast<Code>(beat.reason_code()), beat.reason());
  return heard;
}

bool may_be_consequence(const Status& failure) {
  const Code code = failure.code();
  return code == Code::kUnavailable || code == Code::kDeadline || code == Code::kCancelled;
}

}  // namespace talweg
