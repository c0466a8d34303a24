// Sorted 64-bit keys as differences, packed to as many bits as each block of them needs. Lossless. What is unpacked
// came from outside: wrong bytes give an error, never a wrong order, a read out of bounds or memory that nobody asked
// for.
//
// Format: the first key (8 bytes), then the differences of the others, in blocks of kKeysPerBlock, the last one
// shorter. A block is its width in bits (1 byte, 0 to 64), then the differences, each in that many bits, lowest bits
// first, filled up with zero bits to a whole byte. No keys: no bytes.
//
// Pure functions. The twins in talweg::scalar say bit by bit what the fast ones do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"

namespace talweg {

// Few enough that a single far jump, as between the key ranges of two features, widens few keys; enough that the width
// costs an eighth of a bit for each.
constexpr size_t kKeysPerBlock = 64;

// How many bytes `keys` keys take at most.
size_t packed_bound(size_t keys);
// How many keys so many bytes hold at most: for those who must make room before they unpack.
size_t unpacked_bound(size_t packed_bytes);

// The keys must not fall; equal ones are allowed. `out` has room for packed_bound(). The number of bytes written.
size_t pack_keys(std::span<const uint64_t> sorted, MutableBytes out);
// As many keys as `out` has room for: the message that brought the bytes says how many. kCorrupt when the bytes are not
// exactly that many keys in order; `out` is then undefined.
Status unpack_keys(Bytes packed, std::span<uint64_t> out);

namespace scalar {

size_t pack_keys(std::span<const uint64_t> sorted, MutableBytes out);
Status unpack_keys(Bytes packed, std::span<uint64_t> out);

}  // namespace scalar
}  // namespace talweg
