// Several jobs on the same shards: none sees, slows or fills up another.
#include <gtest/gtest.h>

#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1, kDense = 2;

TableSpec sparse_spec(uint32_t width) {
  return {.id = kSparse, .name = "emb", .width = width, .type = ValueType::kFloat64, .optimizer = {.lr = 1}};
}
TableSpec dense_spec(uint64_t size) {
  return {
      .id = kDense, .name = "w", .sparse = false, .size = size, .type = ValueType::kFloat64, .optimizer = {.lr = 1}};
}
std::vector<uint64_t> keys_from(uint64_t first, uint64_t count) {
  std::vector<uint64_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

// Two steps on tables whose ids are those of every job here.
Task<> work_in(StoreClient& client, uint32_t width, double gradient, TableDump<double>* sparse,
               TableDump<double>* dense) {
  CO_ASSERT_OK(co_await client.create(sparse_spec(width)));
  CO_ASSERT_OK(co_await client.create(dense_spec(10 * width)));
  const std::vector<uint64_t> keys = {1, 2, 3};
  KeyRoute route(client.shards());
  route.build(keys);
  std::vector<double> rows(3 * width, gradient), values(10 * width, gradient);
  for (int64_t step = 0; step < 2; ++step) {
    CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, rows));
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, step, 0, values));
  }
  Result<TableDump<double>> all_rows = co_await client.dump<double>(kSparse, 2);
  Result<TableDump<double>> all_values = co_await client.dump<double>(kDense, 2);
  CO_ASSERT_OK(all_rows.status());
  CO_ASSERT_OK(all_values.status());
  *sparse = std::move(*all_rows);
  *dense = std::move(*all_values);
}

TEST(Jobs, the_same_table_ids_in_two_jobs_are_different_tables) {
  TestStore store(3, 2);
  TableDump<double> sparse[3], dense[3];
  store.run([&](Io& io, StoreClient&, uint32_t rank) -> Task<> {
    const StoreJob job = rank < 2 ? StoreJob{.id = 7, .name = "two", .workers = 2, .max_bytes = 0}
                                  : StoreJob{.id = 8, .name = "one", .workers = 1, .max_bytes = 0};
    StoreClient client(io, store.peers(), job, rank % 2, store.config);
    co_await work_in(client, rank < 2 ? 1 : 3, rank < 2 ? 1 : 100, &sparse[rank], &dense[rank]);
  });
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_EQ(sparse[rank].values, std::vector<double>(3, -4)) << "two workers, two steps";
    EXPECT_EQ(dense[rank].values, std::vector<double>(10, -4));
  }
  EXPECT_EQ(sparse[2].values, std::vector<double>(9, -200)) << "one worker, two steps";
  EXPECT_EQ(dense[2].values, std::vector<double>(30, -200));
}

TEST(Jobs, a_job_over_its_quota_is_refused_whole_and_the_other_goes_on) {
  TestStore store(2, 1);
  store.run([&](Io& io, StoreClient&, uint32_t rank) -> Task<> {
    const bool limited = rank == 0;
    const StoreJob job{.id = 7 + rank, .name = "j", .workers = 1, .max_bytes = limited ? 4u << 20 : 0u};
    StoreClient client(io, store.peers(), job, 0, store.config);
    CO_ASSERT_OK(co_await client.create(sparse_spec(1)));
    const std::vector<uint64_t> few = keys_from(0, 10), many = keys_from(5, 200'000);
    KeyRoute route(1);
    route.build(few);
    const std::vector<double> few_gradients(few.size(), -1), many_gradients(many.size(), -1);
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, few_gradients));
    route.build(many);
    std::vector<double> rows(many.size());
    const Status pulled = co_await client.pull<double>(kSparse, 1, route, rows);
    const Status pushed = status_of(co_await client.push<double>(kSparse, 1, route, many_gradients));
    for (const Status& outcome : {pulled, pushed}) {
      EXPECT_EQ(outcome.code(), limited ? Code::kFull : Code::kOk) << outcome.text();
      if (limited) {
        EXPECT_EQ(outcome.message().substr(0, 25), "table 'emb' has 10 rows i") << outcome.text();
      }
    }
    if (limited) {
      // The step is still open, and takes what fits.
      route.build(few);
      CO_ASSERT_OK(co_await client.push<double>(kSparse, 1, route, few_gradients));
    }
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 2);
    CO_ASSERT_OK(dump.status());
    EXPECT_EQ(dump->keys.size(), limited ? 10u : 200'005u);
    EXPECT_EQ(dump->values[0], limited ? 2 : 1);
    EXPECT_EQ(dump->values[9], 2);
  });
}

