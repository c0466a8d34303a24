#include "base/config.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

namespace talweg {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "did you mean X?" where a slip is likely, else the whole list.
std::string hint(std::string_view word, const std::vector<std::string>& valid) {
  if (const auto near = nearest(word, valid)) return fmt::format("did you mean '{}'?", *near);
  return fmt::format("valid here: {}", joined(valid));
}

std::string kind_of(const YAML::Node& value) {
  if (value.IsMap()) return "a map";
  if (value.IsSequence()) return "a list";
  if (value.IsNull()) return "nothing";
  return "'" + value.Scalar() + "'";
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& valid) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : valid) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best = &candidate, best_distance = distance;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

Result<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const double unit_seconds = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 0;
  if (failure != std::errc() || unit_seconds == 0 || !(number >= 0) || number * unit_seconds > 1e9) {
    return error(Code::kInvalid, "'{}' is not a duration: give a number and a unit, as 2s, 150ms or 10us", text);
  }
  return Duration(static_cast<Duration::rep>(std::llround(number * unit_seconds * 1e9)));
}

std::string format_duration(Duration d) {
  const auto ns = d.count();
  if (ns % 1'000'000'000 == 0) return fmt::format("{}s", ns / 1'000'000'000);
  if (ns % 1'000'000 == 0) return fmt::format("{}ms", ns / 1'000'000);
  return fmt::format("{}us", static_cast<double>(ns) / 1e3);
}

ConfigReader::ConfigReader(std::string file, std::string path, YAML::Node node)
    : file_(std::move(file)), path_(std::move(path)), node_(std::move(node)) {
  if (!node_.IsDefined() || node_.IsNull()) return;
  if (!node_.IsMap()) fail_at("", node_, fmt::format("must be a map of settings, not {}", kind_of(node_)));
}

Status ConfigReader::finish() {
  if (!status_.ok() || !node_.IsMap()) return status_;
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : kind_of(entry.first);
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      fail_at(key, entry.first, fmt::format("unknown key; {}", hint(key, known_)));
    } else if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      fail_at(key, entry.first, "is given twice");
    }
    if (!status_.ok()) break;
    seen.push_back(key);
  }
  return status_;
}

YAML::Node ConfigReader::find(std::string_view key) const {
  if (node_.IsMap()) {
    for (const auto& entry : node_) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

std::string ConfigReader::path_of(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
}

void ConfigReader::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void ConfigReader::fail_at(std::string_view key, const YAML::Node& value, std::string_view complaint) {
  const std::string path = path_of(key);
  const YAML::Mark mark = value.Mark();
  const std::string line = mark.is_null() ? "" : fmt::format(":{}", mark.line + 1);
  fail(error(Code::kInvalid, "{}{}: {}{}{}", file_, line, path, path.empty() ? "" : ": ", complaint));
}

void ConfigReader::read_bool(const std::string& key, const YAML::Node& value, bool& field) {
  // Not by yaml-cpp: its words for yes and no are in a table that its first user fills, on whichever thread.
  const std::string word = value.IsScalar() ? value.Scalar() : "";
  if (word != "true" && word != "false") {
    return fail_at(key, value, fmt::format("must be true or false, not {}", kind_of(value)));
  }
  field = word == "true";
}

bool ConfigReader::read_integer(const std::string& key, const YAML::Node& value, int64_t& field, Bounds bounds) {
  if (!value.IsScalar() || !YAML::convert<int64_t>::decode(value, field)) {
    fail_at(key, value, fmt::format("must be a whole number, not {}", kind_of(value)));
    return false;
  }
  double checked = static_cast<double>(field);
  read_number(key, value, checked, bounds);
  return status_.ok();
}

void ConfigReader::read_number(const std::string& key, const YAML::Node& value, double& field, Bounds bounds) {
  if (!value.IsScalar() || !YAML::convert<double>::decode(value, field) || std::isnan(field)) {
    fail_at(key, value, fmt::format("must be a number, not {}", kind_of(value)));
  } else if (field < bounds.least) {
    fail_at(key, value, fmt::format("must be at least {}, not {}", bounds.least, value.Scalar()));
  } else if (field > bounds.most) {
    fail_at(key, value, fmt::format("must be at most {}, not {}", bounds.most, value.Scalar()));
  }
}

void ConfigReader::read_string(const std::string& key, const YAML::Node& value, std::string& field) {
  if (!value.IsScalar()) return fail_at(key, value, fmt::format("must be text, not {}", kind_of(value)));
  field = value.Scalar();
}

void ConfigReader::read_duration(const std::string& key, const YAML::Node& value, Duration& field) {
  if (!value.IsScalar()) return fail_at(key, value, fmt::format("must be a duration, not {}", kind_of(value)));
  auto parsed = parse_duration(value.Scalar());
  if (!parsed.ok()) return fail_at(key, value, parsed.status().message());
  field = *parsed;
}

bool ConfigReader::read_choice(const std::string& key, const YAML::Node& value, const std::string_view* names,
                               size_t count, int& chosen) {
  const std::string word = value.IsScalar() ? value.Scalar() : "";
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == word) {
      chosen = static_cast<int>(i);
      return true;
    }
  }
  const std::vector<std::string> valid(names, names + count);
  fail_at(key, value, fmt::format("{} is not one of its choices; {}", kind_of(value), hint(word, valid)));
  return false;
}

std::string ConfigWriter::number(double value) {
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  return fmt::format("{}", value);
}

std::string ConfigWriter::quoted(const std::string& text) {
  // Plain words that YAML would not read back as the same text.
  const bool special = text.empty() || text[0] == '-' || text == "null" || text == "Null" || text == "NULL";
  const bool plain = !special && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '(' || c == ')';
  });
  if (plain) return text;
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << text;
  return emitter.c_str();
}

void ConfigWriter::line(std::string_view key, std::string_view value, std::string_view help) {
  std::string line = fmt::format("{:{}}{}:{}{}", "", indent_, key, value.empty() ? "" : " ", value);
  if (explain_ && !help.empty()) line = fmt::format("{:<44}  # {}", line, help);
  text_ += line + "\n";
}

Result<YAML::Node> parse_yaml(const std::string& text, const std::string& file) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    return error(Code::kInvalid, "{}:{}: not valid YAML: {}", file, e.mark.line + 1, e.msg);
  }
}

Result<std::string> read_text_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return errno_error(errno, fmt::format("cannot open {}", path));
  std::string text;
  char piece[1 << 16];
  for (size_t n; (n = std::fread(piece, 1, sizeof piece, file.get())) > 0;) text.append(piece, n);
  if (std::ferror(file.get()) != 0) return errno_error(errno, fmt::format("cannot read {}", path));
  return text;
}

}  // namespace talweg
