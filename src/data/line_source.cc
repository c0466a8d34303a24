#include "data/line_source.h"

#include <algorithm>
#include <span>
#include <utility>

namespace talweg {

LineSource::LineSource(std::unique_ptr<Decompressor> from, std::string file, size_t piece_bytes)
    : from_(std::move(from)), file_(std::move(file)), piece_bytes_(std::clamp<size_t>(piece_bytes, 1, kMaxLineBytes)) {}

Status LineSource::take(size_t count, std::vector<TextPiece>* out) {
  out->clear();
  while (out->size() < count) {
    ASSIGN(std::string text, next());
    if (text.empty()) break;
    const size_t lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    out->push_back({std::move(text), line_});
    line_ += lines;
  }
  return {};
}

Result<std::string> LineSource::next() {
  std::string text = std::exchange(rest_, {});
  while (!at_end_) {
    const size_t before = text.size();
    if (before > kMaxLineBytes) {
      return error(Code::kInvalid, "{}:{}: the line is longer than {} bytes", file_, line_, kMaxLineBytes);
    }
    text.resize(before + piece_bytes_);
    ASSIGN(const size_t read, from_->read(std::as_writable_bytes(std::span(text).subspan(before))));
    text.resize(before + read);
    at_end_ = read < piece_bytes_;
    const size_t newline = text.rfind('\n');
    if (at_end_ || newline == text.npos) continue;
    rest_ = text.substr(newline + 1);
    text.resize(newline + 1);
    break;
  }
  return text;
}

}  // namespace talweg
