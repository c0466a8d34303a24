// Reads members of a zip archive: stored or deflated, of one disk, without encryption. Archives or members above 4 GiB
// (zip64) are refused. Sizes and places are taken from the central directory and checked against the file before they
// are used, checksums before a content is believed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace talweg {

class ZipArchive {
 public:
  struct Content {
    Bytes bytes;
    std::shared_ptr<const void> owner;  // of the bytes, where they are not in the archive as they are
  };

  // `file` must outlive the archive and what is read from it; `name` is for messages.
  static Result<ZipArchive> open(Bytes file, std::string name);

  std::vector<std::string> names() const;
  bool has(std::string_view member) const { return find(member) != nullptr; }
  Result<Content> read(std::string_view member) const;

 private:
  struct Member {
    std::string name;
    uint32_t flags = 0, method = 0, crc = 0;
    uint64_t stored_bytes = 0, bytes = 0, header_at = 0;
  };

  ZipArchive(Bytes file, std::string name) : file_(file), name_(std::move(name)) {}
  Status read_directory();
  Status read_entry(uint64_t* at, uint64_t end);
  const Member* find(std::string_view member) const;
  Result<Bytes> stored(const Member& member) const;
  Status damaged(std::string_view what) const;

  Bytes file_;
  std::string name_;
  std::vector<Member> members_;
};

}  // namespace talweg
