#include "io/tcp/transport.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/limits.h"

namespace talweg::tcp {
namespace {

constexpr std::string_view kScheme = "tcp:";

struct HostPort {
  std::string host, port;
};

// "127.0.0.1:80", "[::1]:80", "name:80".
Result<HostPort> split(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return error(Code::kInvalid, "'{}' is not an address: give host:port, as 127.0.0.1:0", text);
  }
  const std::string_view port = text.substr(colon + 1);
  unsigned number = 0;
  const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (failure != std::errc() || end != port.data() + port.size() || number > 65535) {
    return error(Code::kInvalid, "'{}' is not an address: the port must be a number from 0 to 65535", text);
  }
  std::string host(text.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HostPort{host, std::string(port)};
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<AddressList> resolve(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure =
      ::getaddrinfo(where.host.empty() ? nullptr : where.host.c_str(), where.port.c_str(), &hints, &list);
  const Code code = failure == EAI_AGAIN ? Code::kUnavailable : Code::kInvalid;
  if (failure != 0) return error(code, "cannot resolve {}:{}: {}", where.host, where.port, ::gai_strerror(failure));
  return AddressList(list, &::freeaddrinfo);
}

class TcpLink final : public Link {
 public:
  TcpLink(Fd socket, std::string name, bool connected)
      : socket_(std::move(socket)), name_(std::move(name)), connected_(connected) {
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  ~TcpLink() override {
    // Closing with unread bytes makes the kernel throw away what the peer has not read yet.
    ::shutdown(socket_.get(), SHUT_WR);
    // Bounded: a peer that writes as fast as we read must not keep us here.
    std::array<std::byte, 16384> unread;
    for (size_t taken = 0; taken < limits::kFairShareBytes; taken += unread.size()) {
      if (::recv(socket_.get(), unread.data(), unread.size(), MSG_DONTWAIT) <= 0) break;
    }
  }

  int fd() const override { return socket_.get(); }
  void on_event(uint32_t events) override {
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) readable_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
  }
  bool readable() const override { return readable_ && connected_; }
  bool writable() const override { return writable_; }
  bool ended() const override { return ended_; }
  bool needs_poll() const override { return true; }
  size_t read_ahead_bytes() const override { return limits::kReadAheadBytes; }
  const std::string& name() const override { return name_; }

  Result<size_t> write(std::span<const Bytes> parts) override {
    if (!writable_) return size_t{0};
    if (!connected_) TRY(finish_connecting());
    std::array<iovec, 8> vector{};
    CHECK(parts.size() <= vector.size());
    for (size_t i = 0; i < parts.size(); ++i) vector[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = parts.size();
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) writable_ = false;
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return lost(errno);
  }

  Result<size_t> read(MutableBytes first, MutableBytes second) override {
    if (!readable()) return size_t{0};
    std::array<iovec, 2> vector{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
    const ssize_t n = ::readv(socket_.get(), vector.data(), second.empty() ? 1 : 2);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return error(Code::kUnavailable, "{} was closed by the other side", name_);
    if (errno == EAGAIN) readable_ = false;
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return lost(errno);
  }

 private:
  Status finish_connecting() {
    int failure = 0;
    socklen_t length = sizeof failure;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) return error(Code::kUnavailable, "cannot connect to {}: {}", name_, std::strerror(failure));
    connected_ = true;
    return {};
  }
  Status lost(int failure) const { return error(Code::kUnavailable, "{} is lost: {}", name_, std::strerror(failure)); }

  Fd socket_;
  std::string name_;
  bool connected_;
  bool ended_ = false;
  bool readable_ = true;   // try once; the socket then tells
  bool writable_ = false;  // set by the first event, which a fresh socket gives at once
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(Fd listener, std::string address) : listener_(std::move(listener)), address_(std::move(address)) {}

  const std::string& address() const override { return address_; }
  bool reaches(const std::string& address) const override { return address.starts_with(kScheme); }
  int fd() const override { return listener_.get(); }
  void on_event(uint32_t) override { pending_ = true; }

  Result<std::unique_ptr<Link>> dial(const std::string& address) override {
    ASSIGN(const HostPort where, split(std::string_view(address).substr(kScheme.size())));
    ASSIGN(const AddressList list, resolve(where, 0));
    Fd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return errno_error(errno, "cannot make a socket");
    if (::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS) {
      return error(Code::kUnavailable, "cannot connect to {}: {}", address, std::strerror(errno));
    }
    return std::unique_ptr<Link>(std::make_unique<TcpLink>(std::move(socket), address, false));
  }

  bool has_incoming() const override { return pending_; }
  std::unique_ptr<Link> accept() override {
    if (!pending_) return nullptr;
    while (true) {
      Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.valid()) return std::make_unique<TcpLink>(std::move(socket), "tcp: (incoming)", true);
      if (errno == EINTR || errno == ECONNABORTED) continue;
      pending_ = false;
      return nullptr;
    }
  }

 private:
  Fd listener_;
  std::string address_;
  bool pending_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_transport(const std::string& listen, const std::string& published) {
  ASSIGN(const HostPort where, split(listen));
  ASSIGN(const AddressList list, resolve(where, AI_PASSIVE));
  Fd listener(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return errno_error(errno, "cannot make a socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(listener.get(), SOMAXCONN) != 0) {
    return errno_error(errno, fmt::format("cannot listen at {} (port 0 lets the system choose a free one)", listen));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return errno_error(errno, "cannot read the socket's address");
  }
  const std::string name = published.empty() ? host.data() : published;
  const bool bracketed = name.find(':') != std::string::npos;
  std::string address =
      fmt::format("{}{}{}{}:{}", kScheme, bracketed ? "[" : "", name, bracketed ? "]" : "", port.data());
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(std::move(listener), std::move(address)));
}

}  // namespace talweg::tcp
