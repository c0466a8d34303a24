#include "io/shm/transport.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>

#include "base/config.h"
#include "io/ring_link.h"
#include "io/shared_memory.h"

namespace talweg::shm {
namespace {

constexpr std::string_view kScheme = "shm:";

// Names this boot of this host: shared memory reaches no further.
std::string host_id() {
  const auto text = read_text_file("/proc/sys/kernel/random/boot_id");
  return text.ok() ? text->substr(0, 8) : "host";
}

sockaddr_un abstract_address(std::string_view name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t n = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), n);
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return address;
}

template <size_t n>
bool send_fds(int socket, const std::array<int, n>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  char byte = 'T';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

enum class FdsAnswer { kNone, kGot, kEnd, kJunk };

// Takes `fds.size()` descriptors; whatever comes instead is junk.
template <size_t n>
FdsAnswer receive_fds(int socket, std::array<Fd, n>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * n)];
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && errno == EAGAIN) return FdsAnswer::kNone;
  if (got <= 0) return FdsAnswer::kEnd;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return FdsAnswer::kJunk;
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int number;
    std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
    Fd fd(number);  // one more than asked for fits into the alignment of `control`: it is closed here
    if (i < n) fds[i] = std::move(fd);
  }
  return count == n ? FdsAnswer::kGot : FdsAnswer::kJunk;
}

std::shared_ptr<RingPair> map_rings(int fd) {
  void* memory = map_shared_memory(fd, sizeof(RingPair));
  if (memory == nullptr) return nullptr;
  return {static_cast<RingPair*>(memory),
          [](RingPair* rings) { ::munmap(static_cast<void*>(rings), sizeof(RingPair)); }};
}

bool same_user(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 && credentials.uid == ::geteuid();
}

// The dialling side made the rings; it knows the peer's bell once the peer has answered.
class DialledLink final : public RingLink {
 public:
  DialledLink(std::shared_ptr<RingPair> rings, Fd socket, std::string name)
      : RingLink(std::move(rings), 0, std::move(name)), socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }
  void on_event(uint32_t) override {
    // One event may tell of the answer and of the end behind it.
    while (true) {
      std::array<Fd, 2> fds;
      const FdsAnswer answer = receive_fds(socket_.get(), fds);
      if (answer == FdsAnswer::kNone) return;
      auto bell =
          answer == FdsAnswer::kGot && !introduced_ ? Bell::open(std::move(fds[0]), std::move(fds[1])) : nullptr;
      if (bell == nullptr) return peer_ended();
      introduced_ = true;
      set_peer_bell(std::move(bell));
    }
  }

 private:
  Fd socket_;
  bool introduced_ = false;
};

// The accepting side gets the rings from the dialler; until they have come there is nothing to read or write.
class AcceptedLink final : public Link {
 public:
  AcceptedLink(Fd socket, std::shared_ptr<Bell> own_bell)
      : socket_(std::move(socket)), own_bell_(std::move(own_bell)) {}

