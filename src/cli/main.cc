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
  sub->add_flag("--own-cores", command->own_cores, "every node of the job has a core: spin while waiting");
  sub->callback([command, &status, &parts] { status = run(*command, parts); });
}

void add_simulate(CLI::App& app, int& status, const JobParts& parts) {
  auto command = std::make_shared<SimulateCommand>();
  CLI::App* sub = app.add_subcommand("simulate", "run a scenario in the simulator");
  sub->add_option("scenario", command->scenario_file, "the scenario file")->required();
  sub->add_option("--seed", command->seed, "run this seed only")->check(CLI::PositiveNumber);
  sub->callback([command, &status, &parts] { status = run(*command, parts); });
}

void add_generate(CLI::App& app, int& status) {
  auto command = std::make_shared<GenerateCommand>();
  CLI::App* group = app.add_subcommand("generate", "write sample data")->require_subcommand(1);
  CLI::App* sub = group->add_subcommand("clicks", "clicks with a planted logistic model, as LibSVM text");
  sub->add_option("--out", command->out, "the file")->required();
  sub->add_option("--rows", command->rows, "how many");
  sub->add_option("--first-row", command->first_row, "of the endless sequence that the seed gives");
  sub->add_option("--seed", command->seed, "another seed, another planted model");
  sub->add_option("--features", command->features, "keys are below this");
  sub->add_option("--nonzeros", command->nonzeros, "per row");
  sub->add_option("--signal", command->signal, "standard deviation of the planted weights");
  sub->callback([command, &status] { status = run(*command); });
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
