#include "store/config.h"

namespace talweg {

StoreServerCounters& StoreServerCounters::operator+=(const StoreServerCounters& other) {
  pulls += other.pulls;
  pushes += other.pushes;
  keys_pulled += other.keys_pulled;
  keys_pushed += other.keys_pushed;
  keys_received += other.keys_received;
  lists_known += other.lists_known;
  lists_needed += other.lists_needed;
  pushes_repeated += other.pushes_repeated;
  pushes_held += other.pushes_held;
  zeroed += other.zeroed;
  refused += other.refused;
  clock_wait += other.clock_wait;
  return *this;
}

}  // namespace talweg