  int fd() const override { return socket_.get(); }
  void on_event(uint32_t events) override {
    if (rings_ != nullptr) {
      // After its introduction a peer has nothing more to say on the socket: what can be read is its end.
      if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) rings_->end();
      return;
    }
    std::array<Fd, 3> fds;
    const FdsAnswer answer = receive_fds(socket_.get(), fds);
    if (answer == FdsAnswer::kNone) return;
    if (answer == FdsAnswer::kEnd) return refuse(Code::kUnavailable, "was closed by the other side");
    auto memory = answer == FdsAnswer::kGot ? map_rings(fds[0].get()) : nullptr;
    auto bell = memory != nullptr ? Bell::open(std::move(fds[1]), std::move(fds[2])) : nullptr;
    if (bell == nullptr) return refuse(Code::kCorrupt, "the other side is no Talweg node");
    if (!send_fds<2>(socket_.get(), {own_bell_->memory_fd(), own_bell_->event_fd()})) {
      return refuse(Code::kUnavailable, "was given up by the other side");
    }
    rings_ = std::make_unique<Rings>(std::move(memory), name_, std::move(bell));
    // The event that told of the rings may have told of the end behind them.
    if (receive_fds(socket_.get(), fds) != FdsAnswer::kNone) rings_->end();
  }
  bool readable() const override { return rings_ != nullptr ? rings_->readable() : !refused_.ok(); }
  bool writable() const override { return rings_ != nullptr ? rings_->writable() : !refused_.ok(); }
  bool ended() const override { return rings_ != nullptr ? rings_->ended() : !refused_.ok(); }
  Result<size_t> write(std::span<const Bytes> parts) override {
    if (rings_ != nullptr) return rings_->write(parts);
    return nothing_yet();
  }
  Result<size_t> read(MutableBytes first, MutableBytes second) override {
    if (rings_ != nullptr) return rings_->read(first, second);
    return nothing_yet();
  }
  const std::string& name() const override { return name_; }

 private:
  class Rings final : public RingLink {
   public:
    Rings(std::shared_ptr<RingPair> memory, const std::string& name, std::shared_ptr<Bell> peer_bell)
        : RingLink(std::move(memory), 1, name) {
      set_peer_bell(std::move(peer_bell));
    }
    void end() { peer_ended(); }
  };
  void refuse(Code code, std::string_view why) { refused_ = error(code, "{} {}", name_, why); }
  Result<size_t> nothing_yet() const {
    TRY(refused_);
    return size_t{0};
  }

  Fd socket_;
  std::shared_ptr<Bell> own_bell_;
  std::string name_ = "shm: (incoming)";
  std::unique_ptr<Rings> rings_;
  Status refused_;
};

class ShmTransport final : public Transport {
 public:
  ShmTransport(Fd listener, std::string name, std::shared_ptr<Bell> bell)
      : listener_(std::move(listener)),
        host_(host_id()),
        address_(fmt::format("{}{}:{}", kScheme, host_, name)),
        bell_(std::move(bell)) {}

  const std::string& address() const override { return address_; }
  bool reaches(const std::string& address) const override {
    return address.starts_with(fmt::format("{}{}:", kScheme, host_));
  }
  int fd() const override { return listener_.get(); }
  void on_event(uint32_t) override { pending_ = true; }

  Result<std::unique_ptr<Link>> dial(const std::string& address) override {
    const std::string name = address.substr(kScheme.size() + host_.size() + 1);
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    socklen_t length = 0;
    const sockaddr_un to = abstract_address(name, &length);
    if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0) {
      return error(Code::kUnavailable, "cannot connect to {}: {}", address, std::strerror(errno));
    }
    // The name of a node that is gone can be taken by anyone: the job's secret is for our own user only.
    if (!same_user(socket.get())) return error(Code::kUnavailable, "{} belongs to another user now", address);
    Fd memory(create_shared_memory("talweg-rings", sizeof(RingPair)));
    if (!memory.valid()) return errno_error(errno, "cannot make shared memory");
    auto rings = map_rings(memory.get());
    if (rings == nullptr) return errno_error(errno, "cannot map shared memory");
    if (!send_fds<3>(socket.get(), {memory.get(), bell_->memory_fd(), bell_->event_fd()})) {
      return error(Code::kUnavailable, "cannot hand memory to {}: {}", address, std::strerror(errno));
    }
    return std::unique_ptr<Link>(std::make_unique<DialledLink>(std::move(rings), std::move(socket), address));
  }

  bool has_incoming() const override { return pending_; }
  std::unique_ptr<Link> accept() override {
    if (!pending_) return nullptr;
    while (true) {
      Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.valid() && same_user(socket.get())) return std::make_unique<AcceptedLink>(std::move(socket), bell_);
      if (socket.valid() || errno == EINTR || errno == ECONNABORTED) continue;
      pending_ = false;
      return nullptr;
    }
  }

 private:
  Fd listener_;
  std::string host_;
  std::string address_;
  std::shared_ptr<Bell> bell_;
  bool pending_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_transport(std::shared_ptr<Bell> bell) {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return errno_error(errno, "cannot make a local socket");
  // The kernel chooses a free name when none is given (autobind).
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return errno_error(errno, "cannot listen on a local socket");
  }
  socklen_t length = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return errno_error(errno, "cannot read the local socket's name");
  }
  std::string name(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  return std::unique_ptr<Transport>(
      std::make_unique<ShmTransport>(std::move(listener), std::move(name), std::move(bell)));
}

}  // namespace talweg::shm
