// Task: a coroutine that starts when it is awaited and gives its value to the one that awaits it. All protocol code is
// written as Tasks. A Task runs on its node's one thread, so it needs no locks; it must not outlive what it refers to.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/intrusive_list.h"

namespace talweg {

// Runs suspended coroutines later, each exactly once, on the node's thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::coroutine_handle<> ready) = 0;
};

template <class T = void>
class Task;

namespace internal {

struct PromiseBase {
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) noexcept {
      const auto next = finished.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  // Expected failures are Status; an exception that gets here is a broken invariant.
  void unhandled_exception() noexcept { std::terminate(); }

  std::coroutine_handle<> continuation;
};

template <class T>
struct Promise : PromiseBase {
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
  std::optional<T> value;
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {}
};

}  // namespace internal

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return false; }
  // A child that ends without suspending returns straight to its parent, so a loop over such children needs no stack.
  bool await_suspend(std::coroutine_handle<> parent) {
    handle_.resume();
    if (handle_.done()) return false;
    handle_.promise().continuation = parent;
    return true;
  }
  T await_resume() { return handle_.promise().take(); }

 private:
  Handle handle_;
};

namespace internal {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace internal

// Tasks that run beside the one that spawned them. Destroying the set destroys what has not ended (a crash in the
// simulator does); an orderly owner awaits `join` first. Declare it after everything its tasks refer to.
class TaskSet {
 public:
  explicit TaskSet(Executor& executor) : executor_(executor) {}
  TaskSet(const TaskSet&) = delete;
  TaskSet& operator=(const TaskSet&) = delete;
  ~TaskSet() { destroy_all(); }
  void destroy_all() {
    while (Root* root = roots_.front()) std::coroutine_handle<Root>::from_promise(*root).destroy();
  }

  // Queues the task; it first runs when the executor gets to it.
  void spawn(Task<void> task) {
    Root& root = run(std::move(task)).promise();
    roots_.push_back(root);
    executor_.post(std::coroutine_handle<Root>::from_promise(root));
  }
  bool empty() const { return roots_.empty(); }

  // Ready when every task has ended, those spawned meanwhile included. One waiter at a time.
  auto join() {
    struct Joiner {
      TaskSet& set;
      bool await_ready() const { return set.empty(); }
      void await_suspend(std::coroutine_handle<> waiter) { set.joiner_ = waiter; }
      void await_resume() const {}
    };
    return Joiner{*this};
  }

 private:
  struct RootTag;
  struct Root;
  struct RootHandle {
    using promise_type = Root;
    std::coroutine_handle<Root> handle;
    Root& promise() const { return handle.promise(); }
  };
  struct Root : ListHook<RootTag> {
    template <class... Args>
    explicit Root(TaskSet& owner, Args&&...) : set(owner) {}
    RootHandle get_return_object() { return {std::coroutine_handle<Root>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() noexcept { std::terminate(); }
    void return_void() {
      unlink();
      if (set.roots_.empty() && set.joiner_) set.executor_.post(std::exchange(set.joiner_, nullptr));
    }
    TaskSet& set;
  };
  RootHandle run(Task<void> task) { co_await std::move(task); }

  Executor& executor_;
  IntrusiveList<Root, RootTag> roots_;
  std::coroutine_handle<> joiner_;
};

}  // namespace talweg
