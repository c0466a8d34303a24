#include "train/job.h"

#include <filesystem>

namespace talweg {
namespace {

void make_absolute(std::string& path, const std::filesystem::path& folder) {
  if (!path.empty() && std::filesystem::path(path).is_relative()) path = (folder / path).lexically_normal().string();
}

// A setting stands in no file, so that what is wrong with its value must not be told with a line of one.
YAML::Node without_line(const YAML::Node& value) { return value.IsScalar() ? YAML::Node(value.Scalar()) : value; }

bool is_map_or_nothing(const YAML::Node& node) { return !node.IsDefined() || node.IsNull() || node.IsMap(); }

// "train.epochs=3" into the tree.
Status apply_setting(YAML::Node root, const std::string& setting) {
  const size_t equals = setting.find('=');
  std::string path = setting.substr(0, equals);
  if (equals == std::string::npos || path.empty() || path.front() == '.' || path.back() == '.' ||
      path.find("..") != std::string::npos) {
    return error(Code::kInvalid, "--set {}: give key=value, as train.epochs=3", setting);
  }
  ASSIGN(const YAML::Node value, parse_yaml(setting.substr(equals + 1), "--set " + setting));
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

// Reads the settings by themselves: the error names the one that is wrong, and not the job file.
Status check_settings(const std::vector<std::string>& settings) {
  for (const auto& setting : settings) {
    const YAML::Node alone(YAML::NodeType::Map);
    TRY(apply_setting(alone, setting));
    TRY(config_from_yaml<JobConfig>(alone, "--set " + setting).status());
  }
  return {};
}

DatasetOptions options_for(const DataConfig& data, const std::string& path) {
  DatasetOptions options;
  options.path = path;
  options.cache_dir = data.cache;
  options.read.format = data.format;
  options.read.csv.header = data.header;
  options.read.csv.label = data.label;
  options.read.bad_rows = data.bad_rows;
  options.read.max_bad_rows = data.max_bad_rows;
  return options;
}

}  // namespace

Status JobConfig::check(const std::string& file) const {
  if (data.generated) {
    TRY(data.generated->options().validate().within(fmt::format("{}: data.generated", file)));
  } else if (data.train.empty()) {
    return error(Code::kInvalid, "{}: data.train: missing; name the file of training rows, or give data.generated",
                 file);
  }
  TRY(cluster.check().within(fmt::format("{}: cluster", file)));
  if (name.empty() || name.find('/') != std::string::npos) {
    return error(Code::kInvalid, "{}: name: '{}' cannot name a folder", file, name);
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
  for (std::string* path : {&job.data.train, &job.data.test, &job.data.cache}) make_absolute(*path, folder);
}

Result<JobConfig> load_job(const std::string& path, const std::vector<std::string>& settings) {
  ASSIGN(const std::string text, read_text_file(path));
  ASSIGN(YAML::Node node, parse_yaml(text, path));
  if (node.IsNull()) node = YAML::Node(YAML::NodeType::Map);
  TRY(check_settings(settings));
  for (const auto& setting : settings) TRY(apply_setting(node, setting));
  ASSIGN(JobConfig job, job_from_yaml(node, path));
  resolve_data_paths(job, path);
  make_absolute(job.runs, std::filesystem::current_path());
  return job;
}

Result<TrainingData> open_data(const JobConfig& job) {
  TrainingData data;
  if (job.data.generated) {
    const GeneratedData& generated = *job.data.generated;
    data.train = generate_clicks(generated.options(), 0, generated.rows);
    data.test = generate_clicks(generated.options(), generated.rows, generated.test_rows);
    return data;
  }
  ASSIGN(data.train, open_dataset(options_for(job.data, job.data.train)));
  if (!job.data.test.empty()) {
    ASSIGN(data.test, open_dataset(options_for(job.data, job.data.test)));
  }
  if (data.train.rows() == 0) return error(Code::kInvalid, "{} has no rows", job.data.train);
  return data;
}

Status check_job(const JobConfig& job, const TrainingData& data, const OptimizerRegistry& optimizers) {
  ASSIGN(const auto model, make_model<float>(job.model));
  TRY(model->check(data.train).within("data.train"));
  TRY(model->check(data.test).within("data.test"));
  return optimizers.make<float>(job.train.optimizer).status().within("train.optimizer.type");
}

}  // namespace talweg
