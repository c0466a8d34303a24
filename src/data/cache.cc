#include "data/cache.h"

#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <type_traits>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/file.h"
#include "data/sections.h"

namespace talweg {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'T', 'A', 'L', 'W', 'E', 'G', 'D', 'S'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kSectionAlignment = 64;
// Keys and values up to this size are checked on every open: it costs a fraction of a second.
constexpr uint64_t kAlwaysVerifyBytes = uint64_t{1} << 30;
// A process that waited this long for another's cache makes its own.
constexpr auto kLockPoll = std::chrono::milliseconds(20);
constexpr int kLockPolls = 30'000;

struct SectionHeader {
  uint64_t offset = 0, bytes = 0;
  uint32_t crc = 0, reserved = 0;
};

// The first bytes of the file, as they are stored.
struct CacheHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t header_bytes = 256;
  uint64_t source_bytes = 0;
  int64_t source_mtime_ns = 0;
  uint64_t options_hash = 0;
  uint64_t rows = 0, nonzeros = 0, max_key = 0, skipped_rows = 0;
  uint32_t has_values = 0, reserved = 0;
  std::array<SectionHeader, kSections.size()> sections;
  std::array<uint8_t, 76> padding{};
  uint32_t crc = 0;  // of all bytes before it
};
static_assert(sizeof(CacheHeader) == 256 && std::is_trivially_copyable_v<CacheHeader>);

uint32_t crc_of(const CacheHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(CacheHeader, crc)));
}

uint64_t align_up(uint64_t offset) { return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment; }

