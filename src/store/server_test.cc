// What a shard answers to requests that no client of ours would send: clear errors, and nothing changes.
#include "store/server.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/services.h"
#include "store/store.pb.h"
#include "store/testing.h"

namespace talweg {
namespace {

constexpr TableId kSparse = 1, kDense = 2;

TableSpec sparse_spec() {
  return {.id = kSparse, .name = "emb", .width = 2, .type = ValueType::kFloat64, .optimizer = {.lr = 1}};
}
TableSpec dense_spec() {
  return {.id = kDense, .name = "w", .sparse = false, .size = 10, .type = ValueType::kFloat64, .optimizer = {.lr = 1}};
}

template <class T>
Bytes bytes(const std::vector<T>& values) {
  return bytes_of(std::span<const T>(values));
}

proto::PullRequest pull_head(TableId table, int64_t step) {
  proto::PullRequest head;
  head.set_job(1);
  head.set_table(table);
  head.set_step(step);
  head.set_with_keys(true);
  return head;
}
proto::PushRequest push_head(TableId table, int64_t step, uint32_t rank) {
  proto::PushRequest head;
  head.set_job(1);
  head.set_table(table);
  head.set_step(step);
  head.set_rank(rank);
  return head;
}

// The raw call, past all the care a client takes. The message of the refusal, or "ok".
Task<std::string> try_call(Io& io, Service service, const google::protobuf::MessageLite& head, Bytes first = {},
                           Bytes second = {}) {
  Call request{.to = 0, .service = service};
  request.body = {first, second};
  request.own_reply = true;
  const Deadline deadline = io.within(seconds(60), "test");
  Result<Received> answer = co_await call(io, request, serialize(head), deadline);
  co_return answer.ok() ? "ok" : answer.status().text();
}

#define CO_EXPECT_ANSWER(expected, expression)    \
  do {                                            \
    const std::string answer_text = (expression); \
    EXPECT_EQ(answer_text, expected);             \
  } while (false)

TEST(StoreServer, wrong_pulls_are_refused) {
  TestStore store(2, 1);
  store.run([](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    if (rank != 0) co_return;
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    const std::vector<uint64_t> keys = {1, 2, 3};

    CO_EXPECT_ANSWER("not found: shard 0 has no table 9 of job 'test'",
                     co_await try_call(io, services::kPull, pull_head(9, 0)));
    CO_EXPECT_ANSWER("invalid: pull of table 'emb': step -1 is negative",
                     co_await try_call(io, services::kPull, pull_head(kSparse, -1)));
    CO_EXPECT_ANSWER("invalid: pull of table 'emb': 0 keys announced, 24 bytes came",
                     co_await try_call(io, services::kPull, pull_head(kSparse, 0), bytes(keys)));
    proto::PullRequest head = pull_head(kSparse, 0);
    head.set_keys(3);
    CO_EXPECT_ANSWER("invalid: pull of table 'emb': 3 keys announced, 23 bytes came",
                     co_await try_call(io, services::kPull, head, bytes(keys).first(23)));
    head.set_training(true);
    head.set_rank(2);
    CO_EXPECT_ANSWER("invalid: pull of table 'emb': rank 2 of 2 workers",
                     co_await try_call(io, services::kPull, head, bytes(keys)));
    proto::PullRequest range = pull_head(kDense, 0);
    range.set_begin(3);
    range.set_end(11);
    CO_EXPECT_ANSWER("invalid: pull of table 'w': [3, 11) is not in [0, 10), which shard 0 holds",
                     co_await try_call(io, services::kPull, range));
    range.set_end(2);
    CO_EXPECT_ANSWER("invalid: pull of table 'w': [3, 2) is not in [0, 10), which shard 0 holds",
                     co_await try_call(io, services::kPull, range));
    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 0);
    CO_ASSERT_OK(dump.status());
    EXPECT_TRUE(dump->keys.empty()) << "a refused pull made rows";
  });
  EXPECT_EQ(store.server_counters[0].refused, 7u);
}

TEST(StoreServer, wrong_pushes_are_refused_whole) {
  TestStore store(1, 1);
  store.run([](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    const std::vector<uint64_t> keys = {11, 12, 13};
    std::vector<double> good(6, -1);

    CO_EXPECT_ANSWER("not found: shard 0 has no table 9 of job 'test'",
                     co_await try_call(io, services::kPush, push_head(9, 0, 0)));
    CO_EXPECT_ANSWER("invalid: push to table 'emb': rank 1 of 1 workers",
                     co_await try_call(io, services::kPush, push_head(kSparse, 0, 1)));
    CO_EXPECT_ANSWER("invalid: push to table 'emb': step -3 is negative",
                     co_await try_call(io, services::kPush, push_head(kSparse, -3, 0)));
    CO_EXPECT_ANSWER("invalid: push to table 'emb' by worker 0: step 5 is more than 4 ahead of what it has pushed",
                     co_await try_call(io, services::kPush, push_head(kSparse, 5, 0)));

    proto::PushRequest head = push_head(kSparse, 0, 0);
    head.set_keys(3);
    head.set_with_keys(true);
    CO_EXPECT_ANSWER("invalid: push to table 'emb' by worker 0: 48 bytes came for 3 keys and rows of 2 float64 values",
                     co_await try_call(io, services::kPush, head, bytes(keys), bytes(good).first(24)));
    head.set_keys(std::numeric_limits<uint64_t>::max() / 16 + 2);  // times 16 this is 16 again
    head.set_with_keys(false);
    CO_EXPECT_ANSWER(
        "invalid: push to table 'emb' by worker 0: 16 bytes came for 1152921504606846977 keys (not sent) and "
        "rows of 2 float64 values",
        co_await try_call(io, services::kPush, head, bytes(good).first(16)));
    head.set_keys(3);
    head.set_with_keys(true);
    std::vector<double> bad = good;
    bad[3] = NAN;
    CO_EXPECT_ANSWER("invalid: push to table 'emb' by worker 0 at step 0: the gradient of key 12 is not finite",
                     co_await try_call(io, services::kPush, head, bytes(keys), bytes(bad)));

    proto::PushRequest range = push_head(kDense, 0, 0);
    range.set_begin(4);
    range.set_end(10);
    CO_EXPECT_ANSWER("invalid: push to table 'w' by worker 0: 40 bytes came for the 6 float64 values of [4, 10)",
                     co_await try_call(io, services::kPush, range, bytes(good).first(40)));
    CO_EXPECT_ANSWER("invalid: push to table 'w' by worker 0 at step 0: the gradient of value 7 is not finite",
                     co_await try_call(io, services::kPush, range, bytes(bad)));
    range.set_end(std::numeric_limits<uint64_t>::max());
    CO_EXPECT_ANSWER(
        "invalid: push to table 'w' by worker 0: [4, 18446744073709551615) is not in [0, 10), which shard 0 "
        "holds",
        co_await try_call(io, services::kPush, range, bytes(good)));

    const Result<TableDump<double>> dump = co_await client.dump<double>(kSparse, 0);
    CO_ASSERT_OK(dump.status());
    EXPECT_TRUE(dump->keys.empty()) << "a refused push made rows";
    const Result<TableDump<double>> dense = co_await client.dump<double>(kDense, 0);
    CO_ASSERT_OK(dense.status());
    EXPECT_EQ(dense->values, std::vector<double>(10)) << "a refused push was applied";

    // The step is still open, and the right pushes are taken.
    CO_EXPECT_ANSWER("ok", co_await try_call(io, services::kPush, head, bytes(keys), bytes(good)));
    const Result<TableDump<double>> after = co_await client.dump<double>(kSparse, 1);
    CO_ASSERT_OK(after.status());
    EXPECT_EQ(after->keys, keys);
    EXPECT_EQ(after->values, std::vector<double>(6, 1));
  });
}

TEST(StoreServer, a_bad_gradient_for_a_remembered_key_list_names_the_key) {
  TestStore store(1, 1);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    const std::vector<uint64_t> keys = {11, ~uint64_t{0}, 13};
    std::vector<double> rows(6);
    KeyRoute route(1);
    route.build(keys);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 0, route, rows));
    rows[2] = INFINITY;
    const Status refused = status_of(co_await client.push<double>(kSparse, 0, route, rows));
    EXPECT_EQ(refused.message(),
              "push to table 'emb' by worker 0 at step 0: the gradient of key 18446744073709551615 is not finite");
    rows[2] = 0;
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, rows));
    EXPECT_EQ(client.counters().lists_resent, 0u) << "the refused push used up the key list";
  });
}

