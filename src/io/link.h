// What a driver provides: links (ordered byte streams to one peer) and a transport that listens and dials. Nothing here
// blocks. A driver folder holds transport.h and transport.cc and nothing else is seen of it.
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/status.h"
#include "io/bell.h"

namespace talweg {

// Something epoll tells about.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual int fd() const = 0;  // -1: nothing to watch
  virtual void on_event(uint32_t events) = 0;
};

class Link : public Watched {
 public:
  // Cheap hints, asked on every turn of the loop: is a read or write likely to move something?
  virtual bool readable() const = 0;
  virtual bool writable() const = 0;
  // The other side has closed; what it wrote before may still be unread.
  virtual bool ended() const = 0;
  // Move what can be moved now and say how much; a failure means the connection is over (and all that was readable
  // has been read). A read fills `first`, and `second` with what more there is only if that costs nothing.
  virtual Result<size_t> write(std::span<const Bytes> parts) = 0;
  virtual Result<size_t> read(MutableBytes first, MutableBytes second) = 0;
  // How much is worth reading ahead of what was asked for: system calls are dear, rings are not.
  virtual size_t read_ahead_bytes() const { return 0; }
  // Whether readiness is only learned by asking epoll.
  virtual bool needs_poll() const { return false; }
  virtual const std::string& name() const = 0;
};

class Transport : public Watched {
 public:
  // Where others reach this node, as "tcp:127.0.0.1:4711". Set by the constructor's listening.
  virtual const std::string& address() const = 0;
  // Whether `address` is one this transport can dial from here.
  virtual bool reaches(const std::string& address) const = 0;
  virtual Result<std::unique_ptr<Link>> dial(const std::string& address) = 0;
  // The next connection that came in, or null. `has_incoming` is the cheap hint that there may be one.
  virtual bool has_incoming() const = 0;
  virtual std::unique_ptr<Link> accept() = 0;
};

}  // namespace talweg