uint64_t hash_bytes(uint64_t hash, std::string_view text) {
  hash = mix64(hash ^ text.size());
  for (const char c : text) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

// Which state of the labels' file the rows are made from, where it is a file of its own.
Result<uint64_t> labels_hash(uint64_t hash, const DatasetOptions& options, Format format) {
  ASSIGN(const std::string path, labels_path(options.path, format, options.read));
  if (path.empty()) return hash;
  ASSIGN(const MappedFile labels, MappedFile::open(path));
  hash = hash_bytes(hash, path);
  hash = mix64(hash ^ labels.state().bytes);
  return mix64(hash ^ static_cast<uint64_t>(labels.state().mtime_ns));
}

uint64_t csv_hash(uint64_t hash, const CsvOptions& csv) {
  hash = mix64(hash ^ static_cast<unsigned char>(csv.delimiter));
  hash = mix64(hash ^ static_cast<uint64_t>(csv.header));
  hash = hash_bytes(hash, csv.label);
  if (csv.categorical.empty()) return hash;
  for (const std::string& column : csv.categorical) hash = hash_bytes(hash, column);
  return mix64(hash ^ csv.hash_bits);
}

// Everything that changes what rows a source gives.
Result<uint64_t> options_hash(const DatasetOptions& options, Format format) {
  const ReadOptions& read = options.read;
  uint64_t hash = mix64(static_cast<uint64_t>(format));
  hash = mix64(hash ^ static_cast<uint64_t>(read.bad_rows));
  if (read.bad_rows == BadRowPolicy::kSkip) hash = mix64(hash ^ read.max_bad_rows);
  switch (format) {
    case Format::kAuto:
    case Format::kLibSvm: return hash;
    case Format::kCsv:
    case Format::kTsv: return csv_hash(hash, read.csv);
    case Format::kCriteo: return mix64(hash ^ read.csv.hash_bits);
    case Format::kNpy: return labels_hash(hash_bytes(hash, read.csv.label), options, format);
    case Format::kNpz:
    case Format::kIdx: break;
  }
  return labels_hash(hash, options, format);
}

DatasetShape shape_of(const CacheHeader& header) {
  return {header.rows, header.nonzeros, header.max_key, header.skipped_rows, header.has_values != 0};
}

// Places the sections one after the other and returns the size of the file.
uint64_t place_sections(const DatasetShape& shape, CacheHeader* header) {
  uint64_t end = sizeof(CacheHeader);
  for (size_t s = 0; s < kSections.size(); ++s) {
    header->sections[s].offset = align_up(end);
    header->sections[s].bytes = section_bytes(shape, kSections[s]);
    end = header->sections[s].offset + header->sections[s].bytes;
  }
  return end;
}

CacheHeader header_for(const FileState& source, uint64_t hash) {
  CacheHeader header;
  header.source_bytes = source.bytes;
  header.source_mtime_ns = source.mtime_ns;
  header.options_hash = hash;
  return header;
}

Status corrupt(const std::string& path, std::string_view what) {
  return error(Code::kCorrupt, "the data cache {} is damaged: {}", path, what);
}

// The header tells sizes; they must be those that its own shape gives and that the file has.
Status check_layout(const std::string& path, const CacheHeader& header, uint64_t file_bytes) {
  if (header.crc != crc_of(header)) return corrupt(path, "the header's checksum does not hold");
  // Bounds that keep the products below from wrapping.
  if (header.rows == 0 || header.rows > file_bytes || header.nonzeros > file_bytes)
    return corrupt(path, "impossible counts");
  CacheHeader expected = header;
  if (place_sections(shape_of(header), &expected) != file_bytes) return corrupt(path, "its size is wrong");
  for (size_t s = 0; s < kSections.size(); ++s) {
    const bool same = header.sections[s].offset == expected.sections[s].offset &&
                      header.sections[s].bytes == expected.sections[s].bytes;
    if (!same) return corrupt(path, "its sections do not fit");
  }
  return {};
}

Status check_section(const std::string& path, const CacheHeader& header, Bytes file, Section section) {
  const SectionHeader& place = header.sections[static_cast<size_t>(section)];
  if (crc32c(file.subspan(place.offset, place.bytes)) == place.crc) return {};
  return corrupt(path, fmt::format("the checksum of section {} does not hold", static_cast<int>(section)));
}

// A checksum proves only that the bytes are those that were written.
Status check_content(const std::string& path, const DatasetColumns& columns, uint64_t nonzeros) {
  const auto offsets = columns.offsets;
  if (offsets.front() != 0 || offsets.back() != nonzeros || !std::is_sorted(offsets.begin(), offsets.end())) {
    return corrupt(path, "its row offsets do not rise");
  }
  return {};
}

Status check_keys(const std::string& path, const DatasetColumns& columns) {
  uint64_t max_key = 0;
  for (const uint64_t key : columns.keys64) max_key = std::max(max_key, key);
  uint32_t narrow_max = 0;
  for (const uint32_t key : columns.keys32) narrow_max = std::max(narrow_max, key);
  return std::max<uint64_t>(max_key, narrow_max) == columns.max_key
             ? Status()
             : corrupt(path, "its largest key is not the one told");
}

// kNotFound: there is none. kInvalid: it is of another source, other options or another version. kCorrupt: damaged.
Result<Dataset> map_cache(const std::string& path, const CacheHeader& wanted, bool verify) {
  ASSIGN(MappedFile mapped, MappedFile::open(path));
  const auto file = std::make_shared<MappedFile>(std::move(mapped));
  const Bytes bytes = file->bytes();
  CacheHeader header;
  if (bytes.size() < sizeof(header)) return corrupt(path, "it is too short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return corrupt(path, "it does not start as one");
  if (header.version != kVersion) return error(Code::kInvalid, "{} has version {}", path, header.version);
  TRY(check_layout(path, header, bytes.size()));
  if (header.source_bytes != wanted.source_bytes || header.source_mtime_ns != wanted.source_mtime_ns ||
      header.options_hash != wanted.options_hash) {
    return error(Code::kInvalid, "{} is of another state of the source or other options", path);
  }
  TRY(check_section(path, header, bytes, Section::kOffsets));
  TRY(check_section(path, header, bytes, Section::kLabels));
  std::array<const std::byte*, kSections.size()> sections{};
  for (size_t s = 0; s < kSections.size(); ++s) sections[s] = bytes.data() + header.sections[s].offset;
  const DatasetColumns columns = columns_at(shape_of(header), sections);
  TRY(check_content(path, columns, header.nonzeros));
  if (verify || bytes.size() <= kAlwaysVerifyBytes) {
    TRY(check_section(path, header, bytes, Section::kKeys));
    TRY(check_section(path, header, bytes, Section::kValues));
    TRY(check_keys(path, columns));
  }
  return Dataset(columns, file);
}

Status write_sections(const ParsedRows& rows, CacheHeader header, AtomicFile* file) {
  uint64_t end = sizeof(header);
  TRY(file->write(std::as_bytes(std::span(&header, 1))));
  for (size_t s = 0; s < kSections.size(); ++s) {
    SectionHeader& section = header.sections[s];
    const std::array<std::byte, kSectionAlignment> zeros{};
    TRY(file->write(Bytes(zeros).first(section.offset - end)));
    TRY(put_section(rows, kSections[s], [&](Bytes piece) {
      section.crc = crc32c(piece, section.crc);
      return file->write(piece);
    }));
    end = section.offset + section.bytes;
  }
  header.crc = crc_of(header);
  return file->write_at(0, std::as_bytes(std::span(&header, 1)));
}

Status write_cache_file(const std::string& path, const ParsedRows& rows, const CacheHeader& header, uint64_t bytes) {
  ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.reserve(bytes));
  TRY(write_sections(rows, header, &file));
  return file.commit();
}

Status write_cache(const std::string& path, const ParsedRows& rows, CacheHeader header) {
  header.rows = rows.shape.rows;
  header.nonzeros = rows.shape.nonzeros;
  header.max_key = rows.shape.max_key;
  header.skipped_rows = rows.shape.skipped_rows;
  header.has_values = rows.shape.has_values;
  const uint64_t bytes = place_sections(rows.shape, &header);
  const Status written = write_cache_file(path, rows, header, bytes);
  if (written.ok()) return {};
  return error(
      written.code(),
      "cannot write the data cache: {}: it needs {} bytes; the temporary file was removed; set data.cache to a "
      "folder with room",
      written.message(), bytes);
}

// Whoever holds the lock on the source makes its cache. Kept until `source` is closed. Only spares work: without the
// lock (some network file systems have none) two processes make the same cache, and the later one's stays.
bool lock_source(const MappedFile& source) {
  for (int poll = 0; poll < kLockPolls; ++poll) {
    if (::flock(source.descriptor(), LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (poll == 0) log_info("waiting for another process to make the data cache of {}", source.path());
    std::this_thread::sleep_for(kLockPoll);
  }
  log_warning("{} stays locked by another process: going on without its data cache", source.path());
  return false;
}

// What a process left that was killed while it wrote.
void remove_leftovers(const std::string& path) {
  const std::string prefix = fs::path(AtomicFile::temporary_prefix(path)).filename().string();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::absolute(path).parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove(entry.path(), ignored);
  }
}

Result<ParsedRows> parse_source(const MappedFile& source, const ReadOptions& options) {
  ASSIGN(ParsedRows rows, read_rows(source, options));
  ASSIGN(const FileState now, source.current_state());
  if (now == source.state()) return rows;
  return error(Code::kUnavailable, "{} changed while it was read: try again when it is complete", source.path());
}

void log_unusable(const Status& status) {
  if (status.code() == Code::kCorrupt) log_warning("{}; making it anew", status.message());
  if (status.code() == Code::kInvalid) log_info("{}; making it anew", status.message());
}

}  // namespace

std::string cache_path(const DatasetOptions& options) {
  if (options.cache_dir.empty()) return options.path + ".talweg";
  const fs::path source = fs::absolute(options.path).lexically_normal();
  const uint64_t folder = hash_bytes(0, source.parent_path().string());
  return (fs::path(options.cache_dir) / fmt::format("{}-{:016x}.talweg", source.filename().string(), folder)).string();
}

Result<Dataset> open_dataset(const DatasetOptions& options) {
  ASSIGN(const MappedFile source, MappedFile::open(options.path));
  ASSIGN(const Format format, format_of(options.path, options.read.format));
  if (!options.cache) {
    ASSIGN(const ParsedRows rows, parse_source(source, options.read));
    return to_dataset(rows);
  }
  const std::string path = cache_path(options);
  ASSIGN(const uint64_t hash, options_hash(options, format));
  const CacheHeader header = header_for(source.state(), hash);
  auto cached = map_cache(path, header, options.verify_cache);
  if (cached.ok()) return cached;

  if (!options.cache_dir.empty()) {
    std::error_code failure;
    fs::create_directories(options.cache_dir, failure);
    if (failure) return errno_error(failure.value(), options.cache_dir);
  }
  if (lock_source(source)) {
    cached = map_cache(path, header, options.verify_cache);
    if (cached.ok()) return cached;
    remove_leftovers(path);
  }
  log_unusable(cached.status());
  {
    ASSIGN(const ParsedRows rows, parse_source(source, options.read));
    TRY(write_cache(path, rows, header));
  }
  return map_cache(path, header, options.verify_cache);
}

}  // namespace talweg
