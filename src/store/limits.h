// The store's bounds. Requests past them are refused with an error that says which bound it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace talweg::limits {

// Tables of one job, and jobs, on one shard.
constexpr uint32_t kMaxTables = 256;
constexpr uint32_t kMaxJobs = 256;
constexpr uint32_t kMaxWorkers = 1 << 20;
constexpr uint32_t kMaxShards = 1 << 16;
// Values in one row of a sparse table.
constexpr uint32_t kMaxWidth = 1 << 16;
// Rows of a sparse table on one shard: row numbers are 32 bits, and the last one means "no row".
constexpr uint64_t kMaxRows = 0xffff'fffe;
constexpr size_t kMaxNameBytes = 256;

// How many steps ahead of a table's clock a push may be.
constexpr int64_t kStepsAhead = 4;
// Pulls that wait for a table's clock, per shard; past the bound the caller is answered "overloaded".
constexpr size_t kWaitingPulls = 4096;
// Values and keys in one piece of an export.
constexpr size_t kExportPieceBytes = size_t{4} << 20;
// Key lists that a client takes a shard to know, per table.
constexpr size_t kKnownLists = 4096;
// Hottest keys that a table's statistics tell.
constexpr size_t kHotKeys = 10;
// Buffers that a client or a shard keeps for its next pulls and pushes.
constexpr size_t kSpareBuffers = 8;

}  // namespace talweg::limits
