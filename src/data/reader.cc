#include "data/reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "data/libsvm.h"
#include "data/parallel.h"

namespace talweg {
namespace {

constexpr size_t kLeastPieceBytes = size_t{64} << 10;

using Parse = std::function<Status(std::string_view text, size_t first_line, RowBlock* out, BadRows* bad)>;

std::vector<std::string_view> cut_at_line_ends(std::string_view text, size_t piece_bytes) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t newline = text.size() <= piece_bytes ? text.npos : text.find('\n', piece_bytes - 1);
    const size_t size = newline == text.npos ? text.size() : newline + 1;
    pieces.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

size_t count_lines(std::string_view text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// What the parsers made of the pieces, and how to say it.
class PieceParser {
 public:
  // `first_line` is the number of the first line of `text` in the file.
  PieceParser(std::string_view text, size_t first_line, size_t piece_bytes, Parse parse, uint64_t max_bad_rows)
      : text_(text),
        first_line_(first_line),
        parse_(std::move(parse)),
        max_bad_rows_(max_bad_rows),
        pieces_(cut_at_line_ends(text, piece_bytes)),
        blocks_(pieces_.size()),
        bad_(pieces_.size()),
        first_failed_(pieces_.size()) {}

  Result<std::vector<RowBlock>> run(size_t threads) {
    parallel_for(threads, pieces_.size(), [&](size_t i) {
      // Pieces after a failed one cannot change the outcome; those before it can.
      if (i < first_failed_) parse_piece(i);
    });
    if (first_failed_ < pieces_.size()) return max_bad_rows_ == 0 ? failure_of(first_failed_) : too_many();
    for (const BadRows& bad : bad_) skipped_ += bad.count;
    if (skipped_ > max_bad_rows_) return too_many();
    if (skipped_ > 0) log_warning("{} bad rows skipped; the first is {}", skipped_, first_complaint());
    return std::move(blocks_);
  }
  uint64_t skipped() const { return skipped_; }

 private:
  void parse_piece(size_t i) {
    bad_[i].most = max_bad_rows_;
    if (parse_(pieces_[i], 1, &blocks_[i], &bad_[i]).ok()) return;
    size_t first = first_failed_;
    while (i < first && !first_failed_.compare_exchange_weak(first, i)) {
    }
  }

  // Line numbers are counted only when one must be told: the piece is parsed again, knowing where it starts.
  Status reparse(size_t i, BadRows* bad) const {
    const size_t before = static_cast<size_t>(pieces_[i].data() - text_.data());
    RowBlock ignored;
    return parse_(pieces_[i], first_line_ + count_lines(text_.substr(0, before)), &ignored, bad);
  }
  Status failure_of(size_t failed) const {
    BadRows none;
    return reparse(failed, &none);
  }
  Status too_many() const {
    return error(Code::kInvalid, "more than {} bad rows; the first is {}", max_bad_rows_, first_complaint());
  }
  std::string first_complaint() const {
    const auto first = std::find_if(bad_.begin(), bad_.end(), [](const BadRows& bad) { return bad.count > 0; });
    BadRows all;
    all.most = ~uint64_t{0};
    const Status skipped = reparse(static_cast<size_t>(first - bad_.begin()), &all);
    CHECK(skipped.ok());
    return all.first;
  }

  std::string_view text_;
  size_t first_line_;
  Parse parse_;
  uint64_t max_bad_rows_;
  std::vector<std::string_view> pieces_;
  std::vector<RowBlock> blocks_;
  std::vector<BadRows> bad_;
  std::atomic<size_t> first_failed_;
  uint64_t skipped_ = 0;
};

DatasetShape shape_of(const std::vector<RowBlock>& blocks) {
  DatasetShape shape;
  for (const RowBlock& block : blocks) {
    shape.rows += block.rows();
    shape.nonzeros += block.nonzeros();
    shape.max_key = std::max(shape.max_key, block.max_key);
    shape.has_values |= block.has_values;
  }
  return shape;
}

// The parser of a file's rows, with the header taken off `text`.
Result<Parse> parser_for(Format format, const ReadOptions& options, const std::string& path, std::string_view* text,
                         size_t* first_line) {
  if (format == Format::kLibSvm) {
    return Parse([&path](std::string_view piece, size_t line, RowBlock* out, BadRows* bad) {
      return parse_libsvm(piece, line, path, out, bad);
    });
  }
  CsvOptions csv = options.csv;
  if (csv.delimiter == 0) csv.delimiter = format == Format::kTsv ? '\t' : ',';
  const size_t line_end = std::min(text->find('\n'), text->size() - 1) + 1;
  ASSIGN(CsvLayout layout, csv_layout(text->substr(0, line_end), csv, path));
  if (csv.header) {
    text->remove_prefix(line_end);
    *first_line = 2;
  }
  return Parse([&path, layout = std::move(layout)](std::string_view piece, size_t line, RowBlock* out, BadRows* bad) {
    return parse_csv(piece, line, path, layout, out, bad);
  });
}

}  // namespace

Result<Format> format_of(const std::string& path, Format wanted) {
  if (wanted != Format::kAuto) return wanted;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".svm" || extension == ".libsvm" || extension == ".txt") return Format::kLibSvm;
  if (extension == ".csv") return Format::kCsv;
  if (extension == ".tsv") return Format::kTsv;
  return error(Code::kInvalid,
               "{}: the format is not known by the extension '{}' (.svm, .libsvm, .txt, .csv, .tsv): set it", path,
               extension);
}

Result<ParsedRows> read_rows(const MappedFile& file, const ReadOptions& options) {
  ASSIGN(const Format format, format_of(file.path(), options.format));
  if (file.bytes().empty()) return error(Code::kInvalid, "{} is empty", file.path());
  ::madvise(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), MADV_SEQUENTIAL);
  std::string_view text = text_of(file.bytes());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  size_t first_line = 1;
  ASSIGN(Parse parse, parser_for(format, options, file.path(), &text, &first_line));

  const size_t even_share = text.size() / (4 * thread_count(options.threads)) + 1;
  const size_t piece_bytes = std::min(std::max(even_share, kLeastPieceBytes), std::max<size_t>(options.piece_bytes, 1));
  const uint64_t max_bad_rows = options.bad_rows == BadRowPolicy::kSkip ? options.max_bad_rows : 0;
  PieceParser pieces(text, first_line, piece_bytes, std::move(parse), max_bad_rows);
  ParsedRows rows;
  ASSIGN(rows.blocks, pieces.run(options.threads));
  rows.shape = shape_of(rows.blocks);
  rows.shape.skipped_rows = pieces.skipped();
  if (rows.shape.rows == 0) return error(Code::kInvalid, "{} holds no rows", file.path());
  return rows;
}

}  // namespace talweg
