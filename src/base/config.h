// Settings. A struct becomes a part of a job file by listing its fields once:
//
//   struct TrainConfig {
//     int64_t epochs = 1;
//     template <class Fields> void fields(Fields& f) {
//       f("epochs", epochs, "passes over the training rows", at_least(1));
//     }
//   };
//
// From that one list come reading (with errors that give file, line, key and the nearest valid key), printing with
// every default explained, and the text that is sent to the nodes.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace talweg {

// What a number must satisfy; both ends included.
struct Bounds {
  double least = -INFINITY, most = INFINITY;

  // Also what an integer of this type can hold.
  template <class T>
  constexpr Bounds within_type() const {
    return {std::max(least, static_cast<double>(std::numeric_limits<T>::min())),
            std::min(most, static_cast<double>(std::numeric_limits<T>::max()))};
  }
};
constexpr Bounds at_least(double least) { return {least, INFINITY}; }
constexpr Bounds between(double least, double most) { return {least, most}; }

// A choice is an enum with names: specialise for each enum, in the enum's order.
//   template <> struct Choices<Sync> { static constexpr std::string_view names[] = {"bsp", "asp"}; };
template <class E>
struct Choices;

// The valid word nearest to `word` by edit distance, if any is near enough to be a slip of the pen.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& valid);

// "2s", "150ms", "10us"; the unit must be given.
Result<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration d);

// What a field may be, besides a single value.
template <class T>
concept HasFields = requires(T& t, int& f) {
  t.fields(f);
};
// A word of its own kind, as ssp(4): says what it means by T::from_text and how it is written by text().
template <class T>
concept IsWord = requires(const T& t) {
  { T::from_text(std::string_view()) } -> std::same_as<Result<T>>;
  { t.text() } -> std::same_as<std::string>;
};
template <class T>
concept IsOptional = requires(T& t) {
  typename T::value_type;
  t.has_value();
};
template <class T>
concept IsList = std::is_same_v<T, std::vector<typename T::value_type>>;
template <class T>
concept IsListOfStructs = IsList<T> && HasFields<typename T::value_type>;

// Reads one YAML map into a struct. Collects the first error; later fields are skipped then.
class ConfigReader {
 public:
  ConfigReader(std::string file, std::string path, YAML::Node node);

  template <class T>
  void operator()(std::string_view key, T& field, std::string_view /*help*/, Bounds bounds = {}) {
    known_.emplace_back(key);
    if (!status_.ok()) return;
    const YAML::Node value = find(key);
    if (value.IsDefined()) read(std::string(key), value, field, bounds);
  }
  // After all fields: an error if the map holds a key that no field has.
  Status finish();

 private:
  template <class T>
  void read(const std::string& key, const YAML::Node& value, T& field, Bounds bounds) {
    if constexpr (std::is_same_v<T, bool>) {
      read_bool(key, value, field);
    } else if constexpr (std::is_integral_v<T>) {
      int64_t wide = 0;
      if (read_integer(key, value, wide, bounds.within_type<T>())) field = static_cast<T>(wide);
    } else if constexpr (std::is_floating_point_v<T>) {
      read_number(key, value, field, bounds);
    } else if constexpr (std::is_same_v<T, std::string>) {
      read_string(key, value, field);
    } else if constexpr (std::is_same_v<T, Duration>) {
      read_duration(key, value, field);
    } else if constexpr (std::is_enum_v<T>) {
      int chosen = 0;
      const auto& names = Choices<T>::names;
      if (read_choice(key, value, names, std::size(names), chosen)) field = static_cast<T>(chosen);
    } else if constexpr (IsWord<T>) {
      std::string word;
      read_string(key, value, word);
      if (!status_.ok()) return;
      auto parsed = T::from_text(word);
      if (!parsed.ok()) return fail_at(key, value, parsed.status().message());
      field = std::move(*parsed);
    } else if constexpr (IsOptional<T>) {
      field.emplace();
      read(key, value, *field, bounds);
    } else if constexpr (IsList<T>) {
      read_list(key, value, field, bounds);
    } else {
      ConfigReader nested(file_, path_of(key), value);
      field.fields(nested);
      fail(nested.finish());
    }
  }
  template <class T>
  void read_list(const std::string& key, const YAML::Node& value, std::vector<T>& field, Bounds bounds) {
    if (!value.IsSequence()) return fail_at(key, value, "must be a list, as [a, b]");
    field.clear();
    for (const YAML::Node& item : value) {
      T element{};
      read(fmt::format("{}[{}]", key, field.size()), item, element, bounds);
      if (!status_.ok()) return;
      field.push_back(std::move(element));
    }
  }
  void read_bool(const std::string& key, const YAML::Node& value, bool& field);
  bool read_integer(const std::string& key, const YAML::Node& value, int64_t& field, Bounds bounds);
  void read_number(const std::string& key, const YAML::Node& value, double& field, Bounds bounds);
  void read_string(const std::string& key, const YAML::Node& value, std::string& field);
  void read_duration(const std::string& key, const YAML::Node& value, Duration& field);
  bool read_choice(const std::string& key, const YAML::Node& value, const std::string_view* names, size_t count,
                   int& chosen);

