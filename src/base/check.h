// CHECK states an invariant of our own code and holds in release builds too. It is never used on bytes, files or
// settings that came from outside: those are answered with a Status.
#pragma once

namespace talweg {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace talweg

#define CHECK(condition) \
  (__builtin_expect(static_cast<bool>(condition), 1) ? void(0) : ::talweg::check_failed(#condition, __FILE__, __LINE__))
