#include "train/job.h"

#include <filesystem>

#include "store/table.h"
#include "train/store_exchange.h"

namespace talweg {
namespace {

void make_absolute(std::string& path, const std::filesystem::path& folder) {
  if (!path.empty() && std::filesystem::path(path).is_relative()) path = (folder / path).lexically_normal().string();
}

// A setting stands in no file, so that what is wrong with its value must not be told with a line of one.
YAML::Node without_line(const YAML::Node& value) { return value.IsScalar() ? YAML::Node(value.Scalar()) : value; }

bool is_map_or_nothing(const YAML::Node& node) { return !node.IsDefined() || node.IsNull() || node.IsMap(); }

DatasetOptions options_for(const DataConfig& data, const std::string& path) {
  DatasetOptions options;
  options.path = path;
  options.cache_dir = data.cache;
  options.read = data.read_options();
  return options;
}

template <class Generator, class Options>
Result<std::unique_ptr<RowGenerator>> made_from(const Options& options) {
  TRY(options.validate());
  return std::unique_ptr<RowGenerator>(std::make_unique<Generator>(options));
}

ClickOptions click_options(const GeneratedData& data) {
  return {.seed = data.seed,
          .features = data.features,
          .fields = data.nonzeros,
          .bias = -1.3,
          .weight_sd = data.signal,
          .factors = data.kind == GeneratedKind::kFm ? data.factors : 0,
          .interaction_sd = data.interaction,
          .drift = data.drift,
          .window = data.window};
}

RegressionOptions regression_options(const GeneratedData& data) {
  return {.seed = data.seed,
          .features = data.features,
          .fields = data.nonzeros,
          .weight_sd = data.signal,
          .noise_sd = data.noise};
}

ClassOptions class_options(const GeneratedData& data) {
  return {.seed = data.seed,
          .features = data.features,
          .fields = data.nonzeros,
          .classes = data.classes,
          .weight_sd = data.signal};
}

RatingOptions rating_options(const GeneratedData& data, uint64_t users) {
  return {.seed = data.seed,
          .users = users,
          .items = data.features - users,
          .factors = data.factors,
          .bias_sd = data.signal,
          .interaction_sd = data.interaction,
          .noise_sd = data.noise};
}

Result<std::unique_ptr<RowGenerator>> rating_generator(const GeneratedData& data) {
  const uint64_t users = data.users.value_or(data.features / 2);
  if (users >= data.features) {
    return error(Code::kInvalid, "users: {} users leave no item among {} features", users, data.features);
  }
  return made_from<RatingGenerator>(rating_options(data, users));
}

}  // namespace

Result<std::unique_ptr<RowGenerator>> GeneratedData::generator() const {
  const bool clicks = kind == GeneratedKind::kClicks || kind == GeneratedKind::kFm;
  if (drift > 0 && !clicks) return Status(Code::kInvalid, "drift: only clicks and fm can drift");
  switch (kind) {
    case GeneratedKind::kClicks:
    case GeneratedKind::kFm: break;
    case GeneratedKind::kRegression: return made_from<RegressionGenerator>(regression_options(*this));
    case GeneratedKind::kClasses: return made_from<ClassGenerator>(class_options(*this));
    case GeneratedKind::kRatings: return rating_generator(*this);
  }
  return made_from<ClickGenerator>(click_options(*this));
}

Status JobConfig::check(const std::string& file) const {
  if (data.generated) {
    TRY(data.generated->generator().status().within(fmt::format("{}: data.generated", file)));
  } else if (data.train.empty() && !data.streams()) {
    return error(Code::kInvalid,
                 "{}: data.train: missing; name the file of training rows, or give data.stream or data.generated",
                 file);
  }
  if ((data.stream == "generated") != (data.streams() && data.generated.has_value())) {
    return error(Code::kInvalid, "{}: data.stream: generated rows need data.generated, and are then the stream", file);
  }
  if (data.streams() && !data.train.empty()) {
    return error(Code::kInvalid, "{}: data.stream: the rows come from it, or from data.train, not from both", file);
  }
  TRY(distribute.check().within(fmt::format("{}: distribute", file)));
  TRY(cluster.check().within(fmt::format("{}: cluster", file)));
  if (name.empty() || name.find('/') != std::string::npos) {
    return error(Code::kInvalid, "{}: name: '{}' cannot name a folder", file, name);
  }
  return {};
}

ReadOptions DataConfig::read_options() const {
  ReadOptions options;
  options.format = format;
  options.csv.header = header;
  options.csv.label = label;
  options.csv.categorical = categorical;
  options.csv.hash_bits = hash_bits;
  options.labels = labels;
  options.bad_rows = bad_rows;
  options.max_bad_rows = max_bad_rows;
  return options;
}

Status DistributeConfig::check() const {
  const bool backup = sync.kind == Sync::Kind::kBackup;
  if (backup && sync.steps >= workers) {
    return error(Code::kInvalid, "sync: {} of {} workers cannot be backups: at least one is needed", sync.steps,
                 workers);
  }
  if (dense_sync && (backup || dense_sync->kind == Sync::Kind::kBackup) && *dense_sync != sync) {
    return error(Code::kInvalid, "dense_sync: with backup workers all tables must go on together: leave it out");
  }
  if (backup && (push_every > 1 || fetch_every > 1)) {
    return error(Code::kInvalid, "push_every and fetch_every do not go with backup workers");
  }
  return {};
}

Result<JobConfig> job_from_yaml(const YAML::Node& node, const std::string& file) {
  ASSIGN(JobConfig job, config_from_yaml<JobConfig>(node, file));
  TRY(job.check(file));
  return job;
}

Result<JobConfig> job_from_text(const std::string& text, const std::string& file) {
  ASSIGN(const YAML::Node node, parse_yaml(text, file));
  return job_from_yaml(node, file);
}

void resolve_data_paths(JobConfig& job, const std::string& file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  for (std::string* path : {&job.data.train, &job.data.test, &job.data.cache, &job.data.labels}) {
    make_absolute(*path, folder);
  }
  if (job.data.stream != "-" && job.data.stream != "generated") make_absolute(job.data.stream, folder);
}

Status apply_setting(YAML::Node root, const std::string& setting) {
  const size_t equals = setting.find('=');
  std::string path = setting.substr(0, equals);
  if (equals == std::string::npos || path.empty() || path.front() == '.' || path.back() == '.' ||
      path.find("..") != std::string::npos) {
    return error(Code::kInvalid, "--set {}: give key=value, as train.epochs=3", setting);
  }
  const std::string text = setting.substr(equals + 1);
  // In YAML a dash alone is a list of nothing; who sets one means standard input.
  ASSIGN(const YAML::Node value,
         text == "-" ? Result<YAML::Node>(YAML::Node(text)) : parse_yaml(text, "--set " + setting));
  YAML::Node node = root;
  for (size_t dot; (dot = path.find('.')) != std::string::npos && is_map_or_nothing(node);
       path = path.substr(dot + 1)) {
    node.reset(node[path.substr(0, dot)]);
  }
  if (!is_map_or_nothing(node)) {
    return error(Code::kInvalid, "--set {}: '{}' is inside of what is a single value, not a group of settings", setting,
                 path);
  }
  node[path] = without_line(value);
  return {};
}

Result<JobConfig> load_job(const std::string& path, const std::vector<std::string>& settings) {
  ASSIGN(const YAML::Node node, tree_with_settings<JobConfig>(path, settings));
  ASSIGN(JobConfig job, job_from_yaml(node, path));
  resolve_data_paths(job, path);
  make_absolute(job.runs, std::filesystem::current_path());
  return job;
}

Result<TrainingData> open_data(const JobConfig& job) {
  TrainingData data;
  if (job.data.generated) {
    const GeneratedData& generated = *job.data.generated;
    ASSIGN(const auto generator, generated.generator());
    if (!job.data.streams()) data.train = generate(*generator, 0, generated.rows);
    data.test = generate(*generator, generated.rows, generated.test_rows);
    return data;
  }
  if (!job.data.streams()) {
    ASSIGN(data.train, open_dataset(options_for(job.data, job.data.train)));
  }
  if (!job.data.test.empty()) {
    ASSIGN(data.test, open_dataset(options_for(job.data, job.data.test)));
  }
  if (data.train.rows() == 0 && !job.data.streams()) return error(Code::kInvalid, "{} has no rows", job.data.train);
  return data;
}

Status check_job(const JobConfig& job, const TrainingData& data, const JobParts& parts) {
  ASSIGN(const auto model, parts.models.make<float>(job.model));
  if (!job.data.streams()) TRY(model->check(data.train).within("data.train"));
  TRY(model->check(data.test).within("data.test"));
  TRY(parts.optimizers.make<float>(job.train.optimizer).status().within("train.optimizer"));
  const Layout layout = job.distribute.layout();
  for (const TableSpec& table : tables_of(*model, job)) {
    TRY(check(table, layout.shards));
    TRY(Table::make(table, 0, 1 << 16, parts.optimizers).status());
  }
  return {};
}

}  // namespace talweg
