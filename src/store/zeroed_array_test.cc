#include "store/zeroed_array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace talweg {
namespace {

TEST(ZeroedArray, is_zero_and_aligned_whatever_its_size) {
  for (const Pages pages : {Pages::kSmall, Pages::kHuge}) {
    for (const size_t size : {size_t{1}, size_t{1000}, (size_t{1} << 18) - 1, size_t{1} << 18, (size_t{3} << 18) + 5}) {
      const ZeroedArray<uint64_t> array(size, pages);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
      uint64_t any = 0;
      for (size_t i = 0; i < size; ++i) any |= array[i];
      EXPECT_EQ(any, 0u);
      for (size_t i = 0; i < size; ++i) array[i] = i;
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(array[i], i);
    }
  }
}

TEST(ZeroedArray, moving_hands_the_memory_over) {
  ZeroedArray<int> first(10, Pages::kSmall);
  first[3] = 7;
  int* const data = first.data();
  ZeroedArray<int> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  ZeroedArray<int> third;
  third = std::move(second);
  EXPECT_EQ(third[3], 7);
  EXPECT_EQ(third.bytes(), 40u);
}

}  // namespace
}  // namespace talweg
