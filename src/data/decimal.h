// Decimal numbers in text, fast for the short ones that data files hold.
#pragma once

namespace talweg {

// Reads [+-] digits [. digits] [e [+-] digits] from the front of [p, end) and returns where it ends, or null when there
// is no number. The value is the float nearest to the nearest double: infinity when it is too large, and zero when it
// is too small. Words like "inf" and "nan" are not numbers here.
const char* parse_decimal(const char* p, const char* end, float* out);

}  // namespace talweg
