// The shared-memory driver: nodes are processes of one host and one user. They meet over a socket in the abstract name
// space (no file), hand each other anonymous memory and bells over it, and keep it open: its end tells the peer's
// death.
#pragma once

#include "io/link.h"

namespace talweg::shm {

// Listens under a fresh name. `bell` is this node's own.
Result<std::unique_ptr<Transport>> make_transport(std::shared_ptr<Bell> bell);

}  // namespace talweg::shm
