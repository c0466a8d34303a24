// The features loop is the hot path: it converts up to eight digits at once, takes the value 1 without parsing it, and
// relies on every line ending in '\n' instead of looking for the end at each byte. What is wrong with a bad token is
// found out afterwards.
#include "data/libsvm.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/bytes.h"
#include "data/decimal.h"

namespace talweg {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_line(char c) { return c == '\n' || c == '#'; }
bool ends_token(char c) { return is_space(c) || ends_line(c); }

// Reads a whole number below 2^64; null when there is none. Digit by digit: for long numbers and the end of the text.
const char* parse_long_index(const char* p, uint64_t* out) {
  const char* const first = p;
  uint64_t value = 0;
  for (; *p >= '0' && *p <= '9'; ++p) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value)) return nullptr;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(*p - '0'), &value)) return nullptr;
  }
  *out = value;
  return p == first ? nullptr : p;
}

// The same, for up to seven digits without a branch per digit; `limit` is the end of what may be read.
inline const char* parse_index(const char* p, const char* limit, uint64_t* out) {
  if (limit - p < 8) return parse_long_index(p, out);
  uint64_t word;
  std::memcpy(&word, p, 8);
  word ^= 0x3030303030303030;
  // The high bit of a byte is set where it is no digit; a carry can only spoil bytes after the first such.
  const uint64_t others = ((word + 0x7676767676767676) | word) & 0x8080808080808080;
  if (others == 0) return parse_long_index(p, out);
  const int digits = std::countr_zero(others) / 8;
  if (digits == 0) return nullptr;
  word <<= 64 - 8 * digits;
  word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
  word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
  *out = (word * 10000 + (word >> 32)) & 0xffffffff;
  return p + digits;
}

enum class Outcome { kDone, kWide, kHasValues, kBad };

class Parser {
 public:
  Parser(const std::string& file, RowBlock* out, BadRows* bad) : file_(file), out_(out), bad_(bad) {}

  // [p, limit) is whole lines, each with its '\n'.
  Status lines(const char* p, const char* limit, size_t* line) {
    limit_ = limit;
    for (; p < limit; ++*line) {
      const char* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(limit - p)));
      if (!row(p, newline)) TRY(bad_->add(complaint(*line, newline)));
      p = newline + 1;
    }
    return {};
  }

 private:
  bool row(const char* p, const char* newline) {
    while (is_space(*p)) ++p;
    if (ends_line(*p)) return true;
    token_ = p;
    in_label_ = true;
    float label;
    p = parse_decimal(p, newline, &label);
    if (p == nullptr || !ends_token(*p) || !std::isfinite(label)) return false;
    in_label_ = false;
    // An entry takes two bytes at least.
    const size_t most = static_cast<size_t>(newline - p) / 2 + 1;
    for (;;) {
      switch (out_->wide ? entries<uint64_t>(p, newline, most) : entries<uint32_t>(p, newline, most)) {
        case Outcome::kDone: return finish_row(label);
        case Outcome::kWide: out_->widen(); break;
        case Outcome::kHasValues: out_->keep_values(); break;
        case Outcome::kBad: return false;
      }
    }
  }

  bool finish_row(float label) {
    if (out_->wide) {
      out_->keys64.took(count_);
    } else {
      out_->keys32.took(count_);
    }
    if (out_->has_values) out_->values.took(count_);
    out_->row_ends.push(out_->nonzeros() + count_);
    out_->labels.push(label);
    out_->max_key = std::max(out_->max_key, max_key_);
    return true;
  }

  template <class Key>
  Outcome entries(const char* p, const char* newline, size_t most) {
    Key* keys;
    if constexpr (std::is_same_v<Key, uint64_t>) {
      keys = out_->keys64.room(most);
    } else {
      keys = out_->keys32.room(most);
    }
    return out_->has_values ? entries<Key, true>(p, newline, keys, out_->values.room(most))
                            : entries<Key, false>(p, newline, keys, nullptr);
  }

  template <class Key, bool kValues>
  Outcome entries(const char* p, const char* newline, Key* keys, float* values) {
    size_t count = 0;
    uint64_t max_key = 0;
    for (;; ++count) {
      while (is_space(*p)) ++p;
      if (ends_line(*p)) break;
      const char* const token = p;
      uint64_t key = 0;
      float value = 1;
      p = entry(p, newline, &key, &value);
      if (p == nullptr) {
        p = skip_query_id(token);
        if (p == nullptr) {
          token_ = token;
          return Outcome::kBad;
        }
        --count;
        continue;
      }
      if constexpr (std::is_same_v<Key, uint32_t>) {
        if (key >> 32 != 0) return Outcome::kWide;
      }
      if constexpr (kValues) {
        values[count] = value;
      } else {
        if (value != 1.0f) return Outcome::kHasValues;
      }
      keys[count] = static_cast<Key>(key);
      max_key = std::max(max_key, key);
    }
    count_ = count;
    max_key_ = max_key;
    return Outcome::kDone;
  }

  inline const char* entry(const char* p, const char* newline, uint64_t* key, float* value) const {
    p = parse_index(p, limit_, key);
    if (p == nullptr) return nullptr;
    if (*p == ':') {
      if (p[1] == '1' && ends_token(p[2])) return p + 2;
      p = parse_decimal(p + 1, newline, value);
      if (p == nullptr || !std::isfinite(*value)) return nullptr;
    }
    return ends_token(*p) ? p : nullptr;
  }

  static const char* skip_query_id(const char* p) {
    for (const char expected : std::string_view("qid:")) {
      if (*p++ != expected) return nullptr;
    }
    uint64_t id;
    p = parse_long_index(p, &id);
    return p != nullptr && ends_token(*p) ? p : nullptr;
  }

  Status complaint(size_t line, const char* newline) const {
    const char* end = token_;
    while (end < newline && !ends_token(*end)) ++end;
    const std::string_view token(token_, static_cast<size_t>(end - token_));
    const std::string where = fmt::format("{}:{}: '{}'", file_, line, shown(token));
    if (in_label_) return error(Code::kInvalid, "{} is not a label: a line starts with a finite number", where);
    if (token.starts_with("qid:")) return error(Code::kInvalid, "{}: the query id must be a whole number", where);
    return error(Code::kInvalid, "{} is not index:value: {}", where, expectation(token));
  }

  static std::string_view expectation(std::string_view token) {
    const std::string_view index = token.substr(0, token.find(':'));
    if (index.empty() || index.find_first_not_of("0123456789") != index.npos) return "the index must be a whole number";
    uint64_t key;
    const auto parsed = std::from_chars(index.data(), index.data() + index.size(), key);
    if (parsed.ec != std::errc()) return "the index must be below 2^64";
    return "the value must be a finite number";
  }

  const std::string& file_;
  RowBlock* out_;
  BadRows* bad_;
  const char* limit_ = nullptr;
  // Of the row at hand: what is complained about, and what `entries` found.
  const char* token_ = nullptr;
  bool in_label_ = false;
  size_t count_ = 0;
  uint64_t max_key_ = 0;
};

}  // namespace

Status parse_libsvm(std::string_view text, size_t first_line, const std::string& file, RowBlock* out, BadRows* bad) {
  BadRows none;
  Parser parser(file, out, bad != nullptr ? bad : &none);
  const size_t whole = text.rfind('\n') + 1;  // 0 when there is none
  size_t line = first_line;
  TRY(parser.lines(text.data(), text.data() + whole, &line));
  if (whole == text.size()) return {};
  std::string last(text.substr(whole));
  last += '\n';
  return parser.lines(last.data(), last.data() + last.size(), &line);
}

}  // namespace talweg
