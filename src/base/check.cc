#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace talweg {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "talweg: broken invariant: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace talweg
