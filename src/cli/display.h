// What a person sees of a running job: a line that is rewritten on a terminal, lines now and then elsewhere, and a
// table at the end.
#pragma once

#include <string>
#include <string_view>

#include "train/node.h"

namespace talweg {

std::string human_count(double n);                              // 1.53M
std::string human_bytes(double n);                              // 1.53 GB
std::string measure_text(std::string_view name, double value);  // AUC 0.7812
// Of a stream, whose end nobody knows, it tells the steps and rows so far.
std::string progress_line(const Progress& progress);
// What is zero because it cannot happen under the job's settings is left out; report.json has everything.
std::string closing_table(const JobConfig& job, const JobResult& result, const std::string& model_path);

class Display {
 public:
  explicit Display(bool quiet);
  void show(const Progress& progress);
  void epoch(const Progress& progress);
  void end();  // leaves the cursor on a line of its own

 private:
  bool quiet_, terminal_, line_open_ = false;
  double shown_at_ = -1;
};

}  // namespace talweg
