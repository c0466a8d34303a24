#include "data/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "data/compressed.h"
#include "data/line_source.h"

namespace talweg {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kLongestMagic = 4;

Result<Fd> open_input(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  Fd fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return errno_error(errno, path == "-" ? "standard input" : path);
  return fd;
}

}  // namespace

Result<std::unique_ptr<RowStream>> RowStream::open(const std::string& path, const ReadOptions& options) {
  const bool standard_input = path == "-";
  if (standard_input && options.format == Format::kAuto) {
    return error(Code::kInvalid, "standard input has no name to tell its format by: set the format");
  }
  ASSIGN(const Format format, format_of(path, options.format));
  const std::string name = standard_input ? "standard input" : path;
  if (!is_text(format)) {
    return error(Code::kInvalid, "{} cannot be read as it comes: only libsvm, csv, tsv and criteo can", name);
  }
  ASSIGN(Fd fd, open_input(path));
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, name);
  if (S_ISDIR(status.st_mode)) return error(Code::kInvalid, "{} is a directory, not a file", name);
  std::unique_ptr<RowStream> stream(new RowStream(std::move(fd), name, format, options));
  stream->is_file_ = S_ISREG(status.st_mode);
  stream->may_grow_ = stream->is_file_ && !standard_input;
  return stream;
}

RowStream::RowStream(Fd fd, std::string name, Format format, const ReadOptions& options)
    : fd_(std::move(fd)), name_(std::move(name)), format_(format), options_(options) {
  bad_.most = options.most_bad_rows();
}

Result<StreamRead> RowStream::read(size_t max_rows, int timeout_ms, RowBlock* out) {
  TRY(failure_);
  StreamRead outcome;
  failure_ = read_rows(max_rows, std::clamp(timeout_ms, 0, kMaxWaitMs), out, &outcome);
  TRY(failure_);
  return outcome;
}

Status RowStream::read_rows(size_t max_rows, int timeout_ms, RowBlock* out, StreamRead* outcome) {
  for (size_t received = 0; received < kMaxBytesPerRead;) {
    ASSIGN(const size_t rows, parse_lines(max_rows - outcome->rows, out));
    outcome->rows += rows;
    outcome->ended = input_ended_ && buffered().empty();
    if (outcome->rows == max_rows || outcome->ended) return {};
    // Rows in hand are worth more than rows to come.
    ASSIGN(const size_t more, receive(outcome->rows > 0 ? 0 : timeout_ms));
    received += more;
    outcome->at_end_for_now = more == 0 && !input_ended_;
    if (outcome->at_end_for_now) return {};
  }
  return {};
}

Result<size_t> RowStream::parse_lines(size_t max_rows, RowBlock* out) {
  TRY(begin());
  size_t rows = 0;
  while (parser_ && rows < max_rows) {
    const std::string_view lines = lines_there(max_rows - rows);
    if (lines.empty()) break;
    const size_t before = out->rows();
    TRY(parser_->parse(lines, line_, out, &bad_));
    rows += out->rows() - before;
    line_ += static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
    begin_ += lines.size();
  }
  if (buffered().size() > kMaxLineBytes && lines_there(1).empty()) {
    return error(Code::kInvalid, "{}:{}: the line is longer than {} bytes", name_, line_, kMaxLineBytes);
  }
  return rows;
}

Status RowStream::begin() {
  if (parser_) return {};
  const bool enough = buffered().size() >= kLongestMagic || input_ended_;
  if (enough && compression_of(bytes_of(buffered())) != Compression::kNone) {
    return error(Code::kInvalid, "{} is compressed: a stream must be plain text, as from zcat or zstdcat", name_);
  }
  std::string_view first_line = lines_there(1);
  if (first_line.empty()) return {};
  begin_ += first_line.size() - without_byte_order_mark(first_line).size();
  first_line = without_byte_order_mark(first_line);
  ASSIGN(parser_, text_parser(format_, options_, name_, first_line));
  if (!parser_->header) return {};
  begin_ += first_line.size();
  line_ = 2;
  return {};
}

std::string_view RowStream::lines_there(size_t count) const {
  const std::string_view text = buffered();
  size_t end = 0;
  for (; count > 0; --count) {
    const size_t newline = text.find('\n', end);
    if (newline == text.npos) return input_ended_ ? text : text.substr(0, end);
    end = newline + 1;
  }
  return text.substr(0, end);
}

Result<size_t> RowStream::receive(int timeout_ms) {
  if (is_file_) {
    ASSIGN(const size_t read, read_some());
    if (read > 0 || input_ended_) return read;
    TRY(check_not_cut());
    if (timeout_ms == 0) return size_t{0};
  }
  ASSIGN(const bool ready, wait_for_input(timeout_ms));
  return ready ? read_some() : Result<size_t>(size_t{0});
}

// A file is always ready, even at its end: all that can be done there is to let the time pass.
Result<bool> RowStream::wait_for_input(int timeout_ms) {
  pollfd wanted{fd_.get(), POLLIN, 0};
  const int ready = ::poll(&wanted, is_file_ ? 0 : 1, timeout_ms);
  if (ready < 0 && errno != EINTR) return errno_error(errno, name_);
  return is_file_ || ready > 0;
}

Result<size_t> RowStream::read_some() {
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t before = buffer_.size();
  buffer_.resize(before + kChunkBytes);
  const ssize_t read = ::read(fd_.get(), buffer_.data() + before, kChunkBytes);
  const int failure = errno;
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(read, 0)));
  if (read < 0 && failure != EINTR && failure != EAGAIN) return errno_error(failure, name_);
  input_ended_ = read == 0 && !may_grow_;
  offset_ += buffer_.size() - before;
  return buffer_.size() - before;
}

Status RowStream::check_not_cut() const {
  struct stat status;
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, name_);
  if (static_cast<uint64_t>(status.st_size) >= offset_) return {};
  return error(Code::kInvalid, "{} was cut from {} bytes to {} while it was followed", name_, offset_, status.st_size);
}

}  // namespace talweg
