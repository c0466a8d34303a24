// The process's log. Before `log_to_file` it goes to standard error, warnings and errors only.
// Thread-safe.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/status.h"

namespace talweg {

enum class Level { kDebug, kInfo, kWarning, kError };

void log_write(Level level, std::string_view text);
bool log_wanted(Level level);

// Adds a file that receives everything from kInfo up; `who` marks the lines of this process.
Status log_to_file(const std::string& path, std::string_view who);
// The least level shown on standard error.
void log_to_stderr(Level level);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_wanted(Level::kInfo)) log_write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace talweg
