#include "cli/display.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace talweg {
namespace {

constexpr double kTerminalPause_s = 0.1, kPlainPause_s = 5;

std::string scaled(double n, double base, std::span<const char* const> units) {
  size_t i = 0;
  // What would be rounded up to 1000 is 1.00 of the next unit.
  for (; n >= base - 0.5 && i + 1 < units.size(); ++i) n /= base;
  return fmt::format("{:.{}f}{}", n, i == 0 ? 0 : n < 9.995 ? 2 : n < 99.95 ? 1 : 0, units[i]);
}

}  // namespace

std::string human_count(double n) {
  static constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  return scaled(n, 1000, kUnits);
}

std::string human_bytes(double n) {
  static constexpr std::array<const char*, 5> kUnits = {" B", " KB", " MB", " GB", " TB"};
  return scaled(n, 1000, kUnits);
}

std::string progress_line(const Progress& p) {
  std::string line = fmt::format("epoch {}/{}  step {}/{}  {} rows/s  loss {:.4f}", std::min(p.epoch + 1, p.epochs),
                                 p.epochs, p.step, p.steps, human_count(p.rows_per_second), p.loss);
  if (p.evaluation && p.evaluation->rows > 0) line += fmt::format("  AUC {:.4f}", p.evaluation->auc);
  return line + fmt::format("  moved {}  idle {:.0f}%", human_bytes(static_cast<double>(p.bytes)), 100 * p.idle_share);
}

namespace {
std::string servers_of(const DistributeConfig& distribute, size_t shards) {
  if (!distribute.group.empty()) return fmt::format("{} shards of {}", shards, distribute.group);
  return fmt::format("{} servers x {} shards", distribute.servers, distribute.shards_per_server);
}
}  // namespace

std::string closing_table(const JobConfig& job, const JobResult& result, const std::string& model_path) {
  const Progress& p = result.progress;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"job", job.name},
      {"distribution", fmt::format("{}, {} workers, {}", servers_of(job.distribute, result.shards.size()),
                                   job.distribute.workers, job.distribute.sync.text())},
      {"rows", fmt::format("{} in {:.2f} s, {} rows/s", human_count(static_cast<double>(p.rows)), p.seconds,
                           human_count(p.rows_per_second))},
      {"steps", std::to_string(p.steps)},
  };
  for (const EpochResult& epoch : result.epochs) {
    if (epoch.rows == 0) continue;
    rows.emplace_back(fmt::format("epoch {}", epoch.epoch + 1),
                      fmt::format("held-out loss {:.4f}, AUC {:.4f}", epoch.loss, epoch.auc));
  }
  rows.emplace_back("moved", fmt::format("{} in {} messages", human_bytes(static_cast<double>(p.bytes)),
                                         human_count(static_cast<double>(p.messages))));
  rows.emplace_back("workers idle", fmt::format("{:.0f}% of their time", 100 * p.idle_share));
  uint64_t parameters = 0;
  for (const TrainedTable& table : result.model.tables) parameters += table.values.size() / size_of(table.type);
  rows.emplace_back("model", fmt::format("{} parameters, checksum {:08x}", human_count(static_cast<double>(parameters)),
                                         result.model.checksum()));
  if (!model_path.empty()) rows.emplace_back("written to", model_path);

  size_t left = 0, right = 0;
  for (const auto& [name, value] : rows) left = std::max(left, name.size()), right = std::max(right, value.size());
  const std::string rule = fmt::format("+-{:-<{}}-+-{:-<{}}-+\n", "", left, "", right);
  std::string table = rule;
  for (const auto& [name, value] : rows) table += fmt::format("| {:<{}} | {:<{}} |\n", name, left, value, right);
  return table + rule;
}

Display::Display(bool quiet) : quiet_(quiet), terminal_(::isatty(STDOUT_FILENO) != 0) {}

void Display::show(const Progress& progress) {
  if (quiet_ || progress.seconds - shown_at_ < (terminal_ ? kTerminalPause_s : kPlainPause_s)) return;
  shown_at_ = progress.seconds;
  fmt::print("{}{}{}", terminal_ ? "\r" : "", progress_line(progress), terminal_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
  line_open_ = terminal_;
}

void Display::epoch(const Progress& progress) {
  if (quiet_) return;
  fmt::print("{}{}{}\n", terminal_ ? "\r" : "", progress_line(progress), terminal_ ? "\x1b[K" : "");
  std::fflush(stdout);
  line_open_ = false;
}

void Display::end() {
  if (line_open_) fmt::print("\n");
  line_open_ = false;
}

}  // namespace talweg
