#include "data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "data/row_block.h"

namespace talweg {
namespace {

// Field offsets and signatures: APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr uint32_t kEndSignature = 0x06054b50, kEntrySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr uint64_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kMostCommentBytes = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // in place of a number that only zip64 can tell
constexpr uint32_t kStored = 0, kDeflated = 8, kEncrypted = 1;
// Deflate makes at most 258 bytes of two bits (its specification, RFC 1951): a larger claim is a lie.
constexpr uint64_t kMostRatio = 1032, kRatioSlack = 64;

// The caller has checked that the bytes are there.
template <class T>
T number_at(Bytes bytes, uint64_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

Status inflate_into(Bytes from, MutableBytes to) {
  z_stream stream{};
  CHECK(::inflateInit2(&stream, -15) == Z_OK);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  const int outcome = ::inflate(&stream, Z_FINISH);
  const bool whole = outcome == Z_STREAM_END && stream.avail_out == 0;
  ::inflateEnd(&stream);
  return whole ? Status() : error(Code::kCorrupt, "its compressed data cannot be read");
}

uint32_t crc_of(Bytes bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Status ZipArchive::damaged(std::string_view what) const {
  return error(Code::kCorrupt, "{} is not a whole zip archive: {}", name_, what);
}

Result<ZipArchive> ZipArchive::open(Bytes file, std::string name) {
  ZipArchive archive(file, std::move(name));
  TRY(archive.read_directory());
  return archive;
}

Status ZipArchive::read_directory() {
  if (file_.size() < kEndBytes) return damaged("it is too short");
  const uint64_t last = file_.size() - kEndBytes;
  uint64_t at = last;
  const uint64_t least = last - std::min(last, kMostCommentBytes);
  while (number_at<uint32_t>(file_, at) != kEndSignature) {
    if (at-- == least) return damaged("it has no directory");
  }
  const uint64_t entries = number_at<uint16_t>(file_, at + 10), bytes = number_at<uint32_t>(file_, at + 12);
  uint64_t entry_at = number_at<uint32_t>(file_, at + 16);
  if (entries == 0xffff || bytes == kIn64 || entry_at == kIn64) {
    return error(Code::kInvalid, "{} is a zip64 archive, which is not supported: keep it below 4 GiB", name_);
  }
  if (number_at<uint32_t>(file_, at + 4) != 0 || entries != number_at<uint16_t>(file_, at + 8)) {
    return damaged("it is one part of several");
  }
  if (entry_at > at || bytes > at - entry_at) return damaged("its directory does not fit");
  const uint64_t end = entry_at + bytes;
  for (uint64_t i = 0; i < entries; ++i) TRY(read_entry(&entry_at, end));
  return {};
}

Status ZipArchive::read_entry(uint64_t* at, uint64_t end) {
  const uint64_t begin = *at;
  if (end - begin < kEntryBytes || number_at<uint32_t>(file_, begin) != kEntrySignature) {
    return damaged("its directory is cut short");
  }
  const uint64_t name_bytes = number_at<uint16_t>(file_, begin + 28);
  const uint64_t extra_bytes = number_at<uint16_t>(file_, begin + 30) + number_at<uint16_t>(file_, begin + 32);
  if (end - begin - kEntryBytes < name_bytes + extra_bytes) return damaged("its directory is cut short");
  Member member;
  member.name = std::string(text_of(file_.subspan(begin + kEntryBytes, name_bytes)));
  member.flags = number_at<uint16_t>(file_, begin + 8);
  member.method = number_at<uint16_t>(file_, begin + 10);
  member.crc = number_at<uint32_t>(file_, begin + 16);
  member.stored_bytes = number_at<uint32_t>(file_, begin + 20);
  member.bytes = number_at<uint32_t>(file_, begin + 24);
  member.header_at = number_at<uint32_t>(file_, begin + 42);
  members_.push_back(std::move(member));
  *at = begin + kEntryBytes + name_bytes + extra_bytes;
  return {};
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

// The header before the content repeats the directory's sizes, or does not (streamed archives, NumPy's): it is asked
// only where the content starts.
Result<Bytes> ZipArchive::stored(const Member& member) const {
  if (member.header_at > file_.size() || file_.size() - member.header_at < kLocalBytes ||
      number_at<uint32_t>(file_, member.header_at) != kLocalSignature) {
    return damaged("a member is not where the directory says");
  }
  const uint64_t begin = member.header_at + kLocalBytes + number_at<uint16_t>(file_, member.header_at + 26) +
                         number_at<uint16_t>(file_, member.header_at + 28);
  if (begin > file_.size() || file_.size() - begin < member.stored_bytes) return damaged("a member is cut short");
  return file_.subspan(begin, member.stored_bytes);
}

Result<ZipArchive::Content> ZipArchive::read(std::string_view name) const {
  const Member* const member = find(name);
  if (member == nullptr) return error(Code::kNotFound, "{} holds no {}", name_, shown(name));
  const std::string whole_name = fmt::format("{}, member {}", name_, shown(name));
  if (member->bytes == kIn64 || member->stored_bytes == kIn64 || member->header_at == kIn64) {
    return error(Code::kInvalid, "{} needs zip64, which is not supported: keep it below 4 GiB", whole_name);
  }
  if ((member->flags & kEncrypted) != 0) return error(Code::kInvalid, "{} is encrypted", whole_name);
  ASSIGN(const Bytes raw, stored(*member));
  Content content{raw, nullptr};
  if (member->method == kDeflated) {
    if (member->bytes > raw.size() * kMostRatio + kRatioSlack) return damaged("a member claims an impossible size");
    auto buffer = std::make_shared<Buffer>(member->bytes);
    TRY(inflate_into(raw, buffer->bytes()).within(whole_name));
    content = {buffer->bytes(), buffer};
  } else if (member->method != kStored) {
    return error(Code::kInvalid, "{} is compressed by method {}: only stored and deflated (8) are supported",
                 whole_name, member->method);
  }
  if (content.bytes.size() != member->bytes || crc_of(content.bytes) != member->crc) {
    return error(Code::kCorrupt, "{} is damaged: its checksum does not hold", whole_name);
  }
  return content;
}

}  // namespace talweg
