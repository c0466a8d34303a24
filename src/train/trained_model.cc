#include "train/trained_model.h"

#include <algorithm>

#include "base/crc32c.h"
#include "data/file.h"
#include "train/train.pb.h"

namespace talweg {
namespace {

constexpr uint64_t kMagic = 0x4c444f4d474c5754;  // "TWLGMODL"
constexpr uint32_t kVersion = 1;

struct Prefix {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t header_bytes = 0;
  uint32_t header_crc = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(Prefix) == 24);

// Sections start where a double may: they are read in place.
size_t padding_after(size_t bytes) { return (8 - bytes % 8) % 8; }
Bytes padding(size_t after) {
  static constexpr std::byte kZeros[8] = {};
  return Bytes(kZeros, padding_after(after));
}

// A byte that no checksum covers must be what was written too.
bool take_padding(size_t after, ByteCursor& cursor) {
  const auto zeros = cursor.take<std::byte>(padding_after(after));
  return std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; });
}

Bytes keys_of(const TrainedTable& table) { return bytes_of(std::span<const uint64_t>(table.keys)); }

Result<TrainedTable> read_table(const proto::ModelHeader::Table& head, ByteCursor& cursor, const std::string& path) {
  TrainedTable table;
  table.name = head.name();
  table.sparse = head.sparse();
  table.width = head.width();
  table.type = head.type() == name_of(ValueType::kFloat64) ? ValueType::kFloat64 : ValueType::kFloat32;
  const uint64_t row_bytes = uint64_t{table.sparse ? head.width() : 1} * size_of(table.type);
  if (row_bytes == 0 || head.rows() > cursor.left() / row_bytes) return error(Code::kCorrupt, "{}: too short", path);
  const auto keys = cursor.take<uint64_t>(table.sparse ? head.rows() : 0);
  const uint64_t values_bytes = head.rows() * row_bytes;
  const auto values = cursor.take<std::byte>(values_bytes);
  const bool padded = take_padding(values_bytes, cursor);
  if (!cursor.ok()) return error(Code::kCorrupt, "{}: too short", path);
  if (!padded || crc32c(bytes_of(keys)) != head.keys_crc() || crc32c(values) != head.values_crc()) {
    return error(Code::kCorrupt, "{}: the checksum of table '{}' is wrong", path, table.name);
  }
  table.keys.assign(keys.begin(), keys.end());
  table.values.assign(values.begin(), values.end());
  return table;
}

}  // namespace

uint32_t TrainedModel::checksum() const {
  uint32_t crc = 0;
  for (const TrainedTable& table : tables) crc = crc32c(table.values, crc32c(keys_of(table), crc));
  return crc;
}

Status save_model(const TrainedModel& model, const std::string& job_text, const std::string& path) {
  proto::ModelHeader header;
  header.set_job(job_text);
  for (const TrainedTable& table : model.tables) {
    auto* head = header.add_tables();
    head->set_name(table.name);
    head->set_sparse(table.sparse);
    head->set_width(table.width);
    head->set_type(std::string(name_of(table.type)));
    head->set_rows(table.rows());
    head->set_keys_crc(crc32c(keys_of(table)));
    head->set_values_crc(crc32c(table.values));
  }
  const std::string text = header.SerializeAsString();
  Prefix prefix;
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_crc = crc32c(bytes_of(text));
  ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(std::as_bytes(std::span(&prefix, 1))));
  TRY(file.write(bytes_of(text)));
  TRY(file.write(padding(text.size())));
  for (const TrainedTable& table : model.tables) {
    TRY(file.write(keys_of(table)));
    TRY(file.write(table.values));
    TRY(file.write(padding(table.values.size())));
  }
  return file.commit();
}

Result<TrainedModel> load_model(const std::string& path) {
  ASSIGN(const MappedFile file, MappedFile::open(path));
  ByteCursor cursor(file.bytes());
  const auto prefix = cursor.take<Prefix>(1);
  if (!cursor.ok() || prefix[0].magic != kMagic) return error(Code::kCorrupt, "{} is not a Talweg model", path);
  if (prefix[0].version != kVersion) {
    return error(Code::kInvalid, "{} has model format {}, this release reads {}", path, prefix[0].version, kVersion);
  }
  const auto text = cursor.take<char>(prefix[0].header_bytes);
  const bool padded = take_padding(text.size(), cursor);
  proto::ModelHeader header;
  if (!cursor.ok() || !padded || prefix[0].reserved != 0 || crc32c(bytes_of(text)) != prefix[0].header_crc ||
      !header.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    return error(Code::kCorrupt, "{}: its head is damaged", path);
  }
  TrainedModel model;
  for (const auto& head : header.tables()) {
    ASSIGN(TrainedTable table, read_table(head, cursor, path));
    model.tables.push_back(std::move(table));
  }
  if (cursor.left() != 0) return error(Code::kCorrupt, "{}: {} bytes too many", path, cursor.left());
  return model;
}

}  // namespace talweg
