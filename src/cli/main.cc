// The `talweg` command.
#include <malloc.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "bench/bench.h"
#include "cli/commands.h"

namespace talweg {
namespace {

constexpr const char* kVersion = "0.1.0";

void add_train(CLI::App& app, int& status, const JobParts& parts) {
  auto command = std::make_shared<TrainCommand>();
  CLI::App* sub = app.add_subcommand("train", "train a job");
  sub->add_option("job", command->job_file, "the job file")->required();
  sub->add_option("--set", command->settings, "replace a setting: --set train.epochs=3");
  sub->add_option("--launch", command->launch, "where the nodes run: processes, threads, manual, simulator")
      ->check(CLI::IsMember({"processes", "threads", "manual", "simulator"}));
  sub->add_flag("--explain", command->explain, "print every setting with its meaning, and stop");
  sub->add_flag("--quiet", command->quiet, "no progress");
  sub->callback([command, &status, &parts] { status = run(*command, parts); });
}

void add_node(CLI::App& app, int& status, const JobParts& parts) {
  auto command = std::make_shared<NodeCommand>();
  CLI::App* sub = app.add_subcommand("node", "be a server or worker of a job; the coordinator tells which");
  sub->add_option("--coordinator", command->coordinator, "its address")->required();
  sub->add_option("--id", command->id, "this node's id")->required()->check(CLI::PositiveNumber);
  sub->add_option("--count", command->count, "nodes of this process, with ids from --id on")->check(CLI::Range(1, 256));
  sub->add_option("--listen", command->listen, "tcp: host:port where other nodes reach this one");
  sub->add_option("--log", command->log, "log file");
  sub->add_option("--join-timeout", command->join_timeout, "how long to look for the coordinator, as 60s");
  sub->add_option("--coordinator-id", command->coordinator_id, "its id, if the job uses a server group");
  sub->add_flag("--group", command->group, "the coordinator is a server group's");
  sub->add_flag("--own-cores", command->own_cores, "every node of the job has a core: spin while waiting");
  sub->callback([command, &status, &parts] { status = run(*command, parts); });
}

void add_group(CLI::App& app, int& status) {
  auto command = std::make_shared<GroupCommand>();
  CLI::App* sub = app.add_subcommand("group", "serve parameters to any number of jobs, until interrupted");
  sub->add_option("file", command->file, "the group's settings; none: the defaults");
  sub->add_option("--set", command->settings, "replace a setting: --set servers=2");
  sub->add_option("--log", command->log, "log file");
  sub->add_flag("--explain", command->explain, "print every setting with its meaning, and stop");
  sub->callback([command, &status] { status = run(*command); });
}

void add_simulate(CLI::App& app, int& status, const JobParts& parts) {
  auto command = std::make_shared<SimulateCommand>();
  CLI::App* sub = app.add_subcommand("simulate", "run a scenario in the simulator");
  sub->add_option("scenario", command->scenario_file, "the scenario file")->required();
  auto* seed = sub->add_option("--seed", command->seed, "run this seed only")->check(CLI::PositiveNumber);
  sub->add_option("--set", command->settings, "replace a setting: --set workload.train.epochs=3");
  auto* vary =
      sub->add_option("--vary", command->vary,
                      "compare values of a setting, over all seeds: --vary 'workload.distribute.sync=bsp,asp'");
  vary->excludes(seed);
  sub->add_option("--csv", command->csv, "write the comparison to this file too")->needs(vary);
  sub->callback([command, &status, &parts] { status = run(*command, parts); });
}

// One kind of sample data, with the options that count for it.
void add_kind(CLI::App* group, int& status, GeneratedKind kind, const char* name, const char* about) {
  auto command = std::make_shared<GenerateCommand>();
  GeneratedData& data = command->data;
  data.kind = kind;
  data.rows = 1'000'000;
  const bool ratings = kind == GeneratedKind::kRatings, fm = kind == GeneratedKind::kFm;
  CLI::App* sub = group->add_subcommand(name, about);
  const auto option = [&](const char* flag, auto& value, const char* help) {
    return sub->add_option(flag, value, help)->capture_default_str();
  };
  sub->add_option("--out", command->out, "the file")->required();
  option("--rows", data.rows, "how many");
  option("--first-row", command->first_row, "of the endless sequence that the seed gives");
  option("--seed", data.seed, "another seed, another planted model");
  option("--features", data.features, "keys are below this")->check(CLI::PositiveNumber);
  if (!ratings) option("--nonzeros", data.nonzeros, "per row")->check(CLI::PositiveNumber);
  option("--signal", data.signal,
         ratings ? "standard deviation of the users' and items' biases" : "standard deviation of the planted weights");
  if (ratings) sub->add_option("--users", data.users, "keys below this are users, the others items; else half of them");
  if (ratings || kind == GeneratedKind::kRegression) {
    option("--noise", data.noise, "standard deviation of what cannot be learned")->check(CLI::NonNegativeNumber);
  }
  if (kind == GeneratedKind::kClasses) option("--classes", data.classes, "how many");
  if (ratings || fm) {
    option("--factors", data.factors, "planted factors of a key")->check(CLI::PositiveNumber);
    option("--interaction", data.interaction, "standard deviation of what the factors add")
        ->check(CLI::NonNegativeNumber);
  }
  if (fm || kind == GeneratedKind::kClicks) {
    option("--drift", data.drift, "new keys per row, at most one per non-zero; old ones fade");
    option("--window", data.window, "with --drift: keys that live at a time");
  }
  sub->callback([command, &status] { status = run(*command); });
}

void add_generate(CLI::App& app, int& status) {
  CLI::App* group =
      app.add_subcommand("generate", "write sample data with a planted model, as LibSVM text")->require_subcommand(1);
  add_kind(group, status, GeneratedKind::kClicks, "clicks", "clicks that a logistic model explains");
  add_kind(group, status, GeneratedKind::kRegression, "regression", "numbers that a linear model explains");
  add_kind(group, status, GeneratedKind::kClasses, "classes", "classes that a softmax model explains");
  add_kind(group, status, GeneratedKind::kFm, "fm", "clicks that need pairs of keys: a factorisation machine");
  add_kind(group, status, GeneratedKind::kRatings, "ratings", "ratings of items by users: matrix factorisation");
}

void add_bench(CLI::App& app, int& status) {
  CLI::App* group = app.add_subcommand("bench", "measure this machine")->require_subcommand(1);
  static int rounds = 5;
  static bool scale = false, peers = false;
  const auto add = [&](const char* name, const char* about, int (*bench)()) {
    CLI::App* sub = group->add_subcommand(name, about);
    sub->add_option("--rounds", rounds, "interleaved repetitions; the median is shown")->check(CLI::Range(1, 1000));
    sub->callback([&status, bench] { status = bench(); });
    return sub;
  };
  add("io", "point to point over each driver, beside plain sockets", [] { return bench::io(rounds); });
  add("store", "the parameter store: one shard, one worker, over each driver", [] {
    return scale ? bench::store_scale(rounds) : bench::store(rounds);
  })->add_flag("--scale", scale, "instead: 1 to 8 shards with as many workers, a core for each");
  add("clicks", "click prediction: parsing, and training through the store beside a serial loop", [] {
    return bench::clicks(rounds, peers);
  })->add_flag("--peers", peers, "and scikit-learn and Vowpal Wabbit, once bench/peers/setup.sh has installed them");
  add("hogwild", "lock-free threads on shared weights, by their number", [] { return bench::hogwild(rounds); });
}

int talweg_main(int argc, char** argv) {
  // A write that would make a file too large fails as one to a full disk does, and is told as an error.
  ::signal(SIGXFSZ, SIG_IGN);
  // Message bodies come and go; memory given back to the system each time would be paid for with page faults.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const JobParts parts;
  int status = 0;
  CLI::App app("Talweg trains one model on many machines.");
  app.require_subcommand(1);
  add_train(app, status, parts);
  add_node(app, status, parts);
  add_group(app, status);
  add_simulate(app, status, parts);
  add_generate(app, status);
  add_bench(app, status);
  app.add_subcommand("version", "print the version")->callback([] { fmt::print("talweg {}\n", kVersion); });
  CLI11_PARSE(app, argc, argv);
  return status;
}

}  // namespace
}  // namespace talweg

int main(int argc, char** argv) {
  try {
    return talweg::talweg_main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "talweg: {}\n", e.what());
    return 1;
  }
}
