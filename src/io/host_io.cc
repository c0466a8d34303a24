#include "io/host_io.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/limits.h"
#include "base/log.h"

namespace talweg {
namespace {

Time monotonic_now() { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

// Grows from start to start of a node, across reboots too.
Incarnation new_incarnation() {
  return static_cast<Incarnation>(
      std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

// A rough guess is enough to tell microseconds from milliseconds.
double estimated_seconds(const Cost& cost) { return std::max(cost.flops / 2e9, cost.bytes / 4e9); }

constexpr unsigned kTurnsBetweenPolls = 32;
constexpr unsigned kTurnsBetweenClockReads = 8;
constexpr unsigned kYields = 4;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ComputePool::ComputePool(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ComputePool::~ComputePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  available_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ComputePool::run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  available_.notify_one();
}

void ComputePool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    available_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

HostIo::HostIo(HostIoOptions options)
    : Io(options.self, new_incarnation(), Rng(options.seed, options.self)),
      options_(std::move(options)),
      identity_{self_, incarnation_, options_.job},
      bell_(Bell::create()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      now_(monotonic_now()) {
  CHECK(epoll_.valid());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_->event_fd(), &event) == 0);
}

HostIo::~HostIo() {
  drop_housekeeping();
  for (auto& session : sessions_) session->close(Status(Code::kCancelled, "the node is gone"));
  // epoll_ is closed after the links: a descriptor that a forked process still holds would stay in it.
  for (auto& session : sessions_) unwatch(session->link());
}

void HostIo::add(std::unique_ptr<Transport> transport) {
  watch(*transport);
  transports_.push_back(std::move(transport));
}

void HostIo::watch(Watched& watched) {
  if (watched.fd() < 0) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watched;
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched.fd(), &event) == 0);
}

void HostIo::unwatch(Watched& watched) {
  if (watched.fd() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched.fd(), nullptr);
}

std::string HostIo::address() const {
  std::string list;
  for (const auto& transport : transports_) list += (list.empty() ? "" : " ") + transport->address();
  return list;
}

void HostIo::learn(Peer peer, const std::string& address) { peers_[peer].address = address; }

void HostIo::from_outside(std::function<void()> action) {
  const auto bell = bell_;  // the action may be the node's last, and the node gone before we ring
  {
    const std::lock_guard lock(outside_mutex_);
    outside_actions_.push_back(std::move(action));
    has_outside_actions_ = true;
  }
  bell->ring();
}

void HostIo::run(Task<> main) {
  TaskSet root(*this);
  root.spawn(std::move(main));
  now_ = idle_since_ = monotonic_now();
  while (!root.empty()) turn();
}

void HostIo::turn() {
  // A spinning loop need not look at the clock each time round.
  if (idle_turns_ % kTurnsBetweenClockReads == 0) now_ = monotonic_now();
  bool progress = pump_sessions();
  progress |= run_ready();
  progress |= accept_links();
  progress |= run_outside_actions();
  if (now_ >= earliest_deadline()) expire();
  if (progress || !ready_.empty()) {
    idle_since_ = now_;
    idle_turns_ = 0;
    if (++turns_since_poll_ >= kTurnsBetweenPolls) poll(0);
    return;
  }
  ++idle_turns_;
  if (now_ - idle_since_ < options_.spin) {
    if (needs_poll_ || idle_turns_ % kTurnsBetweenPolls == 0)
      poll(0);
    else
      relax();
  } else if (idle_turns_ <= kYields) {
    ::sched_yield();
  } else {
    wait_for_events();
  }
}

bool HostIo::run_ready() {
  // Only those ready now: what they make ready runs after more bytes have moved.
  size_t count = ready_.size();
  const bool any = count > 0;
  for (; count > 0; --count) {
    const auto next = ready_.front();
    ready_.pop_front();
    next.resume();
  }
  return any;
}

bool HostIo::accept_links() {
  bool any = false;
  for (auto& transport : transports_) {
    while (transport->has_incoming() && takes_links()) {
      auto link = transport->accept();
      if (link == nullptr) break;
      open_session(std::move(link), std::nullopt);
      any = true;
    }
  }
  return any;
}

bool HostIo::takes_links() const {
  const auto strangers = std::count_if(sessions_.begin(), sessions_.end(), [](const auto& session) {
    return !session->introduced() && !session->dialled();
  });
  return static_cast<size_t>(strangers) < options_.unintroduced_links;
}

bool HostIo::run_outside_actions() {
  if (!has_outside_actions_.load(std::memory_order_acquire)) return false;
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(outside_mutex_);
    actions.swap(outside_actions_);
    has_outside_actions_ = false;
  }
  for (auto& action : actions) action();
  return true;
}

bool HostIo::anything_to_do() const {
  if (has_outside_actions_.load(std::memory_order_acquire)) return true;
  const bool incoming =
      std::any_of(transports_.begin(), transports_.end(), [](const auto& t) { return t->has_incoming(); });
  if (incoming && takes_links()) return true;
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->has_work(); });
}

