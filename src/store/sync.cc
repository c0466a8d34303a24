#include "store/sync.h"

#include <charconv>
#include <cmath>

namespace talweg {
namespace {

constexpr std::string_view kExpected = "is none of bsp, asp, ssp(steps), backup(workers), value(distance)";

// "name(argument)": the argument as a number, if the text has this form.
template <class Number>
bool parse_call(std::string_view text, std::string_view name, Number* argument) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  if (text.size() < 3 || text.front() != '(' || text.back() != ')') return false;
  const char* const end = text.data() + text.size() - 1;
  const auto [stopped, failure] = std::from_chars(text.data() + 1, end, *argument);
  return failure == std::errc() && stopped == end;
}

}  // namespace

Result<Sync> Sync::from_text(std::string_view text) {
  if (text == "bsp") return bsp();
  if (text == "asp") return asp();
  Sync sync;
  if (parse_call(text, "ssp", &sync.steps)) {
    if (sync.steps < 0) return error(Code::kInvalid, "{}: the bound must be at least 0", text);
    return ssp(sync.steps);
  }
  if (parse_call(text, "backup", &sync.steps)) {
    if (sync.steps < 0) return error(Code::kInvalid, "{}: the number of backup workers must be at least 0", text);
    return backup(sync.steps);
  }
  if (parse_call(text, "value", &sync.distance)) {
    if (!(sync.distance > 0) || !std::isfinite(sync.distance)) {
      return error(Code::kInvalid, "{}: the distance must be above 0", text);
    }
    return value(sync.distance);
  }
  return error(Code::kInvalid, "'{}' {}", text, kExpected);
}

std::string Sync::text() const {
  switch (kind) {
    case Kind::kBsp: return "bsp";
    case Kind::kAsp: return "asp";
    case Kind::kSsp: return fmt::format("ssp({})", steps);
    case Kind::kBackup: return fmt::format("backup({})", steps);
    case Kind::kValue: break;
  }
  return fmt::format("value({})", distance);
}

}  // namespace talweg
