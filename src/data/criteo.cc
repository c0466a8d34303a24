// A field is found, checked and hashed in one 8-byte word: nearly all counts and names fit into one. Whatever does not
// takes the slow way, and what is wrong with a bad row is found out afterwards.
#include "data/criteo.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "data/decimal.h"

namespace talweg {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101, kHighBits = 0x8080808080808080;

// How many of a word's bytes come before the first tab; 8 when there is none.
inline size_t bytes_before_tab(uint64_t word) {
  const uint64_t others = word ^ (kOnes * '\t');
  return static_cast<size_t>(std::countr_zero((others - kOnes) & ~others & kHighBits)) / 8;
}

// The number that 1 to 8 digits at the front of a word make, or -1.
inline int64_t number_in(uint64_t word, size_t digits) {
  word = (word ^ (kOnes * '0')) << (64 - 8 * digits);
  if ((((word + kOnes * 0x76) | word) & kHighBits) != 0) return -1;
  word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
  word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
  return static_cast<int64_t>((word * 10000 + (word >> 32)) & 0xffffffff);
}

bool read_whole_number(std::string_view field, int64_t* out) {
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), *out);
  return parsed.ec == std::errc() && parsed.ptr == field.data() + field.size();
}

bool read_label(std::string_view field, float* out) {
  if (field.size() == 1 && (field[0] == '0' || field[0] == '1')) {
    *out = static_cast<float>(field[0] - '0');
    return true;
  }
  const char* const end = field.data() + field.size();
  return parse_decimal(field.data(), end, out) == end && std::isfinite(*out);
}

class Parser {
 public:
  Parser(const CriteoLayout& layout, const char* limit, RowBlock* out) : layout_(layout), limit_(limit), out_(out) {}

  // Appends the row of [p, end), a line without its end; false, and nothing appended, when it is bad.
  bool row(const char* p, const char* end) {
    end_ = end;
    const char* const tab = static_cast<const char*>(std::memchr(p, '\t', static_cast<size_t>(end - p)));
    float label;
    if (tab == nullptr || !read_label({p, static_cast<size_t>(tab - p)}, &label)) return false;
    next_ = tab;
    uint32_t* const keys = out_->keys32.room(CriteoLayout::kFeatures);
    uint32_t* key = keys;
    for (size_t i = 0; i < CriteoLayout::kCounts; ++i) {
      if (!take() || !count(layout_.seed(i), &key)) return false;
    }
    for (size_t i = CriteoLayout::kCounts; i < CriteoLayout::kFeatures; ++i) {
      if (!take()) return false;
      *key = length_ <= 8 ? layout_.hash().key_of_word(layout_.seed(i), word_, length_)
                          : layout_.hash().key(layout_.seed(i), {field_, length_});
      key += length_ > 0 ? 1 : 0;
    }
    if (next_ != end_) return false;
    finish(keys, key, label);
    return true;
  }

 private:
  // Goes past a tab and to the end of the field behind it.
  inline bool take() {
    if (next_ == end_) return false;
    field_ = next_ + 1;
    if (__builtin_expect(limit_ - field_ < 8, 0)) return take_slowly();
    uint64_t word;
    std::memcpy(&word, field_, 8);
    const size_t left = static_cast<size_t>(end_ - field_);
    length_ = std::min(bytes_before_tab(word), left);
    if (length_ == 8 && left > 8 && field_[8] != '\t') return take_slowly();
    // Not one expression for all lengths: a shift by 64 is not defined.
    word_ = length_ == 8 ? word : word & ~(~uint64_t{0} << (8 * length_));
    next_ = field_ + length_;
    return true;
  }
  bool take_slowly() {
    const void* const tab = std::memchr(field_, '\t', static_cast<size_t>(end_ - field_));
    next_ = tab == nullptr ? end_ : static_cast<const char*>(tab);
    length_ = static_cast<size_t>(next_ - field_);
    word_ = 0;
    if (length_ <= 8) std::memcpy(&word_, field_, length_);
    return true;
  }

  inline bool count(uint64_t seed, uint32_t** key) {
    if (length_ == 0) return true;
    int64_t value = length_ <= 8 ? number_in(word_, length_) : -1;
    if (value < 0 && !read_whole_number({field_, length_}, &value)) return false;
    *(*key)++ = layout_.hash().key_of_number(seed, layout_.bucket(value));
    return true;
  }

