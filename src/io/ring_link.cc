#include "io/ring_link.h"

namespace talweg {

Result<size_t> RingLink::write(std::span<const Bytes> parts) {
  if (ended()) return end_status();
  size_t done = 0;
  for (Bytes part : parts) {
    auto n = writer_.write(part);
    if (!n) return nonsense();
    if (*n < part.size()) {
      writer_.publish();
      writer_.ask_for_room();
      const auto more = writer_.write(part.subspan(*n));  // room made just before we asked would not ring
      if (!more) return nonsense();
      *n += *more;
    }
    done += *n;
    if (*n < part.size()) break;
  }
  writer_.publish();
  if (done > 0 && peer_bell_) peer_bell_->ring();
  return done;
}

Result<size_t> RingLink::read(MutableBytes first, MutableBytes) {
  const bool was_ended = ended();  // before the read: what was written before the end is not lost
  const auto n = reader_.read(first);
  if (!n) return nonsense();
  if (*n == 0 && was_ended) return end_status();
  if (*n > 0 && peer_bell_ && reader_.writer_wants_room()) peer_bell_->ring();
  return *n;
}

}  // namespace talweg
