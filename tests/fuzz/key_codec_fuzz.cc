// Any bytes as packed keys; the first two are how many. Unpacking must not read out of bounds and must say what its
// plain twin says; what it accepts is in order, and packing that again takes no more bytes and gives the same keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "codec/key_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace talweg;
  uint16_t count = 0;
  if (size < sizeof count) return 0;
  std::memcpy(&count, data, sizeof count);
  // On the heap and exactly as long, so that a byte too far is seen.
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> packed(bytes + sizeof count, bytes + size);

  std::vector<uint64_t> keys(count), plain(count);
  const Status outcome = unpack_keys(packed, keys);
  CHECK(outcome.text() == scalar::unpack_keys(packed, plain).text());
  if (!outcome.ok()) {
    CHECK(outcome.code() == Code::kCorrupt && !outcome.message().empty());
    return 0;
  }
  CHECK(keys == plain);
  CHECK(std::is_sorted(keys.begin(), keys.end()));
  CHECK(count <= unpacked_bound(packed.size()));

  std::vector<std::byte> again(packed_bound(count));
  again.resize(pack_keys(keys, again));
  CHECK(again.size() <= packed.size());
  std::vector<uint64_t> same(count);
  CHECK(unpack_keys(again, same).ok() && same == keys);
  return 0;
}
