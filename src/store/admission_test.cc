#include "store/admission.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace talweg {
namespace {

int touches_until_admitted(Admission& admission, uint64_t key) {
  for (int touches = 1; touches < 10'000; ++touches) {
    if (admission.admit(key)) return touches;
  }
  return 0;
}

TEST(Admission, a_key_is_admitted_at_the_touch_that_was_asked_for) {
  for (const uint32_t count : {1u, 2u, 5u, 255u}) {
    Admission admission({.admit_count = count, .admit_memory = 1 << 16});
    for (const uint64_t key : {uint64_t{0}, uint64_t{17}, ~uint64_t{0}}) {
      EXPECT_EQ(touches_until_admitted(admission, key), static_cast<int>(count));
    }
  }
}

TEST(Admission, other_keys_can_raise_a_count_but_not_lower_it) {
  for (uint64_t key = 0; key < 100; ++key) {
    // One block for all; too few touches for a halving.
    Admission admission({.admit_count = 3, .admit_memory = 64});
    bool admitted = admission.admit(key);
    admitted |= admission.admit(key);
    for (uint64_t other = 0; other < 12; ++other) static_cast<void>(admission.admit(1000 * (key + 1) + other));
    EXPECT_TRUE(admission.admit(key)) << key;
    EXPECT_FALSE(admitted);
  }
}

TEST(Admission, is_open_only_if_nobody_is_kept_out) {
  EXPECT_TRUE(Admission({}).open());
  EXPECT_FALSE(Admission({.admit_count = 2}).open());
  EXPECT_FALSE(Admission({.admit_probability = 0.5}).open());
}

TEST(Admission, keys_that_come_once_neither_get_in_nor_fill_the_counters) {
  Admission admission({.admit_count = 3, .admit_memory = 1 << 14});
  Rng rng(1);
  int admitted = 0;
  // Sixty times as many as there are counters: without halving all of them would be full.
  for (int i = 0; i < 1'000'000; ++i) admitted += admission.admit(rng.next());
  EXPECT_LE(admitted, 20'000);
}

TEST(Admission, keys_that_come_often_get_in_through_a_stream_of_others) {
  Admission admission({.admit_count = 3, .admit_memory = 1 << 14});
  Rng rng(2);
  for (uint64_t key = 1; key <= 100; ++key) {
    int touches = 0;
    bool admitted = false;
    while (!admitted && touches < 10) {
      for (int other = 0; other < 100; ++other) static_cast<void>(admission.admit(rng.next()));
      admitted = admission.admit(key);
      ++touches;
    }
    EXPECT_TRUE(admitted) << key;
  }
}

TEST(Admission, the_draw_has_its_probability_and_is_the_same_every_time) {
  Admission one({.admit_probability = 0.1}), same({.admit_probability = 0.1});
  int admitted = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const bool in = one.admit(i % 1000);
    ASSERT_EQ(in, same.admit(i % 1000));
    admitted += in;
  }
  EXPECT_NEAR(admitted, 10'000, 500);
}

TEST(Admission, its_memory_is_what_was_given) {
  EXPECT_EQ(Admission({}).bytes(), 0u);
  Admission admission({.admit_count = 2, .admit_memory = 1 << 20});
  EXPECT_EQ(admission.bytes(), 1u << 20);
}

}  // namespace
}  // namespace talweg
