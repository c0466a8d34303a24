#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "data/decimal.h"

namespace talweg {
namespace {

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Takes the fields of one line from left to right.
class Fields {
 public:
  Fields(std::string_view line, char delimiter) : rest_(line), delimiter_(delimiter) {}

  bool at_end() const { return at_end_; }
  // Empty complaint: the field is good. A field lives until the next is taken.
  std::string_view next(std::string_view* field) {
    if (rest_.starts_with('"')) return next_quoted(field);
    const size_t end = rest_.find(delimiter_);
    *field = trim(rest_.substr(0, end));
    leave(end);
    return {};
  }

 private:
  std::string_view next_quoted(std::string_view* field) {
    unquoted_.clear();
    size_t i = 1;
    for (;; ++i) {
      if (i < rest_.size() && rest_[i] == '"') {
        ++i;
        if (i == rest_.size() || rest_[i] != '"') break;
      }
      if (i >= rest_.size()) return "a quoted field must end on its line";
      unquoted_ += rest_[i];
    }
    if (i < rest_.size() && rest_[i] != delimiter_) return "a quoted field must be followed by a delimiter";
    *field = unquoted_;
    leave(i < rest_.size() ? i : rest_.npos);
    return {};
  }
  void leave(size_t delimiter_at) {
    at_end_ = delimiter_at == rest_.npos;
    rest_.remove_prefix(at_end_ ? rest_.size() : delimiter_at + 1);
  }

  std::string_view rest_;
  char delimiter_;
  bool at_end_ = false;
  std::string unquoted_;
};

// Empty complaint: `out` is the number.
std::string_view read_number(std::string_view field, float* out) {
  const char* const end = field.data() + field.size();
  if (parse_decimal(field.data(), end, out) != end || field.empty()) return "is not a number";
  return std::isfinite(*out) ? "" : "is too large for a 32-bit number";
}

Status read_row(std::string_view line, const CsvLayout& layout, RowBlock* out) {
  Fields fields(line, layout.delimiter);
  float label = 0;
  size_t column = 0;
  for (; !fields.at_end(); ++column) {
    std::string_view field;
    if (const auto complaint = fields.next(&field); !complaint.empty()) return error(Code::kInvalid, "{}", complaint);
    if (column >= layout.columns.size()) continue;
    const bool is_label = column == layout.label;
    if (field.empty() && !is_label) continue;
    float value = 0;
    if (const auto complaint = read_number(field, &value); !complaint.empty()) {
      return error(Code::kInvalid, "column {}: '{}' {}", layout.columns[column], shown(field), complaint);
    }
    if (is_label) {
      label = value;
    } else if (value != 0) {
      out->add(column - (column > layout.label ? 1 : 0), value);
    }
  }
  if (column != layout.columns.size()) {
    return error(Code::kInvalid, "{} columns found, {} expected", column, layout.columns.size());
  }
  out->end_row(label);
  return {};
}

Result<size_t> find_label(const CsvOptions& options, const std::vector<std::string>& names) {
  if (options.header) {
    const auto found = std::find(names.begin(), names.end(), options.label);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  size_t number = 0;
  const char* const end = options.label.data() + options.label.size();
  const auto parsed = std::from_chars(options.label.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= 1 && number <= names.size()) return number - 1;
  return error(Code::kInvalid, "no label column '{}': give {} from 1 to {}", options.label,
               options.header ? "a column's name or a number" : "a number", names.size());
}

}  // namespace

Result<CsvLayout> csv_layout(std::string_view first_line, const CsvOptions& options, const std::string& file) {
  CsvLayout layout;
  layout.delimiter = options.delimiter;
  std::vector<std::string> names;
  Fields fields(without_line_end(first_line), layout.delimiter);
  while (!fields.at_end()) {
    std::string_view field;
    if (const auto complaint = fields.next(&field); !complaint.empty()) {
      return error(Code::kInvalid, "{}:1: {}", file, complaint);
    }
    names.emplace_back(field);
    layout.columns.push_back(options.header ? fmt::format("'{}'", shown(field)) : std::to_string(names.size()));
  }
  auto label = find_label(options, names);
  if (!label.ok()) return label.status().within(file + ":1");
  layout.label = *label;
  return layout;
}

Status parse_csv(std::string_view text, size_t first_line, const std::string& file, const CsvLayout& layout,
                 RowBlock* out, BadRows* bad) {
  BadRows none;
  if (bad == nullptr) bad = &none;
  for (size_t line = first_line; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view content = without_line_end(text.substr(0, end));
    text.remove_prefix(end);
    if (content.empty()) continue;
    const Status row = read_row(content, layout, out);
    if (row.ok()) continue;
    out->drop_open_row();
    TRY(bad->add(row.within(fmt::format("{}:{}", file, line))));
  }
  return {};
}

}  // namespace talweg
