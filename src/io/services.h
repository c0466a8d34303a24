// Every entry point of every layer, so that no two take the same number. The numbers travel: append only.
#pragma once

#include "io/mailbox.h"

namespace talweg::services {

// cluster/
constexpr Service kJoin = 1;
constexpr Service kBarrier = 2;
constexpr Service kReport = 3;
constexpr Service kLease = 4;
constexpr Service kRenewLease = 5;
constexpr Service kReleaseLease = 6;
// store/
constexpr Service kPull = 16;
constexpr Service kPush = 17;
constexpr Service kExport = 18;
constexpr Service kCreateTable = 19;
constexpr Service kDropJob = 20;
constexpr Service kFunction = 21;
constexpr Service kStats = 22;
// train/
constexpr Service kFeed = 32;

}  // namespace talweg::services

namespace talweg::tags {

// cluster/
constexpr Tag kBeat = 1;

}  // namespace talweg::tags
