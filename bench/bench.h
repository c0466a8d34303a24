// The built-in benchmarks, as `talweg bench` runs them. Each interleaves what it compares, shows medians, checks what
// it moved or computed, and returns an exit status.
#pragma once

namespace talweg::bench {

int io(int rounds);
int store(int rounds);
int store_scale(int rounds);
// With peers: scikit-learn and Vowpal Wabbit on the same rows, where bench/peers/setup.sh has installed them.
int clicks(int rounds, bool peers);
int hogwild(int rounds);

}  // namespace talweg::bench
