// Tasks and task sets: values, order, stack and destruction.
#include "io/task.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace talweg {
namespace {

class Queue final : public Executor {
 public:
  void post(std::coroutine_handle<> ready) override { ready_.push_back(ready); }
  bool run_one() {
    if (ready_.empty()) return false;
    const auto next = ready_.front();
    ready_.pop_front();
    next.resume();
    return true;
  }
  void run() {
    while (run_one()) {
    }
  }
  // Lets others run first.
  auto yield() {
    struct Yield {
      Queue& queue;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) { queue.post(waiter); }
      void await_resume() const {}
    };
    return Yield{*this};
  }

 private:
  std::deque<std::coroutine_handle<>> ready_;
};

struct Never {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<>) const {}
  void await_resume() const {}
};

// Tells when it goes.
struct Mark {
  Mark(std::vector<std::string>& log, std::string name) : log(log), name(std::move(name)) {}
  ~Mark() { log.push_back(name); }
  Mark(const Mark&) = delete;
  std::vector<std::string>& log;
  std::string name;
};

Task<std::unique_ptr<int>> make_value(int value) { co_return std::make_unique<int>(value); }

Task<int> chain(Queue& queue, int depth) {
  if (depth == 0) {
    co_await queue.yield();
    co_return 1;
  }
  const int below = co_await chain(queue, depth - 1);
  co_return below + 1;
}

TEST(Task, a_value_moves_to_the_one_that_awaits_it) {
  Queue queue;
  int seen = 0;
  TaskSet set(queue);
  set.spawn([](int& seen) -> Task<> {
    const auto value = co_await make_value(42);
    seen = *value;
  }(seen));
  EXPECT_EQ(seen, 0);
  queue.run();
  EXPECT_EQ(seen, 42);
}

TEST(Task, a_chain_that_suspends_at_its_end_returns_through_all_of_it) {
  Queue queue;
  int seen = 0;
  TaskSet set(queue);
  set.spawn([](Queue& queue, int& seen) -> Task<> { seen = co_await chain(queue, 100); }(queue, seen));
  queue.run();
  EXPECT_EQ(seen, 101);
}

TEST(Task, a_million_children_that_do_not_suspend_need_no_stack) {
  Queue queue;
  int64_t sum = 0;
  TaskSet set(queue);
  set.spawn([](int64_t& sum) -> Task<> {
    for (int i = 0; i < 1'000'000; ++i) {
      sum += co_await [](int i) -> Task<int> { co_return i; }(i);
    }
  }(sum));
  queue.run();
  EXPECT_EQ(sum, int64_t{999'999} * 500'000);
}

TEST(Task, one_that_is_never_awaited_never_starts_and_frees_what_it_holds) {
  std::vector<std::string> log;
  bool started = false;
  {
    const auto mark = std::make_shared<Mark>(log, "argument");
    auto task = [](std::shared_ptr<Mark>, bool& started) -> Task<> {
      started = true;
      co_return;
    }(mark, started);
  }
  EXPECT_FALSE(started);
  EXPECT_EQ(log, std::vector<std::string>{"argument"});
}

TEST(TaskSet, join_waits_for_all_and_for_those_spawned_meanwhile) {
  Queue queue;
  std::vector<std::string> log;
  TaskSet root(queue);
  root.spawn([](Queue& queue, std::vector<std::string>& log) -> Task<> {
    TaskSet children(queue);
    children.spawn([](Queue& queue, TaskSet& children, std::vector<std::string>& log) -> Task<> {
      co_await queue.yield();
      log.push_back("first");
      children.spawn([](Queue& queue, std::vector<std::string>& log) -> Task<> {
        co_await queue.yield();
        log.push_back("second");
      }(queue, log));
    }(queue, children, log));
    co_await children.join();
    log.push_back("joined");
  }(queue, log));
  queue.run();
  EXPECT_EQ(log, (std::vector<std::string>{"first", "second", "joined"}));
  EXPECT_TRUE(root.empty());
}

TEST(TaskSet, join_of_an_empty_set_does_not_suspend) {
  Queue queue;
  bool done = false;
  TaskSet root(queue);
  root.spawn([](Queue& queue, bool& done) -> Task<> {
    TaskSet none(queue);
    co_await none.join();
    done = true;
  }(queue, done));
  EXPECT_TRUE(queue.run_one());
  EXPECT_TRUE(done);
  EXPECT_FALSE(queue.run_one());
}

TEST(TaskSet, destroying_it_destroys_suspended_tasks_from_the_inside_out_in_the_order_they_were_spawned) {
  Queue queue;
  std::vector<std::string> log;
  TaskSet set(queue);
  for (const char* name : {"a", "b"}) {
    set.spawn([](std::vector<std::string>& log, std::string name) -> Task<> {
      const Mark outer(log, name + " outer");
      co_await [](std::vector<std::string>& log, std::string name) -> Task<> {
        const Mark inner(log, name + " inner");
        co_await Never{};
      }(log, name);
    }(log, name));
  }
  queue.run();
  EXPECT_TRUE(log.empty());
  set.destroy_all();
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(log, (std::vector<std::string>{"a inner", "a outer", "b inner", "b outer"}));
}

TEST(TaskSet, a_set_inside_a_destroyed_task_goes_with_it) {
  Queue queue;
  std::vector<std::string> log;
  {
    TaskSet root(queue);
    root.spawn([](Queue& queue, std::vector<std::string>& log) -> Task<> {
      const Mark mark(log, "parent");
      TaskSet children(queue);
      children.spawn([](std::vector<std::string>& log) -> Task<> {
        const Mark mark(log, "child");
        co_await Never{};
      }(log));
      co_await children.join();
    }(queue, log));
    queue.run();
    EXPECT_TRUE(log.empty());
  }
  EXPECT_EQ(log, (std::vector<std::string>{"child", "parent"}));
}

}  // namespace
}  // namespace talweg
