// The job file: what is trained, on what, and how it is distributed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "cluster/config.h"
#include "cluster/layout.h"
#include "data/cache.h"
#include "data/generator.h"
#include "data/sampler.h"
#include "model/registry.h"
#include "optim/registry.h"
#include "store/config.h"
#include "store/server.h"
#include "store/table_spec.h"

namespace talweg {

enum class Topology { kStore };
template <>
struct Choices<Topology> {
  static constexpr std::string_view names[] = {"store"};
};
enum class Launch { kProcesses, kThreads, kManual };
template <>
struct Choices<Launch> {
  static constexpr std::string_view names[] = {"processes", "threads", "manual"};
};
enum class Wire { kShm, kTcp };
template <>
struct Choices<Wire> {
  static constexpr std::string_view names[] = {"shm", "tcp"};
};
template <>
struct Choices<Format> {
  static constexpr std::string_view names[] = {"auto", "libsvm", "csv", "tsv", "criteo", "npy", "npz", "idx"};
};
template <>
struct Choices<BadRowPolicy> {
  static constexpr std::string_view names[] = {"stop", "skip"};
};
template <>
struct Choices<Partition> {
  static constexpr std::string_view names[] = {"contiguous",  "round_robin", "hash",
                                               "overlapping", "by_label",    "dirichlet"};
};

enum class GeneratedKind { kClicks, kRegression, kClasses, kFm, kRatings };
template <>
struct Choices<GeneratedKind> {
  static constexpr std::string_view names[] = {"clicks", "regression", "classes", "fm", "ratings"};
};

// Rows made instead of read: for trying things out and for simulations.
struct GeneratedData {
  GeneratedKind kind = GeneratedKind::kClicks;
  uint64_t rows = 100'000;
  uint64_t test_rows = 10'000;
  uint64_t seed = 1;
  uint64_t features = uint64_t{1} << 20;
  uint32_t nonzeros = 39;
  double signal = 0.2;
  double noise = 0.5;
  uint32_t classes = 5;
  uint32_t factors = 4;
  double interaction = 1;
  std::optional<uint64_t> users;
  double drift = 0;
  uint64_t window = uint64_t{1} << 16;

  // An error when the settings do not go together.
  Result<std::unique_ptr<RowGenerator>> generator() const;

  template <class Fields>
  void fields(Fields& f) {
    f("kind", kind, "what is planted: clicks, regression, classes, fm (clicks of pairs of keys), ratings");
    f("rows", rows, "training rows", at_least(1));
    f("test_rows", test_rows, "held-out rows", at_least(0));
    f("seed", seed, "another seed gives another planted model", at_least(0));
    f("features", features, "keys are below this", at_least(1));
    f("nonzeros", nonzeros, "non-zeros per row; ratings have two", at_least(1));
    f("signal", signal, "standard deviation of the planted weights; ratings: of the biases", at_least(0));
    f("noise", noise, "regression, ratings: standard deviation of what cannot be learned", at_least(0));
    f("classes", classes, "classes: how many", at_least(2));
    f("factors", factors, "fm, ratings: planted factors of a key", at_least(1));
    f("interaction", interaction, "fm, ratings: standard deviation of what the factors add", at_least(0));
    f("users", users, "ratings: keys below this are users, the others items; else half of them", at_least(1));
    f("drift", drift, "clicks, fm: new keys per row, at most one per non-zero; old ones fade", at_least(0));
    f("window", window, "with drift: keys that live at a time", at_least(1));
  }
};

struct DataConfig {
  std::string train, test;
  std::optional<GeneratedData> generated;
  Format format = Format::kAuto;
  std::string label = "1";
  bool header = true;
  std::vector<std::string> categorical;
  uint32_t hash_bits = 22;
  std::string labels;
  std::string cache;
  BadRowPolicy bad_rows = BadRowPolicy::kStop;
  uint64_t max_bad_rows = 100;
  std::string stream;
  Duration stream_idle{};
  int64_t evaluate_every = 0;

  // Rows come one after the other and are used once; else they are a set, used in epochs.
  bool streams() const { return !stream.empty(); }
  ReadOptions read_options() const;

