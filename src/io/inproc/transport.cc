#include "io/inproc/transport.h"

#include <deque>

#include "io/ring_link.h"

namespace talweg::inproc {
namespace {

constexpr std::string_view kScheme = "inproc:";

class InprocLink final : public RingLink {
 public:
  InprocLink(std::shared_ptr<RingPair> rings, int side, std::string name, std::shared_ptr<Bell> peer_bell)
      : RingLink(std::move(rings), side, std::move(name)) {
    set_peer_bell(std::move(peer_bell));
  }
};

}  // namespace

class Hub {
 public:
  struct Listener {
    std::shared_ptr<Bell> bell;
    std::atomic<bool> has_incoming{false};
    std::mutex mutex;
    std::deque<std::unique_ptr<Link>> incoming;
  };

  std::shared_ptr<Listener> add(const std::string& address, std::shared_ptr<Bell> bell) {
    auto listener = std::make_shared<Listener>();
    listener->bell = std::move(bell);
    const std::lock_guard lock(mutex_);
    CHECK(listeners_.emplace(address, listener).second);
    return listener;
  }
  void remove(const std::string& address) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(address);
  }
  std::shared_ptr<Listener> find(const std::string& address) {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(address);
    return found == listeners_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Listener>> listeners_;
};

namespace {

class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<Hub> hub, const std::string& name, std::shared_ptr<Bell> bell)
      : hub_(std::move(hub)),
        address_(fmt::format("{}{}", kScheme, name)),
        bell_(bell),
        listener_(hub_->add(address_, bell)) {}
  ~InprocTransport() override { hub_->remove(address_); }

  const std::string& address() const override { return address_; }
  bool reaches(const std::string& address) const override { return address.starts_with(kScheme); }
  int fd() const override { return -1; }
  void on_event(uint32_t) override {}

  Result<std::unique_ptr<Link>> dial(const std::string& address) override {
    const auto listener = hub_->find(address);
    if (listener == nullptr) return error(Code::kUnavailable, "no node listens at {}", address);
    auto rings = std::make_shared<RingPair>();
    {
      const std::lock_guard lock(listener->mutex);
      listener->incoming.push_back(std::make_unique<InprocLink>(rings, 1, address_, bell_));
      listener->has_incoming = true;
    }
    listener->bell->ring();
    return std::unique_ptr<Link>(std::make_unique<InprocLink>(rings, 0, address, listener->bell));
  }

  bool has_incoming() const override { return listener_->has_incoming; }
  std::unique_ptr<Link> accept() override {
    if (!has_incoming()) return nullptr;
    const std::lock_guard lock(listener_->mutex);
    if (listener_->incoming.empty()) return nullptr;
    auto link = std::move(listener_->incoming.front());
    listener_->incoming.pop_front();
    listener_->has_incoming = !listener_->incoming.empty();
    return link;
  }

 private:
  std::shared_ptr<Hub> hub_;
  std::string address_;
  std::shared_ptr<Bell> bell_;
  std::shared_ptr<Hub::Listener> listener_;
};

}  // namespace

std::shared_ptr<Hub> make_hub() { return std::make_shared<Hub>(); }

std::unique_ptr<Transport> make_transport(std::shared_ptr<Hub> hub, const std::string& name,
                                          std::shared_ptr<Bell> bell) {
  return std::make_unique<InprocTransport>(std::move(hub), name, std::move(bell));
}

}  // namespace talweg::inproc
