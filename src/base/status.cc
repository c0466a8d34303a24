#include "base/status.h"

#include <cerrno>
#include <system_error>

namespace talweg {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalid: return "invalid";
    case Code::kNotFound: return "not found";
    case Code::kDeadline: return "deadline passed";
    case Code::kUnavailable: return "unavailable";
    case Code::kOverloaded: return "overloaded";
    case Code::kCancelled: return "cancelled";
    case Code::kCorrupt: return "corrupt";
    case Code::kFull: return "full";
    case Code::kIo: return "system error";
  }
  return "unknown code";
}

Status errno_error(int error_number, std::string_view context) {
  Code code = Code::kIo;
  if (error_number == ENOENT) code = Code::kNotFound;
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) code = Code::kFull;
  return error(code, "{}: {}", context, std::generic_category().message(error_number));
}

}  // namespace talweg
