#include "base/config.h"

#include <gtest/gtest.h>

namespace talweg {

enum class Sync { kBsp, kAsp, kSsp };
template <>
struct Choices<Sync> {
  static constexpr std::string_view names[] = {"bsp", "asp", "ssp"};
};

namespace {

struct Target {
  double auc = 0.5;
  std::optional<int64_t> step;
  template <class Fields>
  void fields(Fields& f) {
    f("auc", auc, "stop at this", between(0, 1));
    f("step", step, "stop at this step", at_least(1));
  }
};

struct Job {
  int64_t epochs = 1;
  uint16_t port = 0;
  double rate = 0.1;
  bool shuffle = true;
  std::string name = "clicks";
  Duration timeout = seconds(2);
  Sync sync = Sync::kBsp;
  std::optional<int64_t> seed;
  std::vector<int64_t> layers = {4, 2};
  std::vector<std::string> files;
  Target target;
  std::vector<Target> targets;
  template <class Fields>
  void fields(Fields& f) {
    f("epochs", epochs, "passes over the rows", between(1, 1048577));
    f("port", port, "where to listen");
    f("rate", rate, "learning rate", at_least(0));
    f("shuffle", shuffle, "another order each epoch");
    f("name", name, "of the run");
    f("timeout", timeout, "longest wait");
    f("sync", sync, "how workers wait for each other");
    f("seed", seed, "of all randomness");
    f("layers", layers, "widths", at_least(1));
    f("files", files, "inputs");
    f("target", target, "when to stop");
    f("targets", targets, "what to report");
  }
};

struct Report {
  std::vector<Target> targets = {{.auc = 0.5, .step = 3}, {.auc = 0.25, .step = std::nullopt}};
  template <class Fields>
  void fields(Fields& f) {
    f("targets", targets, "what to report");
  }
};

Result<Job> read(const std::string& text) { return config_from_text<Job>(text, "job.yaml"); }

std::string failure(const std::string& text) {
  const Result<Job> job = read(text);
  if (job.ok()) return "was read";
  EXPECT_EQ(job.status().code(), Code::kInvalid);
  return job.status().message();
}

TEST(Config, what_is_not_given_keeps_its_default) {
  const Result<Job> job = read("epochs: 3\n");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->epochs, 3);
  EXPECT_EQ(job->rate, 0.1);
  EXPECT_EQ(job->layers, (std::vector<int64_t>{4, 2}));
  EXPECT_FALSE(job->seed.has_value());
  EXPECT_TRUE(read("").ok());
  EXPECT_TRUE(read("target:\n").ok());
}

TEST(Config, every_kind_of_field_is_read) {
  const Result<Job> job = read(
      "{epochs: 3, port: 65535, rate: 2.5e-3, shuffle: false, name: two words, timeout: 150ms, sync: ssp, seed: 7,\n"
      " layers: [8], files: [a, b], target: {auc: 0.75, step: 9}, targets: [{auc: 0.6}, {step: 2}]}");
  ASSERT_TRUE(job.ok()) << job.status().text();
  EXPECT_EQ(job->epochs, 3);
  EXPECT_EQ(job->port, 65535);
  EXPECT_EQ(job->rate, 2.5e-3);
  EXPECT_FALSE(job->shuffle);
  EXPECT_EQ(job->name, "two words");
  EXPECT_EQ(job->timeout, milliseconds(150));
  EXPECT_EQ(job->sync, Sync::kSsp);
  EXPECT_EQ(job->seed, 7);
  EXPECT_EQ(job->layers, std::vector<int64_t>{8});
  EXPECT_EQ(job->files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job->target.auc, 0.75);
  EXPECT_EQ(job->target.step, 9);
  ASSERT_EQ(job->targets.size(), 2u);
  EXPECT_EQ(job->targets[0].auc, 0.6);
  EXPECT_EQ(job->targets[1].step, 2);
}

TEST(Config, an_unknown_key_is_told_with_the_nearest_valid_one) {
  EXPECT_EQ(failure("name: x\nepoch: 3\n"), "job.yaml:2: epoch: unknown key; did you mean 'epochs'?");
  EXPECT_EQ(failure("target:\n  auk: 1\n"), "job.yaml:2: target.auk: unknown key; did you mean 'auc'?");
  EXPECT_EQ(failure("target:\n  momentum: 1\n"), "job.yaml:2: target.momentum: unknown key; valid here: auc, step");
  EXPECT_EQ(failure("target: {}\n? [a]\n: b\n").substr(0, 32), "job.yaml:2: a list: unknown key;");
}

TEST(Config, a_key_given_twice_is_told) {
  EXPECT_EQ(failure("epochs: 1\nrate: 1\nepochs: 2\n"), "job.yaml:3: epochs: is given twice");
}

TEST(Config, a_wrong_type_is_told_with_what_stands_there) {
  EXPECT_EQ(failure("\nepochs: many"), "job.yaml:2: epochs: must be a whole number, not 'many'");
  EXPECT_EQ(failure("epochs: 1.5"), "job.yaml:1: epochs: must be a whole number, not '1.5'");
  EXPECT_EQ(failure("epochs: [1]"), "job.yaml:1: epochs: must be a whole number, not a list");
  EXPECT_EQ(failure("epochs: 99999999999999999999"),
            "job.yaml:1: epochs: must be a whole number, not '99999999999999999999'");
  EXPECT_EQ(failure("seed:"), "job.yaml:1: seed: must be a whole number, not nothing");
  EXPECT_EQ(failure("rate: fast"), "job.yaml:1: rate: must be a number, not 'fast'");
  EXPECT_EQ(failure("rate: .nan"), "job.yaml:1: rate: must be a number, not '.nan'");
  EXPECT_EQ(failure("shuffle: 2"), "job.yaml:1: shuffle: must be true or false, not '2'");
  EXPECT_EQ(failure("name: {a: b}"), "job.yaml:1: name: must be text, not a map");
  EXPECT_EQ(failure("layers: 3"), "job.yaml:1: layers: must be a list, as [a, b]");
  EXPECT_EQ(failure("target: 0.7"), "job.yaml:1: target: must be a map of settings, not '0.7'");
  EXPECT_EQ(failure("- epochs"), "job.yaml:1: must be a map of settings, not a list");
}

TEST(Config, a_number_out_of_bounds_is_told_with_the_bound) {
  EXPECT_EQ(failure("epochs: 0"), "job.yaml:1: epochs: must be at least 1, not 0");
  EXPECT_EQ(failure("epochs: 1048578"), "job.yaml:1: epochs: must be at most 1048577, not 1048578");
  EXPECT_EQ(failure("rate: -0.5"), "job.yaml:1: rate: must be at least 0, not -0.5");
  EXPECT_EQ(failure("target: {auc: 1.5}"), "job.yaml:1: target.auc: must be at most 1, not 1.5");
  EXPECT_EQ(failure("target: {step: 0}"), "job.yaml:1: target.step: must be at least 1, not 0");
  EXPECT_TRUE(read("{epochs: 1048577, rate: 0, target: {auc: 1}}").ok());
}

TEST(Config, a_number_too_large_for_its_field_is_refused_and_not_cut) {
  EXPECT_EQ(failure("port: 65536"), "job.yaml:1: port: must be at most 65535, not 65536");
  EXPECT_EQ(failure("port: -1"), "job.yaml:1: port: must be at least 0, not -1");
}

TEST(Config, an_error_in_a_list_gives_the_place_in_it) {
  EXPECT_EQ(failure("layers:\n  - 1\n  - 0\n"), "job.yaml:3: layers[1]: must be at least 1, not 0");
  EXPECT_EQ(failure("files: [a, [b]]"), "job.yaml:1: files[1]: must be text, not a list");
  EXPECT_EQ(failure("targets:\n- auc: 1\n- auc: 2\n"), "job.yaml:3: targets[1].auc: must be at most 1, not 2");
  EXPECT_EQ(failure("targets:\n- acu: 1\n"), "job.yaml:2: targets[0].acu: unknown key; valid here: auc, step");
}

TEST(Config, a_word_that_is_no_choice_is_told_with_the_choices) {
  EXPECT_EQ(failure("sync: bps2"), "job.yaml:1: sync: 'bps2' is not one of its choices; valid here: bsp, asp, ssp");
  EXPECT_EQ(failure("sync: bssp"), "job.yaml:1: sync: 'bssp' is not one of its choices; did you mean 'bsp'?");
  EXPECT_EQ(failure("sync: [bsp]"), "job.yaml:1: sync: a list is not one of its choices; valid here: bsp, asp, ssp");
}

TEST(Config, a_duration_needs_its_unit) {
  EXPECT_EQ(failure("timeout: 5"),
            "job.yaml:1: timeout: '5' is not a duration: give a number and a unit, as 2s, 150ms or 10us");
  EXPECT_EQ(failure("timeout: [2s]"), "job.yaml:1: timeout: must be a duration, not a list");
  for (const char* bad : {"", "s", "5m", "-1s", "2 s", "2s ", "1e10s", "nans", "infs", "1s2ms"}) {
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
  }
  EXPECT_EQ(*parse_duration("2s"), seconds(2));
  EXPECT_EQ(*parse_duration("1.5ms"), microseconds(1500));
  EXPECT_EQ(*parse_duration("0.001us"), Duration(1));
  EXPECT_EQ(*parse_duration("0s"), Duration(0));
}

TEST(Config, a_duration_survives_the_trip_through_text) {
  for (const int64_t ns : {0l, 1l, 999l, 1000l, 1500l, 2'000'000l, 1'500'000'000l, 3'000'000'000l, 123'456'789l}) {
    EXPECT_EQ(*parse_duration(format_duration(Duration(ns))), Duration(ns));
  }
  EXPECT_EQ(format_duration(seconds(3)), "3s");
  EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(format_duration(Duration(1500)), "1.5us");
}

TEST(Config, broken_yaml_is_told_with_its_line) {
  EXPECT_EQ(failure("epochs: 1\nname: [a\n").substr(0, 32), "job.yaml:3: not valid YAML: end ");
  EXPECT_EQ(failure("epochs: 1\n\tname: a\n").substr(0, 27), "job.yaml:2: not valid YAML:");
  EXPECT_EQ(failure(std::string(100'000, '[')).substr(0, 27), "job.yaml:1: not valid YAML:");
}

TEST(Config, every_setting_survives_the_trip_through_text) {
  Job job;
  job.epochs = 17;
  job.port = 4711;
  job.rate = 1.0 / 3.0;
  job.shuffle = false;
  job.timeout = milliseconds(150);
  job.sync = Sync::kAsp;
  job.seed = -1;
  job.layers = {};
  job.target = {.auc = 1e-300, .step = 5};
  job.targets = {{.auc = 0.25, .step = 1}, {.auc = 0.125, .step = std::nullopt}};
  for (const bool explain : {false, true}) {
    const Result<Job> again = read(config_to_text(job, explain));
    ASSERT_TRUE(again.ok()) << again.status().text() << config_to_text(job, explain);
    EXPECT_EQ(config_to_text(*again), config_to_text(job));
    EXPECT_EQ(again->rate, job.rate);
    EXPECT_EQ(again->seed, -1);
    EXPECT_TRUE(again->layers.empty());
    ASSERT_EQ(again->targets.size(), 2u);
    EXPECT_EQ(again->targets[0].step, 1);
    EXPECT_FALSE(again->targets[1].step.has_value());
  }
}

TEST(Config, any_text_survives_the_trip_through_text) {
  for (const char* text : {"",         " ",    "null", "~",         "true",  "12",        "-",      "- a",
                           "a: b",     "a #b", "[x]",  "two words", "\"'\\", "a\nb\ttab", "sim(4)", "./data/a-b_c.svm",
                           "\xc3\xa9", "{",    "*a",   "&a",        "!t",    "%",         "@",      "|"}) {
    Job job;
    job.name = text;
    job.files = {text, "b"};
    const Result<Job> again = read(config_to_text(job));
    ASSERT_TRUE(again.ok()) << text << ": " << again.status().text();
    EXPECT_EQ(again->name, text);
    EXPECT_EQ(again->files, job.files);
  }
}

TEST(Config, infinity_survives_the_trip_through_text) {
  Job job;
  job.rate = INFINITY;
  const Result<Job> again = read(config_to_text(job));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again->rate, INFINITY);
}

TEST(Config, a_list_of_structs_is_written_as_a_list_of_maps) {
  EXPECT_EQ(config_to_text(Report()),
            "targets:\n"
            "  - auc: 0.5\n"
            "    step: 3\n"
            "  - auc: 0.25\n");
  EXPECT_EQ(config_to_text(Report{.targets = {}}), "targets: []\n");
}

TEST(Config, explaining_gives_every_default_and_what_it_is_for) {
  EXPECT_EQ(config_to_text(Job(), true),
            "epochs: 1                                     # passes over the rows\n"
            "port: 0                                       # where to listen\n"
            "rate: 0.1                                     # learning rate\n"
            "shuffle: true                                 # another order each epoch\n"
            "name: clicks                                  # of the run\n"
            "timeout: 2s                                   # longest wait\n"
            "sync: bsp                                     # how workers wait for each other\n"
            "# seed:                                       # not set; of all randomness\n"
            "layers: [4, 2]                                # widths\n"
            "files: []                                     # inputs\n"
            "target:                                       # when to stop\n"
            "  auc: 0.5                                    # stop at this\n"
            "  # step:                                     # not set; stop at this step\n"
            "targets: []                                   # what to report\n");
}

TEST(Config, only_a_slip_of_the_pen_is_near) {
  const std::vector<std::string> valid = {"workers", "servers", "replicas"};
  EXPECT_EQ(nearest("worker", valid), "workers");
  EXPECT_EQ(nearest("severs", valid), "servers");
  EXPECT_EQ(nearest("batch", valid), std::nullopt);
  EXPECT_EQ(nearest("", valid), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Config, a_file_that_cannot_be_read_is_told_by_name) {
  const Result<std::string> missing = read_text_file("no/such/job.yaml");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(), "cannot open no/such/job.yaml: No such file or directory");
  EXPECT_EQ(read_text_file(".").status().message(), "cannot read .: Is a directory");
}

}  // namespace
}  // namespace talweg
