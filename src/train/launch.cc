#include "train/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "io/host_io.h"
#include "io/inproc/transport.h"
#include "io/shm/transport.h"
#include "io/tcp/transport.h"

namespace talweg {
namespace {

uint64_t random_number() {
  uint64_t number = 0;
  CHECK(::getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number));
  return number;
}

std::string new_secret() { return fmt::format("{:016x}{:016x}", random_number(), random_number()); }

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Spinning pays only while every node has a core to itself, which nobody knows of a group that jobs share.
Duration spin_for(const Layout& layout) {
  const bool shared = layout.uses_group() || layout.workers == 0;
  return !shared && layout.shards + layout.workers <= std::thread::hardware_concurrency() ? Duration(microseconds(50))
                                                                                          : Duration(0);
}

HostIoOptions io_options(Peer self, const std::string& secret, const JobConfig& job, ComputePool* pool) {
  return {.self = self, .job = secret, .seed = job.train.seed, .spin = spin_for(job.distribute.layout()), .pool = pool};
}

Result<std::unique_ptr<Transport>> make_transport(Wire wire, const std::string& listen, HostIo& io) {
  if (wire == Wire::kShm) return shm::make_transport(io.bell());
  return tcp::make_transport(listen);
}

// Keeps SIGINT and SIGTERM from ending the process, for as long as it lives. A signal goes to any thread that does not
// block it, so this must be there before the first thread is.
class BlockedInterrupts {
 public:
  BlockedInterrupts() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  BlockedInterrupts(const BlockedInterrupts&) = delete;
  BlockedInterrupts& operator=(const BlockedInterrupts&) = delete;
  ~BlockedInterrupts() { unblock(); }

  // For a child between fork and exec too.
  void unblock() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& signals() const { return signals_; }

