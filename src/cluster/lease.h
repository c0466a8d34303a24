// Leases: how jobs share a standing server group. The group's coordinator keeps a LeaseBook. A job takes a lease, which
// gives it node ids that no other job has or had, an id for its tables and room for them; renews it for as long as it
// runs; and gives it back.
//
//   Lease lease = co_await take_lease(io, wish, nonce, timeout);              // as a visitor
//   LeaseKeeper keeper(io, lease.job, lease.nonce, lease.lost_after);         // then, as node lease.first
//   Status why = co_await keeper.keep();                                      // returns when the group ends
//   co_await keeper.release();
//
// Promises: an id is leased once in a group's life. What a job holds is given up when it says so, or when it was not
// heard of for `lost_after` (before its first renewal: for `join_timeout`). A job hears at once why its group ends.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.pb.h"
#include "cluster/config.h"
#include "cluster/layout.h"
#include "cluster/silence.h"
#include "io/io.h"

namespace talweg {

// Leases that a group has given out at a time; as many as a shard serves jobs.
constexpr size_t kMaxLeases = 256;
constexpr uint32_t kMaxLeasedNodes = 1 << 16;
constexpr size_t kMaxLeaseNameBytes = 256;
// A job that has no lease yet speaks under a random id from here on; none is leased from there.
constexpr Peer kFirstVisitorId = Peer{1} << 31;

struct LeaseWish {
  std::string name;
  uint32_t nodes = 1;
  uint64_t max_bytes = 0;  // on each shard; 0: as many as one job may have
};

struct Lease {
  uint64_t job = 0;
  uint64_t nonce = 0;
  Peer first = 0;  // of the wished number of ids
  uint64_t max_bytes = 0;
  std::vector<std::string> addresses;  // of the group's nodes from 1 on
  std::string settings;
  Duration lost_after{};
};

// --- The job's side.

// `nonce` is a number that nobody else can know; below 2^63.
Task<Result<Lease>> take_lease(Io& io, LeaseWish wish, uint64_t nonce, Duration timeout);

class LeaseKeeper {
 public:
  LeaseKeeper(Io& io, uint64_t job, uint64_t nonce, Duration lost_after) : io_(io), lost_after_(lost_after) {
    use_.set_job(job);
    use_.set_nonce(nonce);
  }

  // Renews until `release` (ok) or until the group ends or is lost (why).
  Task<Status> keep();
  // The group has forgotten the job when this returns ok, or has ended itself.
  Task<Status> release();

 private:
  Io& io_;
  const Duration lost_after_;
  proto::LeaseUse use_;
  bool released_ = false;
  bool ended_ = false;  // the lease, by the group
};

// --- The group's side.

struct LeaseTerms {
  uint64_t max_bytes_per_job = 0;      // on each shard; 0: no limit
  std::vector<std::string> addresses;  // of the group's nodes from 1 on; leased ids come after these
  std::string settings;
};

class LeaseBook {
 public:
  // Forgets what the job holds in the group. May be repeated.
  using Drop = std::function<Task<Status>(uint64_t job)>;

  // Opens its services, so make it before the node can be reached.
  LeaseBook(Io& io, ClusterConfig config, Drop drop);
  LeaseBook(const LeaseBook&) = delete;
  LeaseBook& operator=(const LeaseBook&) = delete;

  // Begins to serve; ends when the Io stops.
  void start(TaskSet& tasks, LeaseTerms terms);
  // Tells every job that the group ends, and why. Returns when all know, or after `lost_after`.
  Task<> close(Status why);

  size_t leases() const { return entries_.size(); }

 private:
  struct Entry {
    Entry(const ClusterConfig& config, Time now) : silence(config, now), use_by(now + config.join_timeout) {}
    Time bound() const { return renewed ? silence.bound() : use_by; }
    bool is_lost(Time now) { return renewed ? silence.is_loss(now) : now >= use_by; }
    proto::LeaseReply lease;
    uint64_t nonce = 0;
    std::string name;
    uint32_t nodes = 0;
    Silence silence;
    const Time use_by;  // until it is renewed for the first time: starting a job's processes may take long
    bool renewed = false;
    std::optional<Request> renewing;  // the latest, until it is answered at `answer_at`
    Time answer_at{};
    std::optional<Request> releasing;  // the latest
    bool ending = false;
    bool told = false;  // that the group ends
    Signal changed;
  };

  Task<> serve_in_order(Service service, void (LeaseBook::*handle)(Request));
  void on_lease(Request request);
  void on_renew(Request request);
  void on_release(Request request);
  Result<Entry*> grant(const proto::LeaseRequest& wish);
  Status check(const proto::LeaseRequest& wish) const;
  Entry* find(const proto::LeaseUse& use);
  bool all_told() const;

  Task<> watch(Entry& entry);
  Task<> end(Entry& entry);
  Task<> answer_renewal(Request request, uint64_t job);
  Task<> answer_lease(Request request, proto::LeaseReply lease);
  Task<> answer_ok(Request request);
  Task<> refuse(Request request, Status why);

  Io& io_;
  const ClusterConfig config_;
  const Drop drop_;
  LeaseTerms terms_;
  TaskSet* tasks_ = nullptr;
  std::map<uint64_t, Entry> entries_;  // by job
  uint64_t last_job_ = 0;
  Peer next_id_ = 0;
  std::optional<Status> closing_;
  Signal told_;
};

}  // namespace talweg
