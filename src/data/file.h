// Files as this folder uses them: mapped whole for reading, and written so that a reader sees either the old file or
// all of the new one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/status.h"

namespace talweg {

// What tells one state of a file from another.
struct FileState {
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
  bool operator==(const FileState&) const = default;
};

// A regular file mapped for reading. Must not be truncated by others while it is mapped: the operating system answers
// a read past the new end with a signal.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)),
        file_(std::move(other.file_)),
        bytes_(std::exchange(other.bytes_, {})),
        state_(other.state_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  Bytes bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }
  // As it was when it was opened, and as it is now.
  FileState state() const { return state_; }
  Result<FileState> current_state() const;

 private:
  MappedFile(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Fd file_;
  Bytes bytes_;
  FileState state_;
};

// A file under a temporary name beside its own, which it takes in `commit`. One that was not committed is removed.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Fails at once if the disk has not this many bytes, where the file system can tell.
  Status reserve(uint64_t bytes);
  Status write(Bytes bytes);
  Status write_at(uint64_t offset, Bytes bytes);
  // Content and name are on disk when this is ok.
  Status commit();

  // Every temporary name of `path` starts with this.
  static std::string temporary_prefix(const std::string& path) { return path + ".tmp-"; }

 private:
  AtomicFile(std::string path, std::string temporary, Fd file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  std::string path_, temporary_;  // no temporary: nothing to remove
  Fd file_;
};

}  // namespace talweg
