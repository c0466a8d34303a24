// Keys that travel sorted and packed: the same model in fewer bytes, and wrong bytes are refused.
#include <gtest/gtest.h>

#include "codec/key_codec.h"
#include "io/services.h"
#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1;

template <class Real>
TableSpec sparse_spec(uint32_t width) {
  return {.id = kSparse, .name = "emb", .width = width, .type = kValueType<Real>, .optimizer = {.lr = 0.1}};
}

// Unsorted, and near each other.
std::vector<uint64_t> keys_of(int64_t step, uint32_t rank) {
  Rng rng(static_cast<uint64_t>(step), rank);
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 200; ++key) {
    if (rng.below(3) != 0) keys.push_back((uint64_t{1} << 40) + 5 * key);
  }
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[rng.below(i)]);
  return keys;
}

template <class Real>
Task<> train(StoreClient& client, uint32_t rank, uint32_t width, TableDump<Real>* dump) {
  CO_ASSERT_OK(co_await client.create(sparse_spec<Real>(width)));
  KeyRoute route(client.shards(), client.key_order());
  for (int64_t step = 0; step < 6; ++step) {
    const std::vector<uint64_t> keys = keys_of(step, rank);
    route.build(keys);
    std::vector<Real> rows(keys.size() * width);
    CO_ASSERT_OK(co_await client.pull<Real>(kSparse, step, route, rows));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] -= static_cast<Real>(keys[i / width] % 17 + i % width);
    CO_ASSERT_OK(co_await client.push<Real>(kSparse, step, route, rows));
  }
  if (rank != 0) co_return;
  Result<TableDump<Real>> whole = co_await client.dump<Real>(kSparse, 6);
  CO_ASSERT_OK(whole.status());
  *dump = std::move(*whole);
}

template <class Real>
TableDump<Real> trained(bool pack, uint32_t shards, uint32_t width, StoreClientCounters* counters) {
  TestStore store(3, shards);
  store.config.pack_keys = pack;
  TableDump<Real> dump;
  store.run([&](Io&, StoreClient& client, uint32_t rank) { return train<Real>(client, rank, width, &dump); });
  *counters = store.client_counters[0];
  return dump;
}

TEST(PackedKeys, give_the_same_bits_in_fewer_bytes) {
  for (const uint32_t shards : {1u, 2u, 3u}) {
    StoreClientCounters plain, packed;
    const TableDump<float> expected = trained<float>(false, shards, 3, &plain);
    const TableDump<float> got = trained<float>(true, shards, 3, &packed);
    EXPECT_EQ(got.keys, expected.keys);
    EXPECT_EQ(got.values, expected.values);
    EXPECT_EQ(got.keys.size(), 200u);
    EXPECT_LT(packed.bytes_pulled, plain.bytes_pulled - plain.keys_pulled * 6) << "of 8 bytes for a key";

    const TableDump<double> expected_double = trained<double>(false, shards, 1, &plain);
    const TableDump<double> got_double = trained<double>(true, shards, 1, &packed);
    EXPECT_EQ(got_double.keys, expected_double.keys);
    EXPECT_EQ(got_double.values, expected_double.values);
  }
}

TEST(PackedKeys, a_key_given_twice_is_sent_once_pulled_for_each_and_its_gradients_are_summed) {
  for (const bool pack : {false, true}) {
    TestStore store(1, 2);
    store.config.pack_keys = pack;
    store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
      TableSpec spec = sparse_spec<double>(2);
      spec.optimizer.lr = 1;
      CO_ASSERT_OK(co_await client.create(spec));
      const std::vector<uint64_t> keys = {9, 5, 9, 7, 5, 9};
      KeyRoute route(2, client.key_order());
      route.build(keys);
      const std::vector<double> gradients = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
      std::vector<double> rows(12, 1);
      CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
      CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
      EXPECT_EQ(rows, (std::vector<double>{-10, -100, -7, -70, -10, -100, -4, -40, -7, -70, -10, -100}));
    });
    const StoreServerCounters& first = store.server_counters[0];
    EXPECT_EQ(first.keys_pushed + store.server_counters[1].keys_pushed, pack ? 3u : 6u);
  }
}

