// The subcommands of `talweg`. Each returns the exit status; errors have been told on standard error then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/job.h"

namespace talweg {

struct TrainCommand {
  std::string job_file;
  std::vector<std::string> settings;
  std::string launch;  // overrides the job file; "simulator" too
  bool explain = false;
  bool quiet = false;
};
int run(const TrainCommand& command, const JobParts& parts);

struct NodeCommand {
  std::string coordinator;
  uint32_t id = 1;
  uint32_t count = 1;
  std::string listen = "127.0.0.1:0";
  std::string log;
  std::string join_timeout = "60s";
  uint32_t coordinator_id = 0;
  bool group = false;
  bool own_cores = false;
};
int run(const NodeCommand& command, const JobParts& parts);

struct GroupCommand {
  std::string file;  // empty: all defaults
  std::vector<std::string> settings;
  std::string log;
  bool explain = false;
};
int run(const GroupCommand& command);

struct SimulateCommand {
  std::string scenario_file;
  uint64_t seed = 0;  // 0: all the scenario asks for
  std::vector<std::string> settings;
  std::string vary;  // "workload.distribute.sync=bsp,ssp(1),asp": run once for each value and compare
  std::string csv;   // where the comparison goes too
};
int run(const SimulateCommand& command, const JobParts& parts);

struct GenerateCommand {
  std::string out;
  uint64_t first_row = 0;
  GeneratedData data;
};
int run(const GenerateCommand& command);

}  // namespace talweg
