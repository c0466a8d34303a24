// Status and Result: how expected failures (peer lost, deadline passed, bad input, full disk) travel. Both must be
// looked at; a message says what went wrong, where, and where possible what to do.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace talweg {

// The numbers travel in reply frames (docs/formats.md): append only.
enum class Code : uint8_t {
  kOk = 0,
  kInvalid = 1,      // the request or input is wrong; repeating it cannot help
  kNotFound = 2,     // no such file, table, service, node
  kDeadline = 3,     // the wait's deadline passed
  kUnavailable = 4,  // the peer or connection is lost; a repeat may help
  kOverloaded = 5,   // a bounded queue is full; repeat later
  kCancelled = 6,    // this node is stopping
  kCorrupt = 7,      // a checksum or format does not hold
  kFull = 8,         // a disk, table or quota is full
  kIo = 9,           // the operating system refused
};

std::string_view name_of(Code code);

// An ok Status is a null pointer: success, which is on every hot path, costs nothing. Copies share the text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : failure_(std::make_shared<const Failure>(code, std::move(message))) {
    CHECK(code != Code::kOk);
  }

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : failure_->first; }
  const std::string& message() const {
    static const std::string kNone;
    return ok() ? kNone : failure_->second;
  }
  std::string text() const { return ok() ? "ok" : fmt::format("{}: {}", name_of(code()), message()); }

  // The same failure, told from one level further up: "reading job.yaml: <message>".
  Status within(std::string_view context) const {
    return ok() ? Status() : Status(code(), fmt::format("{}: {}", context, message()));
  }

 private:
  using Failure = std::pair<Code, std::string>;
  std::shared_ptr<const Failure> failure_;
};

template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// An operating-system failure: the context and the reason behind errno; a full disk is kFull.
Status errno_error(int error_number, std::string_view context);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                 // NOLINT: a value is a result
  Result(Status status) : status_(std::move(status)) { CHECK(!status_.ok()); }  // NOLINT: so is a failure

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    CHECK(ok());
    return *value_;
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*value_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

inline const Status& status_of(const Status& status) { return status; }
template <class T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}

}  // namespace talweg

// Leave the function with the failure of `expression`, if it has one. The CO_ forms are for coroutines.
#define TRY(expression)                                                                                 \
  do {                                                                                                  \
    if (auto try_outcome_ = (expression); !try_outcome_.ok()) return ::talweg::status_of(try_outcome_); \
  } while (false)
#define CO_TRY(expression)                                                                                 \
  do {                                                                                                     \
    if (auto try_outcome_ = (expression); !try_outcome_.ok()) co_return ::talweg::status_of(try_outcome_); \
  } while (false)

#define TALWEG_CONCAT_(a, b) a##b
#define TALWEG_CONCAT(a, b) TALWEG_CONCAT_(a, b)
#define TALWEG_ASSIGN_(temporary, leave, declaration, expression) \
  auto temporary = (expression);                                  \
  if (!temporary.ok()) leave temporary.status();                  \
  declaration = std::move(temporary).value()

// ASSIGN(auto file, open(path)); declares `file` or leaves with the failure.
#define ASSIGN(declaration, expression) \
  TALWEG_ASSIGN_(TALWEG_CONCAT(assign_outcome_, __LINE__), return, declaration, expression)
#define CO_ASSIGN(declaration, expression) \
  TALWEG_ASSIGN_(TALWEG_CONCAT(assign_outcome_, __LINE__), co_return, declaration, expression)
