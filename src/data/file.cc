#include "data/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace talweg {
namespace {

Result<FileState> state_of(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno_error(errno, path);
  if (S_ISDIR(status.st_mode)) return error(Code::kInvalid, "{} is a directory, not a file", path);
  if (!S_ISREG(status.st_mode)) return error(Code::kInvalid, "{} is not a regular file", path);
  const int64_t mtime_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return FileState{static_cast<uint64_t>(status.st_size), mtime_ns};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno_error(errno, path);
  MappedFile file(path, Fd(fd));
  ASSIGN(file.state_, state_of(fd, path));
  if (file.state_.bytes == 0) return file;
  void* memory = ::mmap(nullptr, file.state_.bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return errno_error(errno, path);
  file.bytes_ = Bytes(static_cast<const std::byte*>(memory), file.state_.bytes);
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<FileState> MappedFile::current_state() const { return state_of(file_.get(), path_); }

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  static std::atomic<uint64_t> serial{0};
  for (;;) {
    std::string temporary = fmt::format("{}{}-{}", temporary_prefix(path), ::getpid(), serial++);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(path, std::move(temporary), Fd(fd));
    if (errno != EEXIST) return errno_error(errno, temporary);
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::reserve(uint64_t bytes) {
  if (bytes == 0 || ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return {};
  return errno_error(errno, path_);
}

Status AtomicFile::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(errno, path_);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::write_at(uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(errno, path_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) return errno_error(errno, path_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error(errno, path_);
  temporary_.clear();
  const std::string folder = std::filesystem::absolute(path_).parent_path().string();
  const Fd handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid() || ::fsync(handle.get()) != 0) return errno_error(errno, folder);
  return {};
}

}  // namespace talweg