  // The keys were written to where keys32 grows. A block that another format left wide takes them one by one.
  void finish(const uint32_t* keys, const uint32_t* end, float label) {
    if (out_->wide || out_->has_values) {
      for (const uint32_t* key = keys; key < end; ++key) out_->add(*key, 1.0f);
      return out_->end_row(label);
    }
    const size_t count = static_cast<size_t>(end - keys);
    uint32_t largest = 0;
    for (const uint32_t* key = keys; key < end; ++key) largest = std::max(largest, *key);
    out_->max_key = std::max<uint64_t>(out_->max_key, largest);
    const uint64_t before = out_->nonzeros();
    out_->keys32.took(count);
    out_->row_ends.push(before + count);
    out_->labels.push(label);
  }

  const CriteoLayout& layout_;
  const char* const limit_;  // of what may be read
  RowBlock* const out_;
  // Of the line at hand: its end, the field taken last with its first bytes (all, when it has no more than 8), and the
  // tab or end behind it.
  const char *end_ = nullptr, *field_ = nullptr, *next_ = nullptr;
  uint64_t word_ = 0;
  size_t length_ = 0;
};

Status complaint(std::string_view line) {
  const size_t columns = static_cast<size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
  if (columns != CriteoLayout::kColumns) {
    return error(Code::kInvalid, "{} columns found, {} expected", columns, CriteoLayout::kColumns);
  }
  for (size_t column = 1;; ++column) {
    const std::string_view field = line.substr(0, line.find('\t'));
    line.remove_prefix(field.size() + 1);
    float label;
    int64_t number;
    if (column == 1 && !read_label(field, &label)) {
      return error(Code::kInvalid, "column 1: '{}' is not a label: it must be a finite number", shown(field));
    }
    if (column > 1 && !field.empty() && !read_whole_number(field, &number)) {
      return error(Code::kInvalid, "column {}: '{}' is not a whole number", column, shown(field));
    }
    CHECK(column <= CriteoLayout::kCounts);
  }
}

}  // namespace

CriteoLayout::CriteoLayout(unsigned hash_bits) : hash_(hash_bits) {
  for (size_t feature = 0; feature < kFeatures; ++feature) seeds_[feature] = FeatureHash::seed_of(feature + 2);
  // Bounds instead of a logarithm per count: faster, and with the wide type no machine's mathematics library can put a
  // count below 2^40 into another bucket.
  const long double most = static_cast<long double>(std::numeric_limits<int64_t>::max());
  for (int bucket = 0;; ++bucket) {
    const long double least = std::ceil(std::exp(std::sqrt(static_cast<long double>(bucket))));
    if (least >= most) break;
    least_.push_back(static_cast<int64_t>(least));
  }
  for (size_t count = 0; count < small_.size(); ++count) {
    small_[count] = static_cast<uint16_t>(large_bucket(static_cast<int64_t>(count)));
  }
}

int64_t CriteoLayout::large_bucket(int64_t count) const {
  return kOwnBuckets + (std::upper_bound(least_.begin() + 1, least_.end(), count) - least_.begin() - 1);
}

Status parse_criteo(std::string_view text, size_t first_line, const std::string& file, const CriteoLayout& layout,
                    RowBlock* out, BadRows* bad) {
  BadRows none;
  if (bad == nullptr) bad = &none;
  const char* p = text.data();
  const char* const limit = p + text.size();
  Parser parser(layout, limit, out);
  for (size_t line = first_line; p < limit; ++line) {
    const void* const newline = std::memchr(p, '\n', static_cast<size_t>(limit - p));
    const char* const line_end = newline == nullptr ? limit : static_cast<const char*>(newline);
    const char* const end = line_end > p && line_end[-1] == '\r' ? line_end - 1 : line_end;
    if (end > p && !parser.row(p, end)) {
      const Status why = complaint({p, static_cast<size_t>(end - p)});
      TRY(bad->add(why.within(fmt::format("{}:{}", file, line))));
    }
    p = newline == nullptr ? limit : line_end + 1;
  }
  return {};
}

}  // namespace talweg
