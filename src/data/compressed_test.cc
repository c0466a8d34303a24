#include "data/compressed.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "data/line_source.h"
#include "data/test_files.h"

namespace talweg {
namespace {

// A text that is larger than the readers' own buffers.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("{} {}:1\n", i % 7, i * 31 % 1009);
  return text;
}

Result<std::string> decompressed(const std::string& input, size_t at_once = 1000) {
  const auto decompressor = make_decompressor(compression_of(bytes_of(input)), bytes_of(input), "in");
  std::string out, part(at_once, '\0');
  for (;;) {
    ASSIGN(const size_t read, decompressor->read(std::as_writable_bytes(std::span(part))));
    out.append(part, 0, read);
    if (read < at_once) return out;
  }
}

TEST(Compressed, kinds_are_told_by_their_first_bytes) {
  EXPECT_EQ(compression_of(bytes_of(test::gzip("a"))), Compression::kGzip);
  EXPECT_EQ(compression_of(bytes_of(test::zstd("a"))), Compression::kZstd);
  EXPECT_EQ(compression_of(bytes_of(std::string_view("\x53\x2a\x4d\x18\0", 5))), Compression::kZstd);
  EXPECT_EQ(compression_of(bytes_of(std::string_view("1 2:3\n"))), Compression::kNone);
  EXPECT_EQ(compression_of({}), Compression::kNone);
}

TEST(Compressed, a_text_comes_back_however_it_is_read) {
  const std::string text = long_text();
  for (const std::string& packed : {test::gzip(text), test::zstd(text)}) {
    for (const size_t at_once : {1009, 100'000, 10'000'000}) {
      const auto out = decompressed(packed, at_once);
      ASSERT_TRUE(out.ok()) << out.status().text();
      EXPECT_TRUE(*out == text);
    }
  }
}

TEST(Compressed, several_members_or_frames_are_one_text) {
  EXPECT_EQ(*decompressed(test::gzip("a\nb") + test::gzip("") + test::gzip("c\n")), "a\nbc\n");
  EXPECT_EQ(*decompressed(test::zstd("a\nb") + test::zstd("") + test::zstd("c\n")), "a\nbc\n");
  const std::string skipped("\x50\x2a\x4d\x18\x02\0\0\0xx", 10);
  EXPECT_EQ(*decompressed(skipped + test::zstd("a") + skipped), "a");
  EXPECT_EQ(*decompressed(test::gzip("a") + std::string(512, '\0')), "a") << "padding";
}

TEST(Compressed, input_cut_short_anywhere_is_an_error_with_the_place) {
  for (const std::string& packed : {test::gzip(long_text()), test::zstd(long_text())}) {
    for (size_t bytes = 4; bytes < packed.size(); bytes += bytes < 60 || bytes + 60 > packed.size() ? 1 : 997) {
      const auto out = decompressed(packed.substr(0, bytes), 100'000);
      ASSERT_EQ(out.status().code(), Code::kCorrupt) << bytes;
      ASSERT_EQ(out.status().message(),
                fmt::format("in is cut short: its compressed data has no end at byte {}", bytes));
    }
  }
}

TEST(Compressed, damage_is_an_error_with_the_place) {
  for (const std::string& packed : {test::gzip(long_text()), test::zstd(long_text())}) {
    std::string damaged = packed;
    damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x10);
    const auto out = decompressed(damaged);
    ASSERT_EQ(out.status().code(), Code::kCorrupt);
    EXPECT_NE(out.status().message().find(" at byte "), std::string::npos) << out.status().message();
  }
  std::string checksum = test::gzip("abc");
  checksum[checksum.size() - 5] = static_cast<char>(checksum[checksum.size() - 5] ^ 1);
  EXPECT_EQ(decompressed(checksum).status().message(),
            "in is damaged: its compressed data cannot be read at byte 19: incorrect data check");
  EXPECT_EQ(decompressed(test::gzip("abc") + "garbage").status().message(),
            "in is damaged: its compressed data cannot be read at byte 23: what follows is not gzip");
  EXPECT_EQ(decompressed(test::zstd("abc") + "garbage").status().code(), Code::kCorrupt);
}

TEST(Compressed, all_at_once_is_bounded) {
  const std::string packed = test::gzip(std::string(1 << 20, 'a'));
  const auto all = decompress_all(Compression::kGzip, bytes_of(packed), "in", 1 << 20);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->size(), size_t{1} << 20);
  EXPECT_EQ(decompress_all(Compression::kGzip, bytes_of(packed), "in", 100'000).status().message(),
            "in holds more than 100000 bytes");
}

TEST(LineSource, pieces_end_at_line_ends_and_know_their_lines) {
  const std::string text = long_text() + "last";
  const std::string packed = test::gzip(text);
  for (const size_t piece_bytes : {1, 10, 1000, 10'000'000}) {
    LineSource source(make_decompressor(Compression::kGzip, bytes_of(packed), "in"), "in", piece_bytes);
    std::string joined;
    size_t line = 1;
    std::vector<TextPiece> pieces;
    do {
      ASSERT_TRUE(source.take(3, &pieces).ok());
      ASSERT_LE(pieces.size(), 3u);
      for (const TextPiece& piece : pieces) {
        ASSERT_EQ(piece.first_line, line);
        joined += piece.text;
        line += static_cast<size_t>(std::count(piece.text.begin(), piece.text.end(), '\n'));
        ASSERT_TRUE(piece.text.ends_with('\n') || joined.size() == text.size());
      }
    } while (!pieces.empty());
    EXPECT_TRUE(joined == text) << piece_bytes;
  }
}

TEST(LineSource, a_line_that_never_ends_is_an_error) {
  const std::string packed = test::zstd("1\n" + std::string(2 * kMaxLineBytes, '1'));
  LineSource source(make_decompressor(Compression::kZstd, bytes_of(packed), "in"), "in", 1 << 20);
  std::vector<TextPiece> pieces;
  EXPECT_EQ(source.take(100, &pieces).message(), "in:2: the line is longer than 16777216 bytes");
}

}  // namespace
}  // namespace talweg