TEST(PackedKeys, a_push_that_brings_its_keys_is_taken_at_every_length) {
  for (const bool wide : {false, true}) {
    TestStore store(1, 1);
    store.config.pack_keys = true;
    store.run([&](Io&, StoreClient& client, uint32_t) -> Task<> {
      TableSpec spec = sparse_spec<double>(1);
      spec.optimizer.lr = 1;
      CO_ASSERT_OK(co_await client.create(spec));
      KeyRoute route(1, client.key_order());
      int64_t step = 0;
      double expected = 0;
      // Packed, these take every number of bytes modulo 8.
      for (size_t count = 0; count < 40; ++count) {
        std::vector<uint64_t> keys(count);
        for (size_t i = 0; i < count; ++i) keys[i] = wide ? i << 20 : i;
        const std::vector<double> gradients(count, 1);
        route.build(keys);
        CO_ASSERT_OK(co_await client.push<double>(kSparse, step++, route, gradients));
        expected -= static_cast<double>(count);
      }
      const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, step);
      CO_ASSERT_OK(dump.status());
      double sum = 0;
      for (const double value : dump->values) sum += value;
      EXPECT_EQ(sum, expected);
      EXPECT_EQ(client.counters().lists_resent, 0u);
    });
  }
}

// The raw call. The refusal's code and message, or "ok".
Task<std::string> try_call(Io& io, Service service, const google::protobuf::MessageLite& head, Bytes first,
                           Bytes second) {
  Call request{.to = 0, .service = service};
  request.body = {first, second};
  request.own_reply = true;
  const Deadline deadline = io.within(seconds(60), "test");
  Result<Received> answer = co_await call(io, request, serialize(head), deadline);
  co_return answer.ok() ? "ok" : answer.status().text();
}

TEST(PackedKeys, wrong_bytes_are_refused_and_make_no_rows) {
  TestStore store(1, 1);
  store.run([](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec<double>(1)));
    const std::vector<uint64_t> keys = {3, 5, 1000};
    std::vector<std::byte> packed(packed_bound(3));
    packed.resize(pack_keys(keys, packed));
    const Bytes whole = packed;
    const std::vector<double> values(3, 1);
    const Bytes gradients = bytes_of(std::span<const double>(values));

    proto::PullRequest pull;
    pull.set_job(1);
    pull.set_table(kSparse);
    pull.set_training(true);
    pull.set_with_keys(true);
    pull.set_packed(true);
    for (const uint64_t count : {uint64_t{0}, uint64_t{2}, uint64_t{4}, uint64_t{1} << 26}) {
      pull.set_keys(count);
      const std::string answer = co_await try_call(io, services::kPull, pull, whole, {});
      EXPECT_TRUE(answer.starts_with("corrupt: table 'emb'") || answer.starts_with("invalid: table 'emb'")) << answer;
    }
    pull.set_keys(3);
    const std::string cut = co_await try_call(io, services::kPull, pull, whole.first(whole.size() - 1), {});
    EXPECT_TRUE(cut.starts_with("corrupt: table 'emb'")) << cut;

    proto::PushRequest push;
    push.set_job(1);
    push.set_table(kSparse);
    push.set_with_keys(true);
    push.set_keys(3);
    std::vector<std::byte> padded = packed;
    padded.resize(packed.size() + padding_of(packed.size()));
    const Bytes filled = padded;
    const uint64_t wrong[] = {1, filled.size() - 8, filled.size() + 8, ~uint64_t{0}, ~uint64_t{0} - 6};
    for (const uint64_t bytes : wrong) {
      push.set_packed_bytes(bytes);
      const std::string answer = co_await try_call(io, services::kPush, push, filled, gradients);
      EXPECT_TRUE(answer.starts_with("invalid: push to table 'emb'") || answer.starts_with("corrupt: table 'emb'"))
          << bytes << ": " << answer;
    }
    push.set_packed_bytes(packed.size());
    std::vector<std::byte> bent = padded;
    bent[8] = std::byte{65};  // bits of a difference
    const std::string corrupt = co_await try_call(io, services::kPush, push, bent, gradients);
    EXPECT_TRUE(corrupt.starts_with("corrupt: table 'emb'")) << corrupt;

    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 0);
    CO_ASSERT_OK(dump.status());
    EXPECT_TRUE(dump->keys.empty());
    const std::string right = co_await try_call(io, services::kPush, push, filled, gradients);
    EXPECT_EQ(right, "ok");
    const Result<TableDump<double>> after = co_await client.dump<double>(kSparse, 1);
    CO_ASSERT_OK(after.status());
    EXPECT_EQ(after->keys, keys);
  });
}

}  // namespace
}  // namespace talweg
