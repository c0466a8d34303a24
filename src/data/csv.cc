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

using Kind = CsvLayout::Kind;

// Empty complaint: the field is in the row.
std::string_view read_field(std::string_view field, const CsvLayout& layout, const CsvLayout::Column& column,
                            RowBlock* out, float* label) {
  if (column.kind == Kind::kCategory) {
    if (!field.empty()) out->add(layout.hash.key(column.seed, field), 1.0f);
    return {};
  }
  if (column.kind == Kind::kLabel) return read_number(field, label);
  if (field.empty()) return {};
  float value = 0;
  const std::string_view complaint = read_number(field, &value);
  if (complaint.empty() && value != 0) out->add(column.key, value);
  return complaint;
}

Status read_row(std::string_view line, const CsvLayout& layout, RowBlock* out) {
  Fields fields(line, layout.delimiter);
  float label = 0;
  size_t column = 0;
  for (; !fields.at_end(); ++column) {
    std::string_view field;
    if (const auto complaint = fields.next(&field); !complaint.empty()) return error(Code::kInvalid, "{}", complaint);
    if (column >= layout.columns.size()) continue;
    const auto complaint = read_field(field, layout, layout.columns[column], out, &label);
    if (!complaint.empty()) {
      return error(Code::kInvalid, "column {}: '{}' {}", layout.columns[column].name, shown(field), complaint);
    }
  }
  if (column != layout.columns.size()) {
    return error(Code::kInvalid, "{} columns found, {} expected", column, layout.columns.size());
  }
  out->end_row(label);
  return {};
}

// `what` the column is wanted for.
Result<size_t> find_column(const std::string& wanted, std::string_view what, bool header,
                           const std::vector<std::string>& names) {
  if (header) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  size_t number = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto parsed = std::from_chars(wanted.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= 1 && number <= names.size()) return number - 1;
  return error(Code::kInvalid, "no {} column '{}': give {} from 1 to {}", what, wanted,
               header ? "a column's name or a number" : "a number", names.size());
}

Result<std::vector<std::string>> names_in(std::string_view first_line, char delimiter) {
  std::vector<std::string> names;
  Fields fields(without_line_end(first_line), delimiter);
  while (!fields.at_end()) {
    std::string_view field;
    if (const auto complaint = fields.next(&field); !complaint.empty()) return error(Code::kInvalid, "{}", complaint);
    names.emplace_back(field);
  }
  return names;
}

Status mark_categories(const CsvOptions& options, const std::vector<std::string>& names, CsvLayout* layout) {
  for (const std::string& wanted : options.categorical) {
    if (wanted == "all") {
      for (auto& column : layout->columns) column.kind = column.kind == Kind::kLabel ? Kind::kLabel : Kind::kCategory;
      continue;
    }
    ASSIGN(const size_t place, find_column(wanted, "categorical", options.header, names));
    if (layout->columns[place].kind == Kind::kLabel) {
      return error(Code::kInvalid, "column '{}' cannot be both the label and categorical", wanted);
    }
    layout->columns[place].kind = Kind::kCategory;
  }
  return {};
}

void number_keys(bool hashed, CsvLayout* layout) {
  uint64_t position = 0;
  for (size_t i = 0; i < layout->columns.size(); ++i) {
    auto& column = layout->columns[i];
    column.seed = FeatureHash::seed_of(i + 1);
    column.key = hashed ? layout->hash.key(column.seed, "") : position;
    position += column.kind == Kind::kLabel ? 0 : 1;
  }
}

Result<CsvLayout> layout_of(std::string_view first_line, const CsvOptions& options) {
  CsvLayout layout;
  layout.delimiter = options.delimiter;
  layout.hash = FeatureHash(options.hash_bits);
  ASSIGN(const std::vector<std::string> names, names_in(first_line, options.delimiter));
  for (size_t i = 0; i < names.size(); ++i) {
    layout.columns.emplace_back().name = options.header ? fmt::format("'{}'", shown(names[i])) : std::to_string(i + 1);
  }
  ASSIGN(const size_t label, find_column(options.label, "label", options.header, names));
  layout.columns[label].kind = Kind::kLabel;
  TRY(mark_categories(options, names, &layout));
  number_keys(!options.categorical.empty(), &layout);
  return layout;
}

}  // namespace

Result<CsvLayout> csv_layout(std::string_view first_line, const CsvOptions& options, const std::string& file) {
  TRY(FeatureHash::check_bits(options.hash_bits));
  auto layout = layout_of(first_line, options);
  return layout.ok() ? std::move(layout) : layout.status().within(file + ":1");
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
