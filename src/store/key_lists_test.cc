// Key lists that travel as a hash: what a shard remembers, what that saves, and that it is never wrong.
#include "store/key_lists.h"

#include <gtest/gtest.h>

#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

// --- The lists themselves

std::shared_ptr<KeyList> list_of(KeyLists& lists, uint64_t hash, size_t rows, Time made = Time(seconds(1))) {
  auto list = lists.make();
  list->hash = hash;
  list->made = made;
  list->rows.assign(rows, static_cast<uint32_t>(hash));
  return list;
}

TEST(KeyLists, a_list_is_found_by_its_hash_and_size_while_its_rows_are_there) {
  KeyLists lists(1 << 20);
  lists.keep(list_of(lists, 5, 3, Time(seconds(10))));
  ASSERT_NE(lists.find(5, 3, Time()), nullptr);
  EXPECT_EQ(lists.find(5, 3, Time())->rows, std::vector<uint32_t>(3, 5));
  EXPECT_EQ(lists.find(6, 3, Time()), nullptr);
  EXPECT_EQ(lists.find(5, 4, Time()), nullptr);
  EXPECT_NE(lists.find(5, 3, Time(seconds(9))), nullptr);
  EXPECT_EQ(lists.find(5, 3, Time(seconds(10))), nullptr) << "rows of that time were freed";
  lists.keep(list_of(lists, 5, 4, Time(seconds(20))));
  EXPECT_EQ(lists.find(5, 3, Time()), nullptr);
  EXPECT_NE(lists.find(5, 4, Time(seconds(10))), nullptr) << "the same hash again takes the place of the old one";
}

TEST(KeyLists, the_least_recently_used_go_when_their_memory_is_over_the_bound) {
  constexpr size_t kBound = 64 << 10;
  KeyLists lists(kBound);
  for (uint64_t hash = 1; hash <= 1000; ++hash) {
    lists.keep(list_of(lists, hash, 100));
    ASSERT_NE(lists.find(1, 100, Time()), nullptr) << "it is used all the time";
    ASSERT_LE(lists.bytes(), kBound);
  }
  EXPECT_GE(lists.bytes(), kBound / 2);
  EXPECT_NE(lists.find(1000, 100, Time()), nullptr);
  EXPECT_NE(lists.find(950, 100, Time()), nullptr);
  EXPECT_EQ(lists.find(2, 100, Time()), nullptr);
}