  YAML::Node find(std::string_view key) const;
  std::string path_of(std::string_view key) const;
  void fail(Status status);
  void fail_at(std::string_view key, const YAML::Node& value, std::string_view complaint);

  std::string file_, path_;
  YAML::Node node_;
  std::vector<std::string> known_;
  Status status_;
};

// Writes a struct as YAML text, each field with its help as a comment when `explain` is set.
class ConfigWriter {
 public:
  explicit ConfigWriter(bool explain, int indent = 0) : explain_(explain), indent_(indent) {}

  template <class T>
  void operator()(std::string_view key, T& field, std::string_view help, Bounds = {}) {
    if constexpr (IsOptional<T>) {
      if (field.has_value()) return (*this)(key, *field, help);
      if (explain_) line(fmt::format("# {}", key), "", fmt::format("not set; {}", help));
    } else if constexpr (HasFields<T>) {
      line(key, "", help);
      text_ += nested_text(field, indent_ + 2);
    } else if constexpr (IsListOfStructs<T>) {
      line(key, field.empty() ? "[]" : "", help);
      for (auto& element : field) {
        std::string item = nested_text(element, indent_ + 4);
        if (item.empty()) item = fmt::format("{:{}}{{}}\n", "", indent_ + 4);
        item.at(static_cast<size_t>(indent_) + 2) = '-';
        text_ += item;
      }
    } else {
      line(key, scalar(field), help);
    }
  }
  const std::string& text() const { return text_; }

 private:
  template <class T>
  static std::string scalar(const T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      return field ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(field);
    } else if constexpr (std::is_floating_point_v<T>) {
      return number(field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return quoted(field);
    } else if constexpr (std::is_same_v<T, Duration>) {
      return format_duration(field);
    } else if constexpr (std::is_enum_v<T>) {
      return std::string(Choices<T>::names[static_cast<size_t>(field)]);
    } else if constexpr (IsWord<T>) {
      return quoted(field.text());
    } else {
      std::string list;
      for (const auto& element : field) list += (list.empty() ? "" : ", ") + scalar(element);
      return "[" + list + "]";
    }
  }
  template <class T>
  std::string nested_text(T& field, int indent) const {
    ConfigWriter nested(explain_, indent);
    field.fields(nested);
    return nested.text();
  }
  static std::string number(double value);
  static std::string quoted(const std::string& text);
  void line(std::string_view key, std::string_view value, std::string_view help);

  bool explain_;
  int indent_;
  std::string text_;
};

// Parses `text` (named `file` in errors) into YAML, syntax errors as Status.
Result<YAML::Node> parse_yaml(const std::string& text, const std::string& file);
Result<std::string> read_text_file(const std::string& path);

template <class T>
Result<T> config_from_yaml(const YAML::Node& node, const std::string& file) {
  T config;
  ConfigReader reader(file, "", node);
  config.fields(reader);
  TRY(reader.finish());
  return config;
}
template <class T>
Result<T> config_from_text(const std::string& text, const std::string& file) {
  ASSIGN(YAML::Node node, parse_yaml(text, file));
  return config_from_yaml<T>(node, file);
}
template <class T>
std::string config_to_text(T config, bool explain = false) {
  ConfigWriter writer(explain);
  config.fields(writer);
  return writer.text();
}

}  // namespace talweg
