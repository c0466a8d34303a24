#include "store/row_storage.h"

#include <gtest/gtest.h>

#include "optim/registry.h"

namespace talweg {
namespace {

std::unique_ptr<Optimizer<float>> adagrad(double initial) {
  auto made = OptimizerRegistry::standard().make<float>({.type = "adagrad", .initial_accumulator = initial});
  return std::move(*made);
}

TEST(RowStorage, growing_moves_no_row) {
  RowStorage<float> storage(3, *adagrad(0));
  storage.grow_to(1);
  float* const first = storage.row(0);
  storage.grow_to(1'000'000);
  EXPECT_EQ(storage.row(0), first);
  for (uint32_t r = 0; r < storage.size(); ++r) storage.row(r)[2] = static_cast<float>(r);
  for (uint32_t r = 0; r < storage.size(); ++r) ASSERT_EQ(storage.row(r)[2], static_cast<float>(r));
}

TEST(RowStorage, fresh_rows_have_zero_weights_and_the_optimizers_state) {
  RowStorage<float> storage(2, *adagrad(0.25));
  for (const uint32_t size : {1u, 5u, 200'000u}) {
    storage.grow_to(size);
    const std::vector<float> row(storage.row(size - 1), storage.row(size - 1) + 4);
    EXPECT_EQ(row, (std::vector<float>{0, 0, 0.25, 0.25}));
  }
}

TEST(RowStorage, memory_grows_with_the_rows) {
  RowStorage<float> storage(1, *adagrad(0));
  EXPECT_EQ(storage.bytes(), 0u);
  storage.grow_to(10);
  EXPECT_LE(storage.bytes(), RowStorage<float>::kChunkBytes);
  storage.grow_to(1'000'000);
  EXPECT_LE(storage.bytes(), 8'000'000 + RowStorage<float>::kChunkBytes);
}

TEST(RowStorage, rows_wider_than_a_chunk_have_one_each) {
  RowStorage<float> storage(1 << 20, *adagrad(0));
  storage.grow_to(3);
  storage.row(2)[(1 << 21) - 1] = 1;
  EXPECT_EQ(storage.bytes(), size_t{3} << 23);
}

}  // namespace
}  // namespace talweg