TEST(KeyLists, the_newest_stays_whatever_its_size) {
  KeyLists lists(100);
  lists.keep(list_of(lists, 1, 10'000));
  EXPECT_NE(lists.find(1, 10'000, Time()), nullptr);
  lists.keep(list_of(lists, 2, 10'000));
  EXPECT_NE(lists.find(2, 10'000, Time()), nullptr);
  EXPECT_EQ(lists.find(1, 10'000, Time()), nullptr);
}

TEST(KeyLists, a_list_that_went_keeps_its_rows_for_who_still_uses_it) {
  KeyLists lists(0);
  lists.keep(list_of(lists, 1, 100));
  const std::shared_ptr<const KeyList> used = lists.find(1, 100, Time());
  lists.keep(list_of(lists, 2, 100));
  const auto next = list_of(lists, 3, 100);
  EXPECT_NE(next.get(), used.get());
  EXPECT_EQ(used->rows, std::vector<uint32_t>(100, 1));
}

// --- In a store

constexpr TableId kSparse = 1;

TableSpec sparse_spec() { return {.id = kSparse, .name = "emb", .type = ValueType::kFloat64, .optimizer = {.lr = 1}}; }
std::vector<uint64_t> keys_from(uint64_t first, uint64_t count) {
  std::vector<uint64_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}
StoreServerCounters sum_of(const std::vector<StoreServerCounters>& shards) {
  StoreServerCounters sum;
  for (const StoreServerCounters& counters : shards) sum += counters;
  return sum;
}

TEST(KeyLists, keys_that_come_again_are_not_sent_again) {
  constexpr uint64_t kKeys = 100, kSteps = 4, kShards = 2;
  TestStore store(1, kShards);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    const std::vector<uint64_t> keys = keys_from(0, kKeys);
    KeyRoute route(kShards);
    std::vector<double> rows(kKeys);
    for (int64_t step = 0; step < int64_t{kSteps}; ++step) {
      route.build(keys);
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
      EXPECT_EQ(rows, std::vector<double>(kKeys, static_cast<double>(-step)));
      const std::vector<double> gradients(kKeys, 1);
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
    }
  });
  const StoreServerCounters counters = sum_of(store.server_counters);
  EXPECT_EQ(counters.keys_received, kKeys);
  EXPECT_EQ(counters.lists_known, kShards * (2 * kSteps - 1));
  EXPECT_EQ(counters.lists_needed, 0u);
  EXPECT_EQ(store.client_counters[0].lists_known, kShards * (2 * kSteps - 1));
  EXPECT_EQ(store.client_counters[0].bytes_pulled, 8 * kKeys * (kSteps + 1));
  EXPECT_EQ(store.client_counters[0].bytes_pushed, 8 * kKeys * kSteps);
}

uint64_t bytes_pushed(bool same_keys) {
  TestStore store(1, 2);
  uint64_t sent = 0;
  store.run([&](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    KeyRoute route(2);
    const std::vector<double> gradients(1000, 1);
    const uint64_t before = io.counters().bytes_sent;
    for (int64_t step = 0; step < 40; ++step) {
      const std::vector<uint64_t> keys = keys_from(same_keys ? 0 : 1000 * static_cast<uint64_t>(step), 1000);
      route.build(keys);
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
    }
    sent = io.counters().bytes_sent - before;
  });
  return sent;
}

TEST(KeyLists, repeated_keys_of_width_one_save_nearly_half_of_what_pushes_send) {
  EXPECT_LE(static_cast<double>(bytes_pushed(true)), 0.55 * static_cast<double>(bytes_pushed(false)));
}

TEST(KeyLists, a_list_that_a_shard_has_forgotten_is_sent_again) {
  TestStore store(1, 2);
  store.config.key_cache = 0;
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    const std::vector<uint64_t> first = keys_from(0, 50), second = keys_from(25, 50);
    KeyRoute route(2), other(2);
    route.build(first);
    other.build(second);
    std::vector<double> rows(50);
    const std::vector<double> gradients(50, 1);
    for (int64_t step = 0; step < 3; ++step) {
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
      EXPECT_EQ(rows, std::vector<double>(50, static_cast<double>(-step)));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, other, rows));
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
    }
    EXPECT_GE(client.counters().lists_resent, 2u * 3u);
  });
  EXPECT_EQ(sum_of(store.server_counters).lists_needed, store.client_counters[0].lists_resent);
}

TEST(KeyLists, after_an_intent_the_pull_sends_no_keys) {
  TestStore store(2, 2);
  store.run([](Io&, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    if (rank == 1) co_return;
    const std::vector<uint64_t> keys = keys_from(0, 100);
    KeyRoute route(2);
    route.build(keys);
    std::vector<double> rows(100);
    const std::vector<double> gradients(100, 1);
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    const std::vector<uint64_t> next = keys_from(1000, 100);
    route.build(next);
    const uint64_t before = client.counters().bytes_pulled;
    CO_ASSERT_OK(co_await client.intent(kSparse, route));
    EXPECT_EQ(client.counters().bytes_pulled - before, 800u) << "the keys, no values";
    CO_ASSERT_OK(co_await client.intent(kSparse, route));
    EXPECT_EQ(client.counters().bytes_pulled - before, 800u) << "known already";
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    EXPECT_EQ(client.counters().bytes_pulled - before, 1600u) << "the values, no keys";
    EXPECT_EQ(rows, std::vector<double>(100, 0));
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 0);
    CO_ASSERT_OK(dump.status());
    EXPECT_EQ(dump->keys.size(), 200u) << "an intent makes rows";
    const Status unknown = co_await client.intent(77, route);
    EXPECT_EQ(unknown.code(), Code::kNotFound);
  });
  EXPECT_EQ(sum_of(store.server_counters).pulls, 2u) << "an intent is no pull";
}

TEST(KeyLists, keys_without_a_row_are_looked_at_again_until_they_are_admitted) {
  TestStore store(1, 1);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    TableSpec spec = sparse_spec();
    spec.rows.admit_count = 3;
    CO_ASSERT_OK(co_await client.create(spec));
    const std::vector<uint64_t> keys = {7, 8};
    KeyRoute route(1);
    route.build(keys);
    std::vector<double> rows(2);
    const std::vector<double> gradients = {1, 2};
    for (int64_t step = 0; step < 5; ++step) {
      // It must not count as a touch, nor keep the keys from being looked at.
      CO_ASSERT_OK(co_await client.intent(kSparse, route));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
      const double updates = static_cast<double>(std::max<int64_t>(0, step - 2));
      EXPECT_EQ(rows, (std::vector<double>{-updates, -2 * updates})) << "at step " << step;
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
    }
  });
}

// --- Where untouched rows go

TableSpec expiring_spec() {
  TableSpec spec = sparse_spec();
  spec.rows.expire_after = seconds(100);
  return spec;
}

// Takes the rows of keys that have expired: new rows sweep the table.
Task<> fill_with_others(StoreClient& client, int64_t step, double gradient) {
  const std::vector<uint64_t> others = keys_from(1'000'000, 500);
  KeyRoute route(client.shards());
  route.build(others);
  std::vector<double> rows(500);
  const std::vector<double> gradients(500, gradient);
  CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
  CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
}

TEST(Expiry, a_list_does_not_lead_to_rows_that_have_gone_to_other_keys) {
  // Whether or not an evaluation looks the keys up meanwhile, which touches no row.
  for (const bool evaluated : {false, true}) {
    TestStore store(2, 1);
    store.config.clock_timeout = seconds(10);
    store.run([&](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
      TableSpec spec = expiring_spec();
      spec.sync = Sync::asp();
      CO_ASSERT_OK(co_await client.create(spec));
      const std::vector<uint64_t> keys = keys_from(0, 100);
      KeyRoute route(1);
      route.build(keys);
      std::vector<double> rows(100);
      const std::vector<double> gradients(100, -1);
      if (rank == 0) {
        CO_ASSERT_OK(co_await io.sleep(seconds(90)));
        if (evaluated) CO_ASSERT_OK(co_await client.read<double>(kSparse, 0, route, rows));
        if (evaluated) {
          EXPECT_EQ(rows, std::vector<double>(100, 1));
        }
        CO_ASSERT_OK(co_await io.sleep(seconds(15)));
        co_await fill_with_others(client, 0, -77);
        co_return;
      }
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
      CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
      CO_ASSERT_OK(co_await io.sleep(seconds(110)));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
      EXPECT_EQ(rows, std::vector<double>(100, 0)) << "they are new again";
      CO_ASSERT_OK(co_await client.push<double>(kSparse, 1, route, gradients));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, 2, route, rows));
      EXPECT_EQ(rows, std::vector<double>(100, 1));
    });
  }
}