  template <class Fields>
  void fields(Fields& f) {
    f("train", train, "file of training rows");
    f("test", test, "file of held-out rows; empty: no evaluation");
    f("generated", generated, "rows made instead of read from files");
    f("format", format,
      "auto (by the file's name), libsvm, csv, tsv, criteo, npy, npz, idx; text may end in .gz or .zst");
    f("label", label, "csv, tsv, npy: the label's column, by name or by number from 1");
    f("header", header, "csv, tsv: whether the first line names the columns");
    f("categorical", categorical, "csv, tsv: columns of words, which are hashed: names or numbers, or [all]");
    f("hash_bits", hash_bits, "csv, tsv, criteo: hashed keys are below 2 to this power", between(1, 32));
    f("labels", labels, "idx, npy: file of the labels; empty: idx finds it by its name, npy has a column");
    f("cache", cache, "folder for the binary caches; empty: beside the files");
    f("bad_rows", bad_rows, "a line that cannot be read: stop, or skip it");
    f("max_bad_rows", max_bad_rows, "skip at most this many", at_least(0));
    f("stream", stream,
      "learn from rows as they come, once, instead of train: a growing file, \"-\" (standard input) or generated");
    f("stream_idle", stream_idle, "a growing file ends when it has not grown for this long; 0s: at an interrupt");
    f("evaluate_every", evaluate_every, "stream: steps between two evaluations; 0: only at the end", at_least(0));
  }
};

// What is good enough. All that are set must hold.
struct TargetConfig {
  std::optional<double> loss, auc, accuracy, rmse;

  template <class Fields>
  void fields(Fields& f) {
    f("loss", loss, "held-out loss of at most this");
    f("auc", auc, "at least this", between(0, 1));
    f("accuracy", accuracy, "at least this", between(0, 1));
    f("rmse", rmse, "at most this", at_least(0));
  }
};

struct TrainConfig {
  int64_t epochs = 1;
  int64_t batch = 1024;
  bool shuffle = true;
  uint64_t seed = 1;
  Partition partition = Partition::kContiguous;
  ValueType precision = ValueType::kFloat32;
  OptimizerConfig optimizer;
  double overlap = 0.1;
  double alpha = 0.5;
  uint64_t grow_every = 0;
  double grow_by = 2;
  std::optional<uint64_t> online_updates;
  double clip_norm = 0;
  std::optional<TargetConfig> target;

  template <class Fields>
  void fields(Fields& f) {
    f("epochs", epochs, "passes over the training rows", at_least(1));
    f("batch", batch, "rows per step, all workers together", at_least(1));
    f("shuffle", shuffle, "a new order of the rows in each epoch");
    f("seed", seed, "of the shuffling", at_least(0));
    f("partition", partition,
      "how rows are cut among the workers: contiguous, round_robin (of each step); hash, overlapping, by_label, "
      "dirichlet (of all rows, for the whole job)");
    f("overlap", overlap, "overlapping: the part of the neighbour's rows that a worker has too", between(0, 1));
    f("alpha", alpha, "dirichlet: the smaller, the less alike are the workers' rows", Bounds{1e-6, INFINITY});
    f("grow_every", grow_every, "epochs after which the batch grows; 0: never", at_least(0));
    f("grow_by", grow_by, "by this factor", at_least(1));
    f("online_updates", online_updates,
      "each epoch is one step over all rows, then this many of batch rows; else steps of batch rows only");
    f("clip_norm", clip_norm, "bound of the norm of a step's gradient, of which each worker has an equal part; 0: none",
      at_least(0));
    f("precision", precision, "of the parameters: float32, float64");
    f("optimizer", optimizer, "how the parameters change");
    f("target", target, "stop when an evaluation reaches this");
  }
};

// What a server group gave the job: part of the job as its nodes know it, not of the job file.
struct LeaseConfig {
  uint64_t job = 0;
  uint64_t nonce = 0;
  Peer first = 1;
  Duration lost_after{};
  std::vector<std::string> shards;

  template <class Fields>
  void fields(Fields& f) {
    f("job", job, "the job's id on the shards", at_least(0));
    f("nonce", nonce, "what shows that the lease is this job's", at_least(0));
    f("first", first, "the coordinator's id; the workers' come after it", at_least(1));
    f("lost_after", lost_after, "the group is lost when nothing was heard of it for so long");
    f("shards", shards, "their addresses");
  }
};

struct DistributeConfig {
  Topology topology = Topology::kStore;
  Sync sync;
  std::optional<Sync> dense_sync;
  int64_t push_every = 1, fetch_every = 1;
  bool rate_by_staleness = false;
  uint32_t in_flight = 0;
  bool intent = false;
  uint32_t workers = 1;
  uint32_t servers = 1;
  uint32_t shards_per_server = 1;
  Launch launch = Launch::kProcesses;
  Wire transport = Wire::kShm;
  std::string listen = "127.0.0.1:0";
  std::string group;
  std::optional<LeaseConfig> lease;

