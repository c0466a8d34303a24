#include "data/format.h"

#include <filesystem>
#include <memory>

#include "data/criteo.h"
#include "data/libsvm.h"

namespace talweg {
namespace {

std::string_view without_compression(std::string_view path) {
  if (path.ends_with(".gz")) return path.substr(0, path.size() - 3);
  return path.ends_with(".zst") ? path.substr(0, path.size() - 4) : path;
}

bool is_idx_name(std::string_view name) {
  constexpr std::string_view kEnd = "-ubyte";
  if (!name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  return name.size() >= 4 && name.substr(name.size() - 4, 3) == "idx" && name.back() >= '0' && name.back() <= '9';
}

}  // namespace

Result<Format> format_of(const std::string& path, Format wanted) {
  if (wanted != Format::kAuto) return wanted;
  const std::filesystem::path name(without_compression(path));
  const std::string extension = name.extension().string();
  if (extension == ".svm" || extension == ".libsvm" || extension == ".txt") return Format::kLibSvm;
  if (extension == ".csv") return Format::kCsv;
  if (extension == ".tsv") return Format::kTsv;
  if (extension == ".criteo") return Format::kCriteo;
  if (extension == ".npy") return Format::kNpy;
  if (extension == ".npz") return Format::kNpz;
  if (extension == ".idx" || is_idx_name(name.string())) return Format::kIdx;
  return error(Code::kInvalid,
               "{}: the format is not known by the extension '{}' (.svm, .libsvm, .txt, .csv, .tsv, .criteo, .npy, "
               ".npz, .idx): set it",
               path, extension);
}

bool is_text(Format format) {
  return format == Format::kLibSvm || format == Format::kCsv || format == Format::kTsv || format == Format::kCriteo;
}

Result<TextParser> text_parser(Format format, const ReadOptions& options, const std::string& file,
                               std::string_view first_line) {
  CHECK(is_text(format));
  using std::string_view;
  TextParser parser;
  if (format == Format::kLibSvm) {
    parser.parse = [&file](string_view text, size_t line, RowBlock* out, BadRows* bad) {
      return parse_libsvm(text, line, file, out, bad);
    };
    return parser;
  }
  if (format == Format::kCriteo) {
    TRY(FeatureHash::check_bits(options.csv.hash_bits));
    const auto layout = std::make_shared<const CriteoLayout>(options.csv.hash_bits);
    parser.parse = [&file, layout](string_view text, size_t line, RowBlock* out, BadRows* bad) {
      return parse_criteo(text, line, file, *layout, out, bad);
    };
    return parser;
  }
  CsvOptions csv = options.csv;
  if (csv.delimiter == 0) csv.delimiter = format == Format::kTsv ? '\t' : ',';
  ASSIGN(CsvLayout layout, csv_layout(first_line, csv, file));
  parser.header = csv.header;
  parser.parse = [&file, layout = std::move(layout)](string_view text, size_t line, RowBlock* out, BadRows* bad) {
    return parse_csv(text, line, file, layout, out, bad);
  };
  return parser;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace talweg
