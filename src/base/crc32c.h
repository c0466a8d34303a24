// CRC-32C (Castagnoli), as in iSCSI and ext4. Hardware where the machine has it, a table elsewhere; both give the same.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace talweg {

// The checksum of `bytes` appended to data whose checksum was `crc`.
uint32_t crc32c(Bytes bytes, uint32_t crc = 0);
uint32_t crc32c_portable(Bytes bytes, uint32_t crc = 0);

}  // namespace talweg