 private:
  sigset_t signals_{}, before_{};
};

// Turns the blocked signals into an orderly end of the job or group, for as long as it lives.
class Interrupts {
 public:
  Interrupts(const BlockedInterrupts& blocked, HostIo& io, std::function<void(Status)> interrupt) {
    thread_ = std::thread([this, &blocked, &io, interrupt = std::move(interrupt)] {
      const timespec pause{0, 100'000'000};
      while (!done_) {
        const int signal = ::sigtimedwait(&blocked.signals(), nullptr, &pause);
        if (signal <= 0 || done_) continue;
        io.from_outside(
            [interrupt, signal] { interrupt(error(Code::kCancelled, "interrupted ({})", ::strsignal(signal))); });
      }
    });
  }
  ~Interrupts() {
    done_ = true;
    ::pthread_kill(thread_.native_handle(), SIGTERM);  // to this thread alone, which waits for it
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// The nodes of one process: ids from `first` on.
struct NodeRange {
  Peer first;
  uint32_t count;
};

// The node processes of a job on this host. They end with this process, however it ends.
class Children {
 public:
  Children(const Layout& layout, const BlockedInterrupts& blocked, std::string log_path)
      : layout_(layout), blocked_(blocked), log_path_(std::move(log_path)) {}
  ~Children() {
    kill_all();
    if (watcher_.joinable()) watcher_.join();
  }

  Status start(const std::string& executable, const std::vector<std::string>& arguments, const std::string& secret,
               NodeRange range) {
    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error(errno, "cannot start a node");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::signal(SIGINT, SIG_IGN);  // the coordinator ends the job in order
      blocked_.unblock();
      ::setenv(kSecretVariable, secret.c_str(), 1);
      ::execv(executable.c_str(), argv.data());
      ::_exit(127);
    }
    const std::lock_guard lock(mutex_);
    running_[pid] = range;
    return {};
  }

  // Tells the coordinator of every end.
  void watch(HostIo& io, Coordinator& coordinator) {
    watcher_ = std::thread([this, &io, &coordinator] {
      int status = 0;
      for (pid_t pid; (pid = ::waitpid(-1, &status, 0)) > 0 || errno == EINTR;) {
        if (pid <= 0) continue;
        NodeRange range{};
        {
          const std::lock_guard lock(mutex_);
          const auto found = running_.find(pid);
          if (found == running_.end()) continue;
          range = found->second;
          running_.erase(found);
        }
        if (finished_) continue;
        const Status how = describe(pid, range.first, status);
        io.from_outside([&coordinator, range, how] {
          for (uint32_t i = 0; i < range.count; ++i) coordinator.exited(range.first + i, how);
        });
      }
    });
  }
  // The coordinator is gone; ends from now on concern nobody. Those that do not end soon are ended.
  void finish(Duration patience) {
    finished_ = true;
    for (Duration waited{}; waited < patience && any_running(); waited += milliseconds(5)) ::usleep(5000);
    kill_all();
  }

 private:
  void kill_all() {
    const std::lock_guard lock(mutex_);
    for (auto& [pid, range] : running_) ::kill(pid, SIGKILL);
  }
  bool any_running() {
    const std::lock_guard lock(mutex_);
    return !running_.empty();
  }
  Status describe(pid_t pid, Peer node, int status) const {
    const std::string who = fmt::format("{} (process {})", layout_.name_of(node), pid);
    if (WIFSIGNALED(status)) {
      return error(Code::kUnavailable, "{} was killed by signal {} ({})", who, WTERMSIG(status),
                   ::strsignal(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) == 127) return error(Code::kUnavailable, "{} could not be started", who);
    if (WEXITSTATUS(status) != 0) {
      return error(Code::kUnavailable, "{} ended with exit code {}{}{}", who, WEXITSTATUS(status),
                   log_path_.empty() ? "" : "; why is in ", log_path_);
    }
    return {};
  }

  const Layout layout_;
  const BlockedInterrupts& blocked_;
  const std::string log_path_;
  std::mutex mutex_;
  std::map<pid_t, NodeRange> running_;
  std::atomic<bool> finished_{false};
  std::thread watcher_;
};

JobResult failed(Status why) {
  JobResult result;
  result.status = std::move(why);
  return result;
}

JobResult run_coordinator(const BlockedInterrupts& blocked, HostIo& io, CoordinatorNode& coordinator) {
  JobResult result;
  const Interrupts interrupts(blocked, io, [&](Status why) { coordinator.interrupt(std::move(why)); });
  io.run(coordinator.run(&result));
  return result;
}

JobResult launch_threads(const JobConfig& job, const TrainingData& data, LaunchOptions options) {
  const BlockedInterrupts blocked;
  const auto hub = inproc::make_hub();
  const std::string secret = new_secret();
  const Layout layout = job.distribute.layout();
  ComputePool pool(std::thread::hardware_concurrency());
  HostIo coordinator_io(io_options(kCoordinatorNode, secret, job, &pool));
  CoordinatorNode coordinator(coordinator_io, job, options.parts, data, std::move(options.events));
  coordinator_io.add(inproc::make_transport(hub, "0", coordinator_io.bell()));

  const NodeContext context{Identity(static_cast<uint64_t>(::getpid()), host_name()), options.parts,
                            [&data](const JobConfig&) -> Result<TrainingData> { return data; }, job.cluster,
                            kCoordinatorNode};
  std::vector<std::thread> threads;
  for (Peer id = 1; id < layout.nodes(); ++id) {
    threads.emplace_back([&, id] {
      HostIo io(io_options(id, secret, job, &pool));
      io.learn(kCoordinatorNode, coordinator_io.address());
      io.add(inproc::make_transport(hub, std::to_string(id), io.bell()));
      Status outcome;
      io.run(run_member(io, context, &outcome));
    });
  }
  JobResult result = run_coordinator(blocked, coordinator_io, coordinator);
  for (auto& thread : threads) thread.join();
  return result;
}

std::vector<NodeRange> server_processes(uint32_t servers, uint32_t shards_per_server) {
  std::vector<NodeRange> ranges;
  for (uint32_t i = 0; i < servers; ++i) ranges.push_back({1 + i * shards_per_server, shards_per_server});
  return ranges;
}

// A server process runs one shard per core it uses; a worker process is one node.
std::vector<NodeRange> processes_of(const DistributeConfig& distribute) {
  const Layout layout = distribute.layout();
  std::vector<NodeRange> ranges;
  if (!layout.uses_group()) ranges = server_processes(distribute.servers, distribute.shards_per_server);
  for (uint32_t i = 0; i < distribute.workers; ++i) ranges.push_back({layout.worker(i), 1});
  return ranges;
}

std::vector<std::string> node_command(const NodeRange& range, const std::string& address, const Layout& layout,
                                      const ClusterConfig& cluster) {
  std::vector<std::string> command = {"talweg",         "node",
                                      "--coordinator",  address,
                                      "--id",           std::to_string(range.first),
                                      "--count",        std::to_string(range.count),
                                      "--join-timeout", format_duration(cluster.join_timeout)};
  if (layout.uses_group()) {
    command.insert(command.end(), {"--coordinator-id", std::to_string(layout.coordinator())});
  }
  if (spin_for(layout) > Duration(0)) command.push_back("--own-cores");
  return command;
}

void add_log(const std::string& log_path, std::vector<std::string>* command) {
  if (!log_path.empty()) command->insert(command->end(), {"--log", log_path});
}

std::string told_commands(const JobConfig& job, const std::string& address, const std::string& secret) {
  std::string text = fmt::format("Start these nodes, with {}={} in their environment:\n", kSecretVariable, secret);
  for (const NodeRange& range : processes_of(job.distribute)) {
    for (const auto& word : node_command(range, address, job.distribute.layout(), job.cluster)) text += word + " ";
    if (job.distribute.transport == Wire::kTcp) text += "--listen HOST:0";
    text += "\n";
  }
  return text;
}

// Another node at the same host as the coordinator's.
std::string any_port_of(const std::string& listen) { return listen.substr(0, listen.rfind(':')) + ":0"; }

// The first words with a group are said under a random id; the leased ones come with its answer.
Result<JobConfig> with_lease(const BlockedInterrupts& blocked, const JobConfig& job, const std::string& secret) {
  if (secret.empty()) {
    return error(Code::kInvalid, "distribute.group: {} is not set: the group tells it", kGroupSecretVariable);
  }
  const Peer self = kFirstVisitorId + static_cast<Peer>(random_number() % kFirstVisitorId);
  HostIo io({.self = self, .job = secret, .seed = random_number()});
  const Wire wire = job.distribute.group.starts_with("shm:") ? Wire::kShm : Wire::kTcp;
  ASSIGN(auto transport, make_transport(wire, any_port_of(job.distribute.listen), io));
  io.add(std::move(transport));
  io.learn(kCoordinatorNode, job.distribute.group);
  const Interrupts interrupts(blocked, io, [&](Status why) { io.stop(std::move(why)); });
  Result<JobConfig> leased = Status(Code::kUnavailable, "no answer");
  io.run(lease_from_group(io, job, random_number() >> 1, &leased));
  if (!leased.ok() && leased.status().code() == Code::kDeadline) {
    return error(Code::kDeadline, "{}; does the group run, and is {} the one it told?", leased.status().message(),
                 kGroupSecretVariable);
  }
  return leased;
}

JobResult launch_with(const BlockedInterrupts& blocked, const JobConfig& job, const TrainingData& data,
                      const std::string& secret, LaunchOptions options) {
  const Layout layout = job.distribute.layout();
  HostIo io(io_options(layout.coordinator(), secret, job, nullptr));
  if (layout.uses_group()) io.learn(kCoordinatorNode, job.distribute.group);
  CoordinatorNode coordinator(io, job, options.parts, data, std::move(options.events));
  auto transport = make_transport(job.distribute.transport, job.distribute.listen, io);
  if (!transport.ok()) return failed(transport.status().within("distribute.listen"));
  io.add(std::move(*transport));
  Children children(layout, blocked, options.log_path);
  if (job.distribute.launch == Launch::kManual) {
    options.say(told_commands(job, io.address(), secret));
  } else {
    for (const NodeRange& range : processes_of(job.distribute)) {
      auto command = node_command(range, io.address(), layout, job.cluster);
      add_log(options.log_path, &command);
      const Status started = children.start(options.executable, command, secret, range);
      if (!started.ok()) return failed(started);
    }
    children.watch(io, coordinator.coordinator());
  }
  JobResult result = run_coordinator(blocked, io, coordinator);
  children.finish(job.cluster.lost_after);
  return result;
}

JobResult launch_processes(const JobConfig& job, const TrainingData& data, LaunchOptions options) {
  const BlockedInterrupts blocked;
  if (job.distribute.group.empty()) return launch_with(blocked, job, data, new_secret(), std::move(options));
  const std::string secret = options.group_secret;
  const Result<JobConfig> leased = with_lease(blocked, job, secret);
  if (!leased.ok()) return failed(leased.status());
  return launch_with(blocked, *leased, data, secret, std::move(options));
}

std::string told_group(const GroupConfig& config, const std::string& address, const std::string& secret) {
  return fmt::format(
      "Server group at {}: {} shards. A job uses it with distribute.group={} and {}={} in its "
      "environment.\n",
      address, config.layout().shards, address, kGroupSecretVariable, secret);
}

}  // namespace

JobResult launch(const JobConfig& job, const TrainingData& data, LaunchOptions options) {
  if (job.distribute.launch == Launch::kThreads) return launch_threads(job, data, std::move(options));
  return launch_processes(job, data, std::move(options));
}

Status launch_group(const GroupConfig& config, const GroupOptions& options) {
  const BlockedInterrupts blocked;
  const std::string secret = options.secret.empty() ? new_secret() : options.secret;
  const Layout layout = config.layout();
  HostIo io({.self = kCoordinatorNode, .job = secret, .seed = random_number()});
  GroupNode group(io, config, [&] { options.say(told_group(config, io.address(), secret)); });
  auto transport = make_transport(config.transport, config.listen, io);
  if (!transport.ok()) return transport.status().within("listen");
  io.add(std::move(*transport));
  Children children(layout, blocked, options.log_path);
  for (const NodeRange& range : server_processes(config.servers, config.shards_per_server)) {
    auto command = node_command(range, io.address(), layout, config.cluster);
    command.push_back("--group");
    if (config.transport == Wire::kTcp) command.insert(command.end(), {"--listen", any_port_of(config.listen)});
    add_log(options.log_path, &command);
    TRY(children.start(options.executable, command, secret, range));
  }
  children.watch(io, group.coordinator());
  Status outcome;
  {
    const Interrupts interrupts(blocked, io, [&](Status why) { group.end(std::move(why)); });
    io.run(group.run(&outcome));
  }
  children.finish(config.cluster.lost_after);
  return outcome;
}

Status run_node_process(const NodeProcess& process, const JobParts& parts) {
  ComputePool pool(process.count);
  ClusterConfig joining;
  joining.join_timeout = process.join_timeout;
  const NodeContext context{Identity(static_cast<uint64_t>(::getpid()), host_name()), parts, &open_data, joining,
                            process.coordinator_id};
  std::vector<Status> outcomes(process.count);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < process.count; ++i) {
    threads.emplace_back([&, i] {
      HostIo io({.self = process.first + i,
                 .job = process.secret,
                 .seed = process.first + i,
                 .spin = process.shares_cores ? Duration(0) : Duration(microseconds(50)),
                 .pool = &pool});
      io.learn(process.coordinator_id, process.coordinator);
      const Wire wire = process.coordinator.starts_with("shm:") ? Wire::kShm : Wire::kTcp;
      auto transport = make_transport(wire, process.listen, io);
      if (!transport.ok()) {
        outcomes[i] = transport.status();
        return;
      }
      io.add(std::move(*transport));
      io.run(process.of_group ? run_group_member(io, context, &outcomes[i]) : run_member(io, context, &outcomes[i]));
    });
  }
  for (auto& thread : threads) thread.join();
  for (Status& outcome : outcomes) TRY(outcome);
  return {};
}

}  // namespace talweg
