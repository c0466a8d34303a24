// A loop over independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace talweg {

// The number of threads to use when `wanted` were asked for; 0 asks for one per core.
inline size_t thread_count(size_t wanted) {
  return wanted > 0 ? wanted : std::max<size_t>(1, std::thread::hardware_concurrency());
}

// Calls `body(i)` once for each i below `count`, on up to `threads` threads, the caller's among them. Pieces are begun
// in rising order. Returns when all are done.
template <class Body>
void parallel_for(size_t threads, size_t count, Body body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < std::min(thread_count(threads), count); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace talweg
