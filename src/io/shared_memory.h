// Anonymous shared memory: it has no name, so nothing remains of it when its last process is gone, however it went.
#pragma once

#include <cstddef>

namespace talweg {

// A descriptor of `bytes` of zeroed memory that can never shrink (a shrunk mapping would kill its readers), or -1.
int create_shared_memory(const char* name, size_t bytes);

// Maps memory another process made. Null unless it is at least `bytes` long and sealed against shrinking.
void* map_shared_memory(int fd, size_t bytes);

}  // namespace talweg
