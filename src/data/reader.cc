#include "data/reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "data/compressed.h"
#include "data/dense.h"
#include "data/idx.h"
#include "data/line_source.h"
#include "data/npy.h"
#include "data/parallel.h"
#include "data/pieces.h"

namespace talweg {
namespace {

constexpr size_t kLeastPieceBytes = size_t{64} << 10;
// Of compressed text, two of these are held for each thread.
constexpr size_t kMaxCompressedPieceBytes = size_t{1} << 20;
// An IDX file is decompressed whole; the largest that are known have a tenth of this.
constexpr uint64_t kMaxIdxBytes = uint64_t{8} << 30;

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

// With its end, if it has one.
std::string_view first_line_of(std::string_view text) {
  const size_t newline = text.find('\n');
  return newline == text.npos ? text : text.substr(0, newline + 1);
}

Result<ParsedRows> joined(std::vector<RowBlock> blocks, const BadRows& bad, const std::string& path) {
  ParsedRows rows;
  rows.blocks = std::move(blocks);
  for (const RowBlock& block : rows.blocks) {
    rows.shape.rows += block.rows();
    rows.shape.nonzeros += block.nonzeros();
    rows.shape.max_key = std::max(rows.shape.max_key, block.max_key);
    rows.shape.has_values |= block.has_values;
  }
  rows.shape.skipped_rows = bad.count;
  if (bad.count > 0) log_warning("{} bad rows skipped; the first is {}", bad.count, bad.first);
  if (rows.shape.rows == 0) return error(Code::kInvalid, "{} holds no rows", path);
  return rows;
}

size_t even_piece_bytes(size_t bytes, const ReadOptions& options) {
  const size_t even_share = bytes / (4 * thread_count(options.threads)) + 1;
  return std::min(std::max(even_share, kLeastPieceBytes), std::max<size_t>(options.piece_bytes, 1));
}

Result<ParsedRows> parse_all(size_t pieces, const ReadOptions& options, const std::string& path, Pieces::Parse parse) {
  Pieces run(pieces, options.most_bad_rows(), std::move(parse));
  parallel_for(options.threads, pieces, [&](size_t i) { run.parse(i); });
  std::vector<RowBlock> blocks;
  BadRows bad;
  TRY(run.finish(&blocks, &bad));
  return joined(std::move(blocks), bad, path);
}

Result<ParsedRows> read_text(const MappedFile& file, Format format, const ReadOptions& options) {
  std::string_view text = without_byte_order_mark(text_of(file.bytes()));
  const std::string_view first_line = first_line_of(text);
  ASSIGN(const TextParser parser, text_parser(format, options, file.path(), first_line));
  if (parser.header) text.remove_prefix(first_line.size());
  const auto pieces = cut_at_line_ends(text, even_piece_bytes(text.size(), options));
  const auto parse = [&](size_t i, bool exact, RowBlock* out, BadRows* bad) {
    const size_t lines_before =
        exact ? count_lines(text.substr(0, static_cast<size_t>(pieces[i].data() - text.data()))) : 0;
    return parser.parse(pieces[i], lines_before + (parser.header ? 2 : 1), out, bad);
  };
  return parse_all(pieces.size(), options, file.path(), parse);
}

// Reads the head of the text: its first pieces, the first of them without byte order mark and header.
Result<TextParser> begin_text(LineSource* source, Format format, const ReadOptions& options, const std::string& path,
                              std::vector<TextPiece>* pieces) {
  TRY(source->take(thread_count(options.threads), pieces));
  if (pieces->empty()) return error(Code::kInvalid, "{} is empty", path);
  TextPiece& first = pieces->front();
  first.text = std::string(without_byte_order_mark(first.text));
  const std::string_view first_line = first_line_of(first.text);
  ASSIGN(TextParser parser, text_parser(format, options, path, first_line));
  if (parser.header) {
    first.text.erase(0, first_line.size());
    first.first_line = 2;
  }
  return parser;
}

// While some pieces are parsed, the next are decompressed.
Result<ParsedRows> read_compressed(const MappedFile& file, Compression compression, Format format,
                                   const ReadOptions& options) {
  LineSource source(make_decompressor(compression, file.bytes(), file.path()), file.path(),
                    std::min(options.piece_bytes, kMaxCompressedPieceBytes));
  std::vector<TextPiece> pieces, next;
  ASSIGN(const TextParser parser, begin_text(&source, format, options, file.path(), &pieces));
  std::vector<RowBlock> blocks;
  BadRows bad;
  while (!pieces.empty()) {
    Pieces run(pieces.size(), options.most_bad_rows(), [&](size_t i, bool, RowBlock* out, BadRows* piece_bad) {
      return parser.parse(pieces[i].text, pieces[i].first_line, out, piece_bad);
    });
    Status taken;
    parallel_for(options.threads, pieces.size() + 1, [&](size_t i) {
      if (i == 0) {
        taken = source.take(thread_count(options.threads), &next);
      } else {
        run.parse(i - 1);
      }
    });
    TRY(run.finish(&blocks, &bad));
    TRY(taken);
    std::swap(pieces, next);
  }
  return joined(std::move(blocks), bad, file.path());
}

// A file's bytes as an IDX reader wants them.
struct Opened {
  Bytes bytes;
  std::shared_ptr<const Buffer> owner;
};
Result<Opened> opened(const MappedFile& file) {
  const Compression compression = compression_of(file.bytes());
  if (compression == Compression::kNone) return Opened{file.bytes(), nullptr};
  ASSIGN(auto owner, decompress_all(compression, file.bytes(), file.path(), kMaxIdxBytes));
  return Opened{owner->bytes(), owner};
}

Result<ParsedRows> read_table(const DenseTable& table, const ReadOptions& options, const std::string& path) {
  const size_t bytes = table.rows() * table.row_bytes();
  const uint64_t piece_rows = std::max<uint64_t>(1, even_piece_bytes(bytes, options) / table.row_bytes());
  const size_t pieces = (table.rows() + piece_rows - 1) / piece_rows;
  return parse_all(pieces, options, path, [&](size_t i, bool, RowBlock* out, BadRows* bad) {
    const uint64_t first = i * piece_rows;
    return table.parse(first, std::min(piece_rows, table.rows() - first), out, bad);
  });
}

Result<ParsedRows> read_idx(const MappedFile& images, const MappedFile& labels, const ReadOptions& options) {
  ASSIGN(const Opened pixels, opened(images));
  ASSIGN(const Opened numbers, opened(labels));
  ASSIGN(const DenseTable table, parse_idx(pixels.bytes, images.path(), numbers.bytes, labels.path()));
  return read_table(table, options, images.path());
}

Result<ParsedRows> read_npy(const MappedFile& file, const MappedFile* labels, const ReadOptions& options) {
  ASSIGN(DenseArray array, parse_npy(file.bytes(), file.path()));
  if (labels == nullptr) {
    ASSIGN(const DenseTable table, DenseTable::with_label_column(std::move(array), options.csv.label));
    return read_table(table, options, file.path());
  }
  ASSIGN(DenseArray numbers, parse_npy(labels->bytes(), labels->path()));
  ASSIGN(const DenseTable table, DenseTable::with_labels(std::move(array), std::move(numbers)));
  return read_table(table, options, file.path());
}

Result<ParsedRows> read_with_labels(const MappedFile& file, const std::string& path, Format format,
                                    const ReadOptions& options) {
  ASSIGN(const MappedFile labels, MappedFile::open(path));
  ASSIGN(ParsedRows rows, format == Format::kIdx ? read_idx(file, labels, options) : read_npy(file, &labels, options));
  ASSIGN(const FileState now, labels.current_state());
  if (now == labels.state()) return rows;
  return error(Code::kUnavailable, "{} changed while it was read: try again when it is complete", path);
}

Status check_compression(const MappedFile& file, Compression compression) {
  const bool claimed = file.path().ends_with(".gz") || file.path().ends_with(".zst");
  if (!claimed || compression != Compression::kNone) return {};
  return error(Code::kCorrupt, "{} is neither gzip nor Zstandard data, as its name says", file.path());
}

}  // namespace

Result<std::string> labels_path(const std::string& path, Format format, const ReadOptions& options) {
  if (format == Format::kNpy) return options.labels;
  if (format != Format::kIdx) return std::string();
  if (!options.labels.empty()) return options.labels;
  return idx_labels_path(path);
}

Result<ParsedRows> read_rows(const MappedFile& file, const ReadOptions& options) {
  ASSIGN(const Format format, format_of(file.path(), options.format));
  if (file.bytes().empty()) return error(Code::kInvalid, "{} is empty", file.path());
  ::madvise(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), MADV_SEQUENTIAL);
  const Compression compression = compression_of(file.bytes());
  TRY(check_compression(file, compression));
  if (is_text(format)) {
    if (compression != Compression::kNone) return read_compressed(file, compression, format, options);
    return read_text(file, format, options);
  }
  ASSIGN(const std::string labels, labels_path(file.path(), format, options));
  if (!labels.empty()) return read_with_labels(file, labels, format, options);
  if (format == Format::kNpy) return read_npy(file, nullptr, options);
  ASSIGN(const DenseTable table, parse_npz(file.bytes(), file.path()));
  return read_table(table, options, file.path());
}

}  // namespace talweg
