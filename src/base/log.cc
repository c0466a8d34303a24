#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace talweg {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// A log is process-wide as standard error is; nothing else in Talweg is.
struct ProcessLog {
  std::shared_ptr<spdlog::sinks::stderr_color_sink_mt> console =
      std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  spdlog::logger logger{"talweg", console};

  ProcessLog() {
    console->set_level(spdlog::level::warn);
    console->set_pattern("%^talweg %l:%$ %v");
    logger.set_level(spdlog::level::warn);
    logger.flush_on(spdlog::level::info);
  }
};

ProcessLog& process_log() {
  static ProcessLog log;
  return log;
}

}  // namespace

void log_write(Level level, std::string_view text) {
  process_log().logger.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

bool log_wanted(Level level) { return process_log().logger.should_log(to_spdlog(level)); }

Status log_to_file(const std::string& path, std::string_view who) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->set_level(spdlog::level::info);
    file->set_pattern(fmt::format("%Y-%m-%dT%H:%M:%S.%e %L {} %v", who));
    process_log().logger.sinks().push_back(std::move(file));
    process_log().logger.set_level(spdlog::level::info);
    return {};
  } catch (const spdlog::spdlog_ex& e) {
    return error(Code::kIo, "cannot open the log file {}: {}", path, e.what());
  }
}

void log_to_stderr(Level level) {
  process_log().console->set_level(to_spdlog(level));
  if (process_log().logger.level() > to_spdlog(level)) process_log().logger.set_level(to_spdlog(level));
}

}  // namespace talweg
