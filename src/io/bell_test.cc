// The bell: a sleeper is woken, whoever rings and whenever, and an awake node costs no system call.
#include "io/bell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <thread>

#include "io/shared_memory.h"

namespace talweg {
namespace {

bool rings(const Bell& bell, int timeout_ms) {
  pollfd poll{bell.event_fd(), POLLIN, 0};
  return ::poll(&poll, 1, timeout_ms) == 1;
}

Fd copy_of(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

TEST(Bell, an_awake_bell_makes_no_sound) {
  const auto bell = Bell::create();
  bell->ring();
  EXPECT_FALSE(rings(*bell, 0));
}

TEST(Bell, a_sleeping_bell_rings_until_it_is_drained) {
  const auto bell = Bell::create();
  bell->fall_asleep();
  bell->ring();
  bell->ring();
  EXPECT_TRUE(rings(*bell, 0));
  bell->wake_up();
  bell->drain();
  EXPECT_FALSE(rings(*bell, 0));
  bell->drain();
}

TEST(Bell, a_bell_opened_from_its_descriptors_is_the_same_bell) {
  const auto bell = Bell::create();
  const auto other = Bell::open(copy_of(bell->memory_fd()), copy_of(bell->event_fd()));
  ASSERT_NE(other, nullptr);
  bell->fall_asleep();
  other->ring();
  EXPECT_TRUE(rings(*bell, 0));
}

TEST(Bell, descriptors_that_are_not_a_bells_are_refused) {
  const auto bell = Bell::create();
  const auto open = [&bell](Fd memory, bool blocking = false) {
    return Bell::open(std::move(memory), Fd(::eventfd(0, EFD_CLOEXEC | (blocking ? 0 : EFD_NONBLOCK))));
  };
  EXPECT_EQ(open(Fd()), nullptr);
  EXPECT_EQ(open(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC))), nullptr);
  EXPECT_EQ(open(Fd(create_shared_memory("small", 100))), nullptr);
  Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(open(std::move(unsealed)), nullptr);
  EXPECT_EQ(open(copy_of(bell->memory_fd()), true), nullptr);
  EXPECT_EQ(Bell::open(copy_of(bell->memory_fd()), Fd()), nullptr);
  EXPECT_NE(open(copy_of(bell->memory_fd())), nullptr);
}

TEST(Bell, no_work_is_slept_over) {
  const auto bell = Bell::create();
  constexpr int kPieces = 20'000;
  std::atomic<int> work{0};
  std::thread giver([&] {
    for (int i = 0; i < kPieces; ++i) {
      work.fetch_add(1, std::memory_order_relaxed);
      bell->ring();
    }
  });
  int slept_over = 0;
  for (int seen = 0; seen < kPieces;) {
    bell->fall_asleep();
    if (work.load(std::memory_order_relaxed) == seen && !rings(*bell, 10'000)) ++slept_over;
    bell->wake_up();
    bell->drain();
    seen = work.load(std::memory_order_relaxed);
  }
  giver.join();
  EXPECT_EQ(slept_over, 0);
}

}  // namespace
}  // namespace talweg
