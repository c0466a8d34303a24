#include "cluster/beat.h"

#include <gtest/gtest.h>

#include "io/rpc.h"

namespace talweg {
namespace {

TEST(Beat, a_phase_and_its_reason_come_through) {
  const Result<HeardBeat> beat = decode_beat(encode_beat(proto::PHASE_DONE, error(Code::kCorrupt, "row 7")));
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(beat->phase, proto::PHASE_DONE);
  EXPECT_EQ(beat->reason.code(), Code::kCorrupt);
  EXPECT_EQ(beat->reason.message(), "row 7");
}

TEST(Beat, no_failure_comes_through_as_ok) {
  const Result<HeardBeat> beat = decode_beat(encode_beat(proto::PHASE_STOPPING, Status()));
  ASSERT_TRUE(beat.ok());
  EXPECT_TRUE(beat->reason.ok());
}

TEST(Beat, text_that_is_not_utf8_comes_through) {
  const Result<HeardBeat> beat = decode_beat(encode_beat(proto::PHASE_DONE, error(Code::kIo, "file '\xff\xfe'")));
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(beat->reason.message(), "file '\xff\xfe'");
}

TEST(Beat, a_long_reason_is_cut) {
  const Status failure(Code::kInvalid, std::string(10 * kMaxReasonBytes, 'x'));
  const Result<HeardBeat> beat = decode_beat(encode_beat(proto::PHASE_DONE, failure));
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(beat->reason.message().size(), kMaxReasonBytes);
}

TEST(Beat, bytes_that_are_no_beat_are_refused) {
  EXPECT_EQ(decode_beat("\xff\xff\xff").status().code(), Code::kCorrupt);
  EXPECT_EQ(decode_beat("").status().code(), Code::kCorrupt);  // no phase
  proto::Beat beat;
  beat.set_phase(static_cast<proto::Phase>(99));
  EXPECT_EQ(decode_beat(serialize(beat)).status().code(), Code::kCorrupt);
  beat.set_phase(proto::PHASE_RUNNING);
  beat.set_reason_code(200);
  EXPECT_EQ(decode_beat(serialize(beat)).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace talweg