TEST(StoreServer, gradients_that_are_not_finite_count_as_zero_where_the_table_says_so) {
  TestStore store(1, 1);
  store.run([](Io&, StoreClient& client, uint32_t) -> Task<> {
    TableSpec sparse = sparse_spec(), dense = dense_spec();
    sparse.non_finite = dense.non_finite = NonFinite::kZero;
    CO_ASSERT_OK(co_await client.create(sparse));
    CO_ASSERT_OK(co_await client.create(dense));
    const std::vector<uint64_t> keys = {11, 12, 13};
    KeyRoute route(1);
    route.build(keys);
    const std::vector<double> gradients = {1, NAN, 2, INFINITY, -INFINITY, 3};
    CO_ASSERT_OK(co_await client.push<double>(kSparse, 0, route, gradients));
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, 0, 2, gradients));
    std::vector<double> rows(6), values(10);
    CO_ASSERT_OK(co_await client.pull<double>(kSparse, 1, route, rows));
    CO_ASSERT_OK(co_await client.pull_range<double>(kDense, 1, 0, values));
    EXPECT_EQ(rows, (std::vector<double>{-1, 0, -2, 0, 0, -3}));
    EXPECT_EQ(values, (std::vector<double>{0, 0, -1, 0, -2, 0, 0, -3, 0, 0}));
  });
  EXPECT_EQ(store.server_counters[0].zeroed, 6u);
  EXPECT_EQ(store.server_counters[0].refused, 0u);
}