TEST(Expiry, a_push_that_waits_for_its_turn_finds_its_rows_when_it_comes) {
  TestStore store(2, 1);
  store.config.clock_timeout = seconds(30);
  store.run([](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(expiring_spec()));
    const std::vector<uint64_t> keys = keys_from(0, 100);
    KeyRoute route(1);
    route.build(keys);
    std::vector<double> rows(100);
    const std::vector<double> gradients(100, -1);
    if (rank == 0) {
      CO_ASSERT_OK(co_await io.sleep(seconds(105)));
      co_await fill_with_others(client, 0, 0);
      co_return;
    }
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    CO_ASSERT_OK(co_await io.sleep(seconds(90)));  // almost as long as rows stay
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
    EXPECT_EQ(rows, std::vector<double>(100, 1));
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 1);
    CO_ASSERT_OK(dump.status());
    EXPECT_EQ(dump->keys.size(), 600u);
    for (size_t i = 100; i < dump->keys.size(); ++i) EXPECT_EQ(dump->values[i], 0) << dump->keys[i];
  });
}

TEST(Expiry, keys_that_drift_keep_the_memory_of_those_that_live) {
  constexpr int64_t kSteps = 400, kSettled = 60;
  constexpr uint64_t kDrift = 50, kWindow = 100;
  uint64_t bytes_early = 0;
  proto::TableStats finally;
  TestStore store(1, 1);
  store.config.clock_timeout = seconds(10);
  store.run([&](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(expiring_spec()));
    KeyRoute route(1);
    std::vector<double> rows(kWindow);
    const std::vector<double> gradients(kWindow, -1);
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<uint64_t> keys = keys_from(kDrift * static_cast<uint64_t>(step), kWindow);
      route.build(keys);
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, step, route, rows));
      // Half of the keys came one step before, too.
      EXPECT_EQ(rows[0], step == 0 ? 0 : 1);
      EXPECT_EQ(rows[kWindow - 1], 0);
      CO_ASSERT_OK(co_await client.push<double>(kSparse, step, route, gradients));
      CO_ASSERT_OK(co_await io.sleep(seconds(5)));
      if (step != kSettled && step != kSteps - 1) continue;
      const Result<std::vector<proto::StatsReply>> stats = co_await client.stats();
      CO_ASSERT_OK(stats.status());
      finally = (*stats)[0].tables(0);
      if (step == kSettled) bytes_early = finally.bytes();
    }
  });
  constexpr uint64_t kLive = kDrift * 100 / 5 + kWindow, kDistinct = kDrift * (kSteps - 1) + kWindow;
  static_assert(kDistinct >= 10 * kLive);
  EXPECT_LE(finally.rows(), 2 * kLive);
  EXPECT_GE(finally.rows(), kLive - kWindow);
  EXPECT_EQ(finally.expired(), kDistinct - finally.rows());
  EXPECT_LE(finally.bytes(), bytes_early + bytes_early / 2);
}

TEST(Expiry, rows_must_outlast_the_waits_for_the_clock) {
  TestStore store(1, 1);
  store.config.clock_timeout = seconds(50);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    const Status refused = co_await client.create(expiring_spec());
    EXPECT_EQ(refused.text(),
              "invalid: table 'emb': rows.expire_after must be more than twice store.clock_timeout, which is 50s");
    TableSpec longer = expiring_spec();
    longer.rows.expire_after += milliseconds(1);
    CO_ASSERT_OK(co_await client.create(longer));
  });
}

}  // namespace
}  // namespace talweg
