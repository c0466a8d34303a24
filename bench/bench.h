// The built-in benchmarks, as `talweg bench` runs them. Each interleaves what it compares, shows medians, checks what
// it moved or computed, and returns an exit status.
#pragma once

namespace talweg::bench {

int io(int rounds);
int store(int rounds);
int clicks(int rounds);

}  // namespace talweg::bench