  template <class Fields>
  void fields(Fields& f) {
    f("topology", topology, "who talks to whom: store");
    f("sync", sync,
      "when updates meet: bsp; asp; ssp(s): nobody is more than s steps ahead; backup(b): a step goes on without its b "
      "slowest workers; value(d): nobody computes with weights further than d from the present ones");
    f("dense_sync", dense_sync, "the same for dense tables, where it differs");
    f("push_every", push_every, "a worker computes on a replica of its own and pushes after this many steps",
      at_least(1));
    f("fetch_every", fetch_every, "and fetches the parameters anew after this many; both 1: no replica", at_least(1));
    f("rate_by_staleness", rate_by_staleness, "asp, ssp, value: a push counts less the more updates it has missed");
    f("in_flight", in_flight, "pushes that may be under way while the next step begins", between(0, 3));
    f("intent", intent, "tell the servers a batch's keys while the one before is computed");
    f("workers", workers, "nodes that compute", between(1, 10'000));
    f("servers", servers, "processes that hold the parameters", between(1, 1'000));
    f("shards_per_server", shards_per_server, "cores a server uses, one shard on each", between(1, 256));
    f("launch", launch, "processes (of this host), threads (of this process), manual (you start the nodes)");
    f("transport", transport, "between processes: shm (this host only), tcp");
    f("listen", listen, "tcp: where the coordinator listens; port 0 lets the system choose");
    f("group", group,
      "address of a standing server group (talweg group), which then holds the parameters; the job has no servers, and "
      "the group's transport");
    f("lease", lease, "given by the group");
  }
  Layout layout() const;
  Status check() const;
  // The part of a step's rows whose gradients are waited for.
  double counted_share() const {
    if (sync.kind != Sync::Kind::kBackup) return 1;
    return static_cast<double>(workers - sync.steps) / workers;
  }
};

struct TablesConfig {
  RowPolicy rows;
  NonFinite non_finite = NonFinite::kRefuse;
  uint64_t quota = 0;

  template <class Fields>
  void fields(Fields& f) {
    f("rows", rows, "of sparse tables: which keys get one, and how long it stays");
    f("non_finite", non_finite, "a gradient that is not finite: refuse the push and name the key, or zero");
    f("quota", quota, "bytes that the job's tables may take on each shard; 0: no limit", at_least(0));
  }
};

struct JobConfig {
  std::string name = "job";
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  DistributeConfig distribute;
  ClusterConfig cluster;
  StoreConfig store;
  TablesConfig tables;
  std::string runs = "runs";

  template <class Fields>
  void fields(Fields& f) {
    f("name", name, "names the run's folder");
    f("model", model, "what is computed");
    f("data", data, "on what");
    f("train", train, "how it is learned");
    f("distribute", distribute, "how the work is distributed");
    f("cluster", cluster, "how patient the nodes are with each other");
    f("store", store, "the parameter store's patience and memory");
    f("tables", tables, "the parameter store's tables");
    f("runs", runs, "folder that gets a folder for each run");
  }
  // What single fields cannot tell.
  Status check(const std::string& file) const;
};

// Replaces a single setting ("train.epochs=3") in a file's tree.
Status apply_setting(YAML::Node root, const std::string& setting);

// The tree of a file of settings (no path: an empty one), single settings replaced. Each of these is read by itself
// first: an error then names the one that is wrong, and not the file.
template <class Config>
Result<YAML::Node> settings_tree(const std::string& path, const std::vector<std::string>& settings) {
  YAML::Node node(YAML::NodeType::Map);
  if (!path.empty()) {
    ASSIGN(const std::string text, read_text_file(path));
    ASSIGN(const YAML::Node parsed, parse_yaml(text, path));
    if (!parsed.IsNull()) node.reset(parsed);
  }
  for (const auto& setting : settings) {
    const YAML::Node alone(YAML::NodeType::Map);
    TRY(apply_setting(alone, setting));
    TRY(config_from_yaml<Config>(alone, "--set " + setting).status());
  }
  for (const auto& setting : settings) TRY(apply_setting(node, setting));
  return node;
}

// Reads a job file, replaces single settings ("train.epochs=3"), and makes its paths relative to the file absolute.
Result<JobConfig> load_job(const std::string& path, const std::vector<std::string>& settings);
// Paths of data are relative to the file they stand in.
void resolve_data_paths(JobConfig& job, const std::string& file);
Result<JobConfig> job_from_text(const std::string& text, const std::string& file);
Result<JobConfig> job_from_yaml(const YAML::Node& node, const std::string& file);

// What a job file may name.
struct JobParts : StoreParts {
  ModelRegistry models = ModelRegistry::standard();
};

struct TrainingData {
  Dataset train, test;
};
// Parses or maps the job's files. May take long the first time.
Result<TrainingData> open_data(const JobConfig& job);

// What would make every node fail, found before there are any: names that nobody knows, data that does not fit the
// model.
Status check_job(const JobConfig& job, const TrainingData& data, const JobParts& parts);

}  // namespace talweg
