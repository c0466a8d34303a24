// Bell: how one node wakes another of the same host. A sleeper says so in memory both see, then waits on an eventfd;
// who has something for it looks there first, so a bell costs a system call only when someone sleeps.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <memory>

#include "base/fd.h"
#include "io/fence.h"

namespace talweg {

class Bell {
 public:
  // A bell of this node's own, in memory that can be handed to other processes.
  static std::shared_ptr<Bell> create();
  // Another process's bell, from what it handed over. Null when the descriptors are not what they should be.
  static std::shared_ptr<Bell> open(Fd memory, Fd event);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() {
    full_fence();
    if (asleep_->load(std::memory_order_relaxed) != 0 && asleep_->exchange(0) != 0) ring_asleep();
  }
  // After this, look once more for work; then wait on event_fd().
  void fall_asleep() {
    asleep_->store(1, std::memory_order_relaxed);
    full_fence();
  }
  void wake_up() { asleep_->store(0, std::memory_order_relaxed); }
  void drain();

  int memory_fd() const { return memory_.get(); }
  int event_fd() const { return event_.get(); }

 private:
  Bell(Fd memory, Fd event, std::atomic<uint32_t>* asleep)
      : memory_(std::move(memory)), event_(std::move(event)), asleep_(asleep) {}
  void ring_asleep();

  Fd memory_;
  Fd event_;
  std::atomic<uint32_t>* asleep_;
};

}  // namespace talweg
