#include "train/job.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/temp_dir.h"

namespace talweg {
namespace {

constexpr const char* kJob = R"(
name: clicks
model: {type: logistic, features: 500}
data: {train: rows/a.svm, test: /elsewhere/b.svm, cache: cached}
train: {epochs: 3, batch: 64, optimizer: {type: adagrad, lr: 0.25, l2: 1e-5}}
distribute: {workers: 4, servers: 2, transport: tcp, launch: threads}
cluster: {lost_after: 1500ms}
)";

std::string error_of(const Result<JobConfig>& job) { return job.ok() ? "no error" : job.status().message(); }

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Job, its_text_reads_back_to_the_same_text) {
  const auto job = job_from_text(kJob, "job.yaml");
  ASSERT_TRUE(job.ok()) << error_of(job);
  const std::string text = config_to_text(*job);
  const auto again = job_from_text(text, "text");
  ASSERT_TRUE(again.ok()) << error_of(again);
  EXPECT_EQ(config_to_text(*again), text);
  EXPECT_EQ(again->train.optimizer.l2, 1e-5);
  EXPECT_EQ(again->cluster.lost_after, milliseconds(1500));
  EXPECT_FALSE(again->data.generated.has_value());
}

TEST(Job, the_explained_text_reads_back_too_and_tells_every_setting) {
  const auto job = job_from_text("data: {generated: {rows: 10}}", "job.yaml");
  ASSERT_TRUE(job.ok()) << error_of(job);
  const std::string explained = config_to_text(*job, true);
  const auto again = job_from_text(explained, "explained");
  ASSERT_TRUE(again.ok()) << error_of(again);
  EXPECT_EQ(config_to_text(*again), config_to_text(*job));
  for (const char* key : {"epochs", "lr", "workers", "lost_after", "clock_timeout", "nonzeros", "listen", "runs"}) {
    EXPECT_TRUE(contains(explained, std::string(key) + ":")) << key;
  }
}

TEST(Job, names_with_odd_characters_survive_the_way_through_text) {
  auto job = job_from_text("data: {generated: {}}", "job.yaml");
  ASSERT_TRUE(job.ok()) << error_of(job);
  for (const char* name :
       {"a: b", "# no comment", "it's \"quoted\"", "  blanks ", "1e3", "true", "null", "\xc3\xa4\n\t\\"}) {
    job->name = name;
    const auto again = job_from_text(config_to_text(*job), "text");
    ASSERT_TRUE(again.ok()) << name << ": " << error_of(again);
    EXPECT_EQ(again->name, name);
  }
}

TEST(Job, paths_of_data_are_relative_to_the_job_file_and_the_runs_folder_to_the_caller) {
  const TempDir dir;
  const auto job = load_job(dir.write("job.yaml", kJob), {});
  ASSERT_TRUE(job.ok()) << error_of(job);
  EXPECT_EQ(job->data.train, dir.path("rows/a.svm"));
  EXPECT_EQ(job->data.test, "/elsewhere/b.svm");
  EXPECT_EQ(job->data.cache, dir.path("cached"));
  EXPECT_EQ(job->runs, (std::filesystem::current_path() / "runs").string());
}

TEST(Job, settings_replace_what_the_file_says_and_add_what_it_does_not) {
  const TempDir dir;
  const auto job =
      load_job(dir.write("job.yaml", kJob), {"train.epochs=7", "train.optimizer.type=sgd", "train.epochs=8",
                                             "store.call_timeout=9s", "name=other", "data.test=\"\""});
  ASSERT_TRUE(job.ok()) << error_of(job);
  EXPECT_EQ(job->train.epochs, 8);
  EXPECT_EQ(job->train.optimizer.type, "sgd");
  EXPECT_EQ(job->train.optimizer.lr, 0.25);
  EXPECT_EQ(job->store.call_timeout, seconds(9));
  EXPECT_EQ(job->name, "other");
  EXPECT_EQ(job->data.test, "");
}

TEST(Job, settings_are_enough_for_an_empty_file) {
  const TempDir dir;
  const auto job = load_job(dir.write("job.yaml", ""), {"data.generated.rows=10"});
  ASSERT_TRUE(job.ok()) << error_of(job);
  EXPECT_EQ(job->data.generated->rows, 10u);
}