void HostIo::wait_for_events() {
  bell_->fall_asleep();
  if (!anything_to_do()) {
    constexpr Duration kLongest = milliseconds(500);
    const Duration left =
        earliest_deadline() == Time::max() ? kLongest : std::min<Duration>(earliest_deadline() - now_, kLongest);
    poll(static_cast<int>(std::max<Duration::rep>(0, (left.count() + 999'999) / 1'000'000)));
    now_ = monotonic_now();
  }
  bell_->wake_up();
}

void HostIo::poll(int timeout_ms) {
  turns_since_poll_ = 0;
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr == nullptr)
      bell_->drain();
    else
      static_cast<Watched*>(event.data.ptr)->on_event(event.events);
  }
  if (count > 0) idle_turns_ = 0;
}

void HostIo::start_send(SendOp& op) {
  const Peer to = op.message.to;
  Known& known = peers_[to];
  if (known.session == nullptr) {
    auto dialled = dial(to, known);
    if (!dialled.ok()) return op.finish(dialled.status());
    known.session = *dialled;
  }
  Session& session = *known.session;
  session.enqueue(op);
  bool progress = false;
  if (session.link().writable()) pump(session, &progress);
}

void HostIo::withdraw(SendOp& op) {
  for (auto& session : sessions_) session->withdraw(op);
  static_cast<ListHook<SendQueueTag>&>(op).unlink();
}

void HostIo::start_compute(ComputeOp& op) {
  if (options_.pool == nullptr || estimated_seconds(op.cost) < limits::kInlineComputeSeconds) {
    op.work();
    now_ = monotonic_now();
    return op.finish();
  }
  options_.pool->run([this, &op] {
    op.work();
    from_outside([&op] { op.finish(); });
  });
}

Result<Session*> HostIo::dial(Peer peer, Known& known) {
  if (peer == self_) return error(Code::kInvalid, "node {} sends to itself", peer);
  if (known.address.empty()) return error(Code::kNotFound, "no address of node {} is known", peer);
  for (size_t begin = 0; begin < known.address.size();) {
    const size_t end = std::min(known.address.find(' ', begin), known.address.size());
    const std::string address = known.address.substr(begin, end - begin);
    begin = end + 1;
    for (auto& transport : transports_) {
      if (!transport->reaches(address)) continue;
      ASSIGN(auto link, transport->dial(address));
      return &open_session(std::move(link), peer);
    }
  }
  return error(Code::kNotFound, "none of the addresses of node {} can be reached from here: {}", peer, known.address);
}

Session& HostIo::open_session(std::unique_ptr<Link> link, std::optional<Peer> expected) {
  watch(*link);
  needs_poll_ |= link->needs_poll();
  const uint64_t connection = expected ? ++connections_dialled_ : 0;
  sessions_.push_back(
      std::make_unique<Session>(std::move(link), identity_, expected, connection, mailbox_, counters_, now_));
  return *sessions_.back();
}

bool HostIo::pump_sessions() {
  bool progress = false;
  const bool retry = std::exchange(room_made_, false);
  // By index: a coroutine is never resumed in here, but a refusal may open a session.
  for (size_t i = 0; i < sessions_.size(); ++i) {
    Session& session = *sessions_[i];
    if (retry && session.stalled()) session.retry_stalled();
    if (!session.usable() && !session.parked() && now_ - session.opened() > options_.hello_timeout) {
      lose(session, error(Code::kUnavailable, "{} did not introduce itself", session.link().name()));
    } else if (session.has_work()) {
      pump(session, &progress);
    }
  }
  bury_dead_sessions();
  return progress;
}

void HostIo::pump(Session& session, bool* progress) {
  if (is_dead(session)) return;
  const bool was_introduced = session.introduced();
  auto moved = session.pump();
  if (!moved.ok()) return lose(session, moved.status());
  *progress |= *moved;
  if (session.introduced() && !was_introduced) {
    Status accepted = introduce(session);
    if (!accepted.ok()) lose(session, std::move(accepted));
  }
}

Status HostIo::introduce(Session& session) {
  if (session.peer() == self_) return error(Code::kInvalid, "a connection in the name of this node, {}", self_);
  Known& known = peers_[session.peer()];
  if (session.peer_incarnation() < known.incarnation) {
    return error(Code::kInvalid, "a connection from an earlier life of node {}", session.peer());
  }
  const bool restarted = known.incarnation != 0 && session.peer_incarnation() > known.incarnation;
  if (restarted) {
    known.connection = 0;
    mailbox_.peer_restarted(session.peer());
  }
  known.incarnation = session.peer_incarnation();
  if (session.dialled()) return {};
  // A node dials anew when it has lost a connection that we still hold, and with a new number. An old number is a
  // recorded stream, or a connection that its own side has given up already.
  if (session.connection() <= known.connection) {
    return error(Code::kInvalid, "connection {} of node {} after its connection {}", session.connection(),
                 session.peer(), known.connection);
  }
  known.connection = session.connection();
  Session* other = known.session;
  if (other != nullptr && other->dialled() && self_ < session.peer() && !restarted) {
    return {};  // both dialled at once, and the lower id's connection is the one: this stays parked
  }
  known.session = &session;
  session.adopt();
  if (other == nullptr) return {};
  if (!other->introduced()) session.take_queue(*other);
  lose(*other, error(Code::kUnavailable, "node {} connected anew", session.peer()));
  return {};
}

void HostIo::lose(Session& session, Status why) {
  if (is_dead(session)) return;
  dead_.push_back(&session);
  if (why.code() == Code::kCorrupt || why.code() == Code::kInvalid) {
    ++counters_.bad_frames;
    log_warning("node {}: connection {} closed: {}", self_, session.link().name(), why.message());
  }
  const auto found = peers_.find(session.peer());
  const bool current = found != peers_.end() && found->second.session == &session;
  Session* successor = current ? parked_beside(session) : nullptr;
  if (successor != nullptr) {
    successor->adopt();
    if (!session.introduced()) successor->take_queue(session);
  }
  if (current) found->second.session = successor;
  const Status lost = error(Code::kUnavailable, "connection to node {} is lost ({})", session.peer(), why.message());
  session.close(lost);
  // With another connection in its place, only what was under way on this one is lost: before its introduction,
  // nothing.
  if (session.usable() || (current && successor == nullptr)) mailbox_.peer_lost(session.peer(), lost);
}

Session* HostIo::parked_beside(const Session& session) const {
  for (auto& other : sessions_) {
    if (other->parked() && other->peer() == session.peer() && !is_dead(*other)) return other.get();
  }
  return nullptr;
}

bool HostIo::is_dead(const Session& session) const {
  return std::find(dead_.begin(), dead_.end(), &session) != dead_.end();
}

void HostIo::bury_dead_sessions() {
  if (dead_.empty()) return;
  for (Session* dead : dead_) {
    unwatch(dead->link());
    std::erase_if(sessions_, [dead](const auto& session) { return session.get() == dead; });
  }
  dead_.clear();
  // An accept that failed for want of descriptors may succeed now, and no event would tell.
  for (auto& transport : transports_) transport->on_event(EPOLLIN);
  needs_poll_ = std::any_of(sessions_.begin(), sessions_.end(), [](const auto& s) { return s->link().needs_poll(); });
}

}  // namespace talweg