TEST(Jobs, all_jobs_together_stay_within_the_shards_memory) {
  TestStore store(2, 1);
  store.config.max_bytes = 1 << 20;
  store.run([&](Io& io, StoreClient&, uint32_t rank) -> Task<> {
    const StoreJob job{.id = 7 + rank, .name = "j", .workers = 1, .max_bytes = 0};
    StoreClient client(io, store.peers(), job, 0, store.config);
    if (rank == 0) {
      CO_ASSERT_OK(co_await client.create(dense_spec(90'000)));
      CO_ASSERT_OK(co_await io.sleep(seconds(2)));
      CO_ASSERT_OK(co_await client.drop_job());
      co_return;
    }
    CO_ASSERT_OK(co_await io.sleep(seconds(1)));
    const Status full = co_await client.create(dense_spec(90'000));
    EXPECT_EQ(full.code(), Code::kFull);
    EXPECT_EQ(
        full.message(),
        "table 'w' takes 720000 bytes; of the 1048576 bytes that may be taken on a shard (store.max_bytes) 720000 "
        "are in use");
    CO_ASSERT_OK(co_await client.create(dense_spec(20'000)));
    CO_ASSERT_OK(co_await client.drop_job());
    CO_ASSERT_OK(co_await io.sleep(seconds(2)));
    CO_ASSERT_OK(co_await client.create(dense_spec(90'000)));
  });
}

TEST(Jobs, a_dropped_job_ends_its_waiting_pulls_and_gives_its_memory_back) {
  TestStore store(2, 2);
  store.config.max_bytes = 1 << 20;
  store.run([&](Io& io, StoreClient&, uint32_t rank) -> Task<> {
    const StoreJob job{.id = 7, .name = "gone", .workers = 2, .max_bytes = 0};
    StoreClient client(io, store.peers(), job, rank, store.config);
    CO_ASSERT_OK(co_await client.create(dense_spec(200'000)));
    std::vector<double> values(1);
    if (rank == 0) {
      CO_ASSERT_OK(co_await client.push_range<double>(kDense, 0, 0, values));
      const Status ended = co_await client.pull_range<double>(kDense, 1, 0, values);
      EXPECT_EQ(ended.text(), "not found: table 'w' is gone with its job");
      EXPECT_LT(io.now(), Time(seconds(2)));
      co_return;
    }
    CO_ASSERT_OK(co_await io.sleep(seconds(1)));
    CO_ASSERT_OK(co_await client.drop_job());
    CO_ASSERT_OK(co_await client.drop_job());  // a repeated call
    const Status unknown = co_await client.pull_range<double>(kDense, 0, 0, values);
    EXPECT_EQ(unknown.text(), "not found: shard 0 knows no such job");
    const Status no_stats = status_of(co_await client.stats());
    EXPECT_EQ(no_stats.text(), "not found: shard 0 knows no such job");

    const StoreJob next{.id = 8, .name = "next", .workers = 1, .max_bytes = 0};
    StoreClient successor(io, store.peers(), next, 0, store.config);
    CO_ASSERT_OK(co_await successor.create(dense_spec(200'000)));
    CO_ASSERT_OK(co_await successor.drop_job());
    // And under the old number, with other settings.
    const StoreJob again{.id = 7, .name = "again", .workers = 1, .max_bytes = 0};
    StoreClient other(io, store.peers(), again, 0, store.config);
    CO_ASSERT_OK(co_await other.create(dense_spec(10)));
    std::vector<double> fresh(10, 1);
    CO_ASSERT_OK(co_await other.pull_range<double>(kDense, 0, 0, fresh));
    EXPECT_EQ(fresh, std::vector<double>(10, 0));
  });
  for (const size_t bytes : store.server_bytes) EXPECT_LT(bytes, 1000u);
}

TEST(Jobs, who_takes_a_job_for_another_is_told) {
  TestStore store(1, 1);
  store.run([&](Io& io, StoreClient&, uint32_t) -> Task<> {
    const StoreJob job{.id = 7, .name = "mine", .workers = 2, .max_bytes = 1 << 20};
    StoreClient client(io, store.peers(), job, 0, store.config);
    CO_ASSERT_OK(co_await client.create(dense_spec(10)));
    CO_ASSERT_OK(co_await client.create(dense_spec(10)));
    for (int differs = 0; differs < 3; ++differs) {
      StoreJob other = job;
      if (differs == 0) other.name = "yours";
      if (differs == 1) other.workers = 3;
      if (differs == 2) other.max_bytes = 0;
      StoreClient stranger(io, store.peers(), other, 0, store.config);
      const Status refused = co_await stranger.create(dense_spec(10));
      EXPECT_EQ(refused.text(), fmt::format("invalid: job '{}' is there already, as 'mine' with 2 workers and 1048576 "
                                            "bytes",
                                            other.name));
    }
  });
}

TEST(Jobs, a_job_whose_first_table_is_refused_leaves_nothing_behind) {
  TestStore store(1, 1);
  store.run([&](Io& io, StoreClient&, uint32_t) -> Task<> {
    TableSpec spec = dense_spec(10);
    spec.sync = Sync::backup(2);
    const StoreJob job{.id = 7, .name = "j", .workers = 2, .max_bytes = 0};
    StoreClient client(io, store.peers(), job, 0, store.config);
    const Status refused = co_await client.create(spec);
    EXPECT_EQ(refused.text(), "invalid: table 'w': 2 of 2 workers cannot be backups: at least one is needed");
    StoreJob mended = job;
    mended.workers = 3;
    StoreClient next(io, store.peers(), mended, 0, store.config);
    CO_ASSERT_OK(co_await next.create(spec));
    StoreJob nobody = job;
    nobody.id = 9;
    nobody.workers = 0;
    StoreClient empty(io, store.peers(), nobody, 0, store.config);
    const Status none = co_await empty.create(dense_spec(10));
    EXPECT_EQ(none.text(), "invalid: job 'j' has 0 workers; 1 to 1048576 are allowed");
  });
}

TEST(Jobs, a_shard_serves_a_bounded_number_of_jobs) {
  TestStore store(1, 1);
  store.run([&](Io& io, StoreClient&, uint32_t) -> Task<> {
    for (uint64_t id = 0; id <= limits::kMaxJobs; ++id) {
      const StoreJob job{.id = id, .name = "j", .workers = 1, .max_bytes = 0};
      StoreClient client(io, store.peers(), job, 0, store.config);
      const Status made = co_await client.create(dense_spec(1));
      EXPECT_EQ(made.code(), id < limits::kMaxJobs ? Code::kOk : Code::kFull) << id;
    }
  });
}

}  // namespace
}  // namespace talweg