TEST(Job, a_wrong_setting_is_named_and_not_the_job_file) {
  const TempDir dir;
  const std::string file = dir.write("job.yaml", kJob);
  const std::pair<const char*, const char*> wrong[] = {
      {"train.epoch=3", "--set train.epoch=3: train.epoch: unknown key; did you mean 'epochs'?"},
      {"train.epochs=many", "--set train.epochs=many: train.epochs: must be a whole number, not 'many'"},
      {"train.epochs=0", "--set train.epochs=0: train.epochs: must be at least 1, not 0"},
      {"train.epochs", "--set train.epochs: give key=value"},
      {"=3", "--set =3: give key=value"},
      {"train..epochs=3", "--set train..epochs=3: give key=value"},
      {".=3", "--set .=3: give key=value"},
      {"train=3", "--set train=3: train: must be a map of settings, not '3'"},
      {"name.x=3", "--set name.x=3: name: must be text, not a map"},
      {"train=[1", "--set train=[1:1: not valid YAML"},
  };
  for (const auto& [setting, expected] : wrong) {
    const auto job = load_job(file, {setting});
    ASSERT_FALSE(job.ok()) << setting;
    EXPECT_EQ(job.status().message().substr(0, std::string_view(expected).size()), expected);
  }
}

TEST(Job, what_single_fields_cannot_tell_is_checked) {
  EXPECT_TRUE(contains(error_of(job_from_text("name: x", "j")), "data.train: missing"));
  EXPECT_TRUE(contains(error_of(job_from_text("{name: a/b, data: {train: x}}", "j")), "cannot name a folder"));
  EXPECT_TRUE(
      contains(error_of(job_from_text("data: {generated: {nonzeros: 5, features: 2}}", "j")), "data.generated"));
  EXPECT_TRUE(contains(error_of(job_from_text("{data: {train: x}, cluster: {lost_after: 1ms}}", "j")), "cluster"));
}

TEST(Job, what_would_fail_on_every_node_is_found_before_there_are_any) {
  auto job = job_from_text("{model: {features: 100}, data: {generated: {rows: 50, features: 100, nonzeros: 3}}}", "j");
  ASSERT_TRUE(job.ok()) << error_of(job);
  const auto data = open_data(*job);
  ASSERT_TRUE(data.ok());
  const JobParts parts;
  EXPECT_TRUE(check_job(*job, *data, parts).ok());
  job->model.features = 3;
  EXPECT_TRUE(contains(check_job(*job, *data, parts).message(), "data.train: the data has key"));
  job->model.features = 100;
  job->train.optimizer.type = "sgdd";
  EXPECT_TRUE(contains(check_job(*job, *data, parts).message(), "did you mean 'sgd'"));
  job->model.type = "linea";
  EXPECT_TRUE(contains(check_job(*job, *data, parts).message(), "there is no model 'linea'"));
}

TEST(Job, every_kind_of_generated_data_can_be_trained_on_by_its_model) {
  const std::pair<const char*, const char*> pairs[] = {
      {"clicks", "{type: hinge, features: 90}"},
      {"regression", "{type: linear, features: 90}"},
      {"classes", "{type: softmax, classes: 5, features: 90}"},
      {"fm", "{type: ffm, fields: 3, features: 90}"},
      {"ratings", "{type: mf, features: 90}"},
  };
  for (const auto& [kind, model] : pairs) {
    const auto job = job_from_text(
        fmt::format(
            "{{model: {}, data: {{generated: {{kind: {}, rows: 50, test_rows: 5, features: 90, nonzeros: 3}}}}}}",
            model, kind),
        "j");
    ASSERT_TRUE(job.ok()) << error_of(job);
    const auto data = open_data(*job);
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(data->train.rows(), 50u);
    EXPECT_EQ(data->test.rows(), 5u);
    const Status checked = check_job(*job, *data, JobParts());
    EXPECT_TRUE(checked.ok()) << kind << ": " << checked.message();
  }
}

TEST(Job, generated_data_whose_settings_do_not_go_together_is_refused) {
  const auto refusal = [](const char* settings) {
    return error_of(job_from_text(fmt::format("data: {{generated: {{{}}}}}", settings), "j"));
  };
  EXPECT_TRUE(contains(refusal("kind: ratings, features: 10, users: 10"), "leave no item"));
  EXPECT_TRUE(contains(refusal("kind: classes, drift: 1"), "only clicks and fm can drift"));
  EXPECT_TRUE(contains(refusal("drift: 40, nonzeros: 39"), "new keys per row"));
  EXPECT_TRUE(contains(refusal("drift: 1, window: 5, nonzeros: 39"), "live at a time"));
}

TEST(Job, data_without_rows_is_refused) {
  const TempDir dir;
  JobConfig job;
  job.data.train = dir.write("a.svm", "# only this\n");
  const auto data = open_data(job);
  ASSERT_FALSE(data.ok());
  EXPECT_TRUE(contains(data.status().message(), "a.svm")) << data.status().message();
}

}  // namespace
}  // namespace talweg
