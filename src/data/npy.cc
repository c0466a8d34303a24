#include "data/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/row_block.h"
#include "data/zip.h"

namespace talweg {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 32;  // NumPy's own bound

constexpr std::array<std::pair<std::string_view, ElementType>, 11> kTypes = {{
    {"b1", ElementType::kUint8},
    {"i1", ElementType::kInt8},
    {"u1", ElementType::kUint8},
    {"i2", ElementType::kInt16},
    {"u2", ElementType::kUint16},
    {"i4", ElementType::kInt32},
    {"u4", ElementType::kUint32},
    {"i8", ElementType::kInt64},
    {"u8", ElementType::kUint64},
    {"f4", ElementType::kFloat32},
    {"f8", ElementType::kFloat64},
}};

// Takes the header apart: a Python dictionary of strings, truth values and tuples of numbers.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  std::optional<std::string_view> string() {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return {};
    const size_t end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) return {};
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<bool> truth() {
    skip_blanks();
    const bool value = rest_.starts_with("True");
    if (!value && !rest_.starts_with("False")) return {};
    rest_.remove_prefix(value ? 4 : 5);
    return value;
  }
  std::optional<std::vector<uint64_t>> tuple() {
    if (!take('(')) return {};
    std::vector<uint64_t> numbers;
    while (!take(')')) {
      skip_blanks();
      uint64_t number;
      const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (parsed.ec != std::errc() || numbers.size() == kMostDimensions) return {};
      rest_.remove_prefix(static_cast<size_t>(parsed.ptr - rest_.data()));
      numbers.push_back(number);
      if (take(',')) continue;
      if (!take(')')) return {};
      break;
    }
    return numbers;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

struct Header {
  std::optional<std::string_view> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<uint64_t>> shape;
};

// None of an unreadable header's values are set.
Header read_header(std::string_view text) {
  Literal literal(text);
  Header header;
  if (!literal.take('{')) return {};
  while (!literal.take('}')) {
    const auto key = literal.string();
    if (!key || !literal.take(':')) return {};
    if (*key == "descr") {
      header.type = literal.string();
    } else if (*key == "fortran_order") {
      header.fortran_order = literal.truth();
    } else if (*key == "shape") {
      header.shape = literal.tuple();
    } else {
      return {};
    }
    if (!literal.take(',')) {
      if (!literal.take('}')) return {};
      break;
    }
  }
  return literal.at_end() ? header : Header{};
}

Status not_npy(const std::string& name, std::string_view why) {
  return error(Code::kCorrupt, "{} is not a NumPy array: {}", name, why);
}

// Splits the file into its header's text and its data.
Result<std::pair<std::string_view, Bytes>> split(Bytes file, const std::string& name) {
  if (!text_of(file).starts_with(kMagic)) return not_npy(name, "it does not start as one");
  if (file.size() < 12) return not_npy(name, "it is too short");
  const auto version = static_cast<unsigned>(file[6]);
  if (version < 1 || version > 3) return error(Code::kInvalid, "{} has the unknown version {}", name, version);
  uint32_t bytes = 0;
  const size_t length_bytes = version == 1 ? 2 : 4;
  std::memcpy(&bytes, file.data() + 8, length_bytes);
  const Bytes rest = file.subspan(8 + length_bytes);
  if (bytes > rest.size()) return not_npy(name, "its header is cut short");
  return std::pair(text_of(rest.first(bytes)), rest.subspan(bytes));
}

Result<ElementType> type_of(std::string_view type, const std::string& name) {
  const std::string_view kind = type.substr(std::min<size_t>(1, type.size()));
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) { return known.first == kind; });
  if (found == kTypes.end()) {
    return error(Code::kInvalid, "{} has elements of type '{}': whole numbers and 32- or 64-bit floats are read", name,
                 shown(type));
  }
  const bool little = type[0] == '<' || type[0] == '|' || (type[0] == '>' && kind.ends_with('1'));
  if (!little) return error(Code::kInvalid, "{} is big-endian: save it with dtype '<{}'", name, kind);
  return found->second;
}

constexpr std::array<std::string_view, 3> kFeatureNames = {"X", "x", "data"}, kLabelNames = {"y", "labels", "label"};

Result<DenseArray> find_array(const ZipArchive& archive, const std::array<std::string_view, 3>& names,
                              std::string_view what, const std::string& file) {
  for (const std::string_view name : names) {
    const std::string member = std::string(name) + ".npy";
    if (!archive.has(member)) continue;
    ASSIGN(const ZipArchive::Content content, archive.read(member));
    ASSIGN(DenseArray array, parse_npy(content.bytes, fmt::format("{}, array {}", file, name)));
    array.owner = content.owner;
    return array;
  }
  std::string held;
  for (const std::string& name : archive.names()) held += (held.empty() ? "" : ", ") + shown(name);
  return error(Code::kInvalid, "{} holds no {}: they must be named {}, {} or {}; it holds: {}", file, what, names[0],
               names[1], names[2], held);
}

}  // namespace

Result<DenseArray> parse_npy(Bytes file, std::string name) {
  ASSIGN(const auto parts, split(file, name));
  Header header = read_header(parts.first);
  if (!header.type || !header.fortran_order || !header.shape) return not_npy(name, "its header cannot be read");
  if (*header.fortran_order && header.shape->size() > 1) {
    return error(Code::kInvalid, "{} is in Fortran order: save it with numpy.ascontiguousarray", name);
  }
  DenseArray array;
  ASSIGN(array.type, type_of(*header.type, name));
  array.name = std::move(name);
  array.shape = std::move(*header.shape);
  array.data = parts.second;
  TRY(check_size(array));
  return array;
}

Result<DenseTable> parse_npz(Bytes file, const std::string& name) {
  ASSIGN(const ZipArchive archive, ZipArchive::open(file, name));
  ASSIGN(DenseArray features, find_array(archive, kFeatureNames, "features", name));
  ASSIGN(DenseArray labels, find_array(archive, kLabelNames, "labels", name));
  return DenseTable::with_labels(std::move(features), std::move(labels));
}

}  // namespace talweg