TEST(StoreServer, a_pull_of_more_values_than_a_message_holds_is_refused) {
  TestStore store(1, 1);
  store.run([](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(sparse_spec()));
    proto::PullRequest head = pull_head(kSparse, 0);
    head.set_with_keys(false);
    head.set_keys((1 << 26) + 1);
    CO_EXPECT_ANSWER(
        "invalid: pull of table 'emb': the values of 67108865 keys do not fit one message of 1073741824 bytes",
        co_await try_call(io, services::kPull, head));
    head.set_keys(1 << 26);
    CO_EXPECT_ANSWER("ok", co_await try_call(io, services::kPull, head));  // it asks for the keys
  });
}

TEST(StoreServer, heads_that_are_not_messages_are_refused) {
  TestStore store(1, 1);
  store.run([](Io& io, StoreClient&, uint32_t) -> Task<> {
    for (const Service service : {services::kCreateTable, services::kPull, services::kPush, services::kExport,
                                  services::kDropJob, services::kFunction, services::kStats}) {
      const Call request{.to = 0, .service = service};
      const Deadline deadline = io.within(seconds(5), "test");
      Result<Received> answer = co_await call(io, request, std::string("\xff\xff\xff"), deadline);
      EXPECT_EQ(answer.status().code(), Code::kCorrupt);
    }
  });
}

TEST(StoreServer, a_repeated_push_counts_once_and_is_acknowledged) {
  TestStore store(2, 1);
  store.run([](Io& io, StoreClient& client, uint32_t rank) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    const std::vector<double> gradients(10, -1);
    proto::PushRequest head = push_head(kDense, 0, rank);
    head.set_end(10);
    for (int repeat = 0; repeat < 3; ++repeat) {
      CO_EXPECT_ANSWER("ok", co_await try_call(io, services::kPush, head, bytes(gradients)));
    }
    std::vector<double> values(10);
    CO_ASSERT_OK(co_await client.pull_range<double>(kDense, 1, 0, values));
    EXPECT_EQ(values, std::vector<double>(10, 2));
    CO_EXPECT_ANSWER("ok", co_await try_call(io, services::kPush, head, bytes(gradients)));
    CO_ASSERT_OK(co_await client.read_range<double>(kDense, 1, 0, values));
    EXPECT_EQ(values, std::vector<double>(10, 2));
  });
  EXPECT_EQ(store.server_counters[0].pushes, 2u);
  EXPECT_EQ(store.server_counters[0].pushes_repeated, 6u);
}

TEST(StoreServer, creating_a_table_again_changes_nothing_unless_it_differs) {
  TestStore store(1, 2);
  store.run([](Io& io, StoreClient& client, uint32_t) -> Task<> {
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    const std::vector<double> gradients(10, -1);
    CO_ASSERT_OK(co_await client.push_range<double>(kDense, 0, 0, gradients));
    CO_ASSERT_OK(co_await client.create(dense_spec()));
    std::vector<double> values(10);
    CO_ASSERT_OK(co_await client.read_range<double>(kDense, 1, 0, values));
    EXPECT_EQ(values, std::vector<double>(10, 1));

    TableSpec other = dense_spec();
    other.name = "v";
    other.optimizer.lr = 2;
    const Status refused = co_await client.create(other);
    EXPECT_EQ(refused.text(),
              "invalid: table 'v' cannot be made: table 2 is there already, as table 'w' with other settings");
    TableSpec unknown = sparse_spec();
    unknown.optimizer.type = "adagard";
    const Status misspelt = co_await client.create(unknown);
    EXPECT_EQ(misspelt.text(),
              "invalid: table 'emb': there is no optimizer 'adagard' (did you mean 'adagrad'?); there are: adagrad, "
              "adam, adamw, ftrl, "
              "momentum, nesterov, rmsprop, sgd, shampoo");

    proto::CreateTableRequest head;
    *head.mutable_spec() = to_proto(sparse_spec());
    head.set_shard(1);
    head.set_shards(2);
    CO_EXPECT_ANSWER("invalid: table 'emb': this is shard 0 of 2, not shard 1 of 2",
                     co_await try_call(io, services::kCreateTable, head));
    head.mutable_spec()->set_value_type(7);
    CO_EXPECT_ANSWER("invalid: table 'emb' has an unknown value type 7",
                     co_await try_call(io, services::kCreateTable, head));
  });
}

}  // namespace
}  // namespace talweg
