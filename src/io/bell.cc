#include "io/bell.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "io/shared_memory.h"

namespace talweg {

constexpr size_t kBellBytes = 4096;

std::shared_ptr<Bell> Bell::create() {
  Fd memory(create_shared_memory("talweg-bell", kBellBytes));
  Fd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  auto bell = event.valid() ? open(std::move(memory), std::move(event)) : nullptr;
  CHECK(bell != nullptr);
  return bell;
}

std::shared_ptr<Bell> Bell::open(Fd memory, Fd event) {
  // A descriptor that blocks could hold up whoever rings.
  const int flags = ::fcntl(event.get(), F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0) return nullptr;
  void* mapped = map_shared_memory(memory.get(), kBellBytes);
  if (mapped == nullptr) return nullptr;
  auto* asleep = static_cast<std::atomic<uint32_t>*>(mapped);  // zeroed memory is an awake bell
  return std::shared_ptr<Bell>(new Bell(std::move(memory), std::move(event), asleep));
}

Bell::~Bell() { ::munmap(asleep_, kBellBytes); }

void Bell::ring_asleep() {
  const uint64_t one = 1;
  // A full counter (EAGAIN) already wakes the sleeper; nothing else can go wrong with an open eventfd.
  static_cast<void>(!::write(event_.get(), &one, sizeof one));
}

void Bell::drain() {
  uint64_t count;
  static_cast<void>(!::read(event_.get(), &count, sizeof count));
}

}  // namespace talweg
