#include "data/idx.h"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace talweg {
namespace {

constexpr unsigned kUnsignedByte = 0x08;
constexpr float kLargestPixel = 255;

unsigned byte_at(Bytes bytes, size_t at) { return static_cast<unsigned>(bytes[at]); }

uint32_t big_endian_at(Bytes bytes, size_t at) {
  return byte_at(bytes, at) << 24 | byte_at(bytes, at + 1) << 16 | byte_at(bytes, at + 2) << 8 | byte_at(bytes, at + 3);
}

bool replace(std::string* text, std::string_view from, std::string_view to) {
  const size_t at = text->rfind(from);
  if (at == text->npos) return false;
  text->replace(at, from.size(), to);
  return true;
}

}  // namespace

Result<DenseArray> parse_idx(Bytes file, std::string name) {
  if (file.size() < 4 || byte_at(file, 0) != 0 || byte_at(file, 1) != 0) {
    return error(Code::kCorrupt, "{} is not an IDX file: it does not start as one", name);
  }
  if (byte_at(file, 2) != kUnsignedByte) {
    return error(Code::kInvalid, "{} has elements of type {:#04x}: only unsigned bytes (0x08) are read", name,
                 byte_at(file, 2));
  }
  const size_t dimensions = byte_at(file, 3);
  if (file.size() < 4 + 4 * dimensions) return error(Code::kCorrupt, "{} is cut short within its header", name);
  DenseArray array;
  array.type = ElementType::kUint8;
  array.name = std::move(name);
  for (size_t i = 0; i < dimensions; ++i) array.shape.push_back(big_endian_at(file, 4 + 4 * i));
  array.data = file.subspan(4 + 4 * dimensions);
  TRY(check_size(array));
  return array;
}

Result<DenseTable> parse_idx(Bytes images, const std::string& images_name, Bytes labels,
                             const std::string& labels_name) {
  ASSIGN(DenseArray pixels, parse_idx(images, images_name));
  pixels.divisor = kLargestPixel;
  ASSIGN(DenseArray numbers, parse_idx(labels, labels_name));
  return DenseTable::with_labels(std::move(pixels), std::move(numbers));
}

Result<std::string> idx_labels_path(const std::string& images) {
  const std::filesystem::path path(images);
  std::string name = path.filename().string();
  const bool renamed = replace(&name, "images", "labels");
  replace(&name, "idx3", "idx1");
  if (renamed) return (path.parent_path() / name).string();
  return error(Code::kInvalid, "{}: its name does not tell the file of the labels: set it", images);
}

}  // namespace talweg
