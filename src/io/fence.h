// A full memory fence: what was stored before it is seen by others before anything after it is read. It orders "I fall
// asleep" against "is there work?" on one side and "here is work" against "does it sleep?" on the other.
#pragma once

#include <atomic>

namespace talweg {

// The thread sanitizer does not know fences, and GCC warns that it does not. No data is handed over by these: the
// rings' positions do that, with acquire and release.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace talweg
