#include "cli/display.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "store/table_clock.h"
#include "train/report.h"

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

std::string measure_text(std::string_view name, double value) {
  const std::string_view shown = name == "auc" ? "AUC" : name == "rmse" ? "RMSE" : name == "ece" ? "ECE" : name;
  return fmt::format("{} {:.4f}", shown, value);
}

std::string progress_line(const Progress& p) {
  std::string line;
  if (p.steps > 0) {
    line = fmt::format("epoch {}/{}  step {}/{}", std::min(p.epoch + 1, p.epochs), p.epochs, p.step, p.steps);
  } else {
    line = fmt::format("step {}  {} rows", p.step, human_count(static_cast<double>(p.rows)));
  }
  line += fmt::format("  {} rows/s  loss {:.4f}", human_count(p.rows_per_second), p.loss);
  // Behind the loss, the first measure is the one that such models are compared by.
  if (p.evaluation && p.evaluation->summary.size() > 1) {
    const auto& [name, value] = p.evaluation->summary[1];
    line += "  " + measure_text(name, value);
  }
  return line + fmt::format("  moved {}  idle {:.0f}%", human_bytes(static_cast<double>(p.bytes)), 100 * p.idle_share);
}

namespace {

using TableRows = std::vector<std::pair<std::string, std::string>>;

// A longer list hides what stands below it.
constexpr size_t kMostEpochsShown = 10;

std::string count_text(uint64_t n) { return human_count(static_cast<double>(n)); }
std::string bytes_text(uint64_t n) { return human_bytes(static_cast<double>(n)); }

std::string servers_text(const DistributeConfig& d, size_t shards) {
  if (!d.group.empty()) return fmt::format("{} shards of {}", shards, d.group);
  return fmt::format("{} servers x {} shards", d.servers, d.shards_per_server);
}

std::string distribution_text(const DistributeConfig& d, size_t shards) {
  std::string text = fmt::format("{}, {} workers, {}", servers_text(d, shards), d.workers, d.sync.text());
  if (d.dense_sync) text += fmt::format(" (dense tables {})", d.dense_sync->text());
  if (d.push_every > 1 || d.fetch_every > 1) {
    text += fmt::format(", push every {}, fetch every {}", d.push_every, d.fetch_every);
  }
  return d.rate_by_staleness ? text + ", rate by staleness" : text;
}

void add_epochs(const JobConfig& job, const JobResult& result, TableRows& rows) {
  const size_t first = result.epochs.size() > kMostEpochsShown ? result.epochs.size() - kMostEpochsShown : 0;
  for (size_t i = first; i < result.epochs.size(); ++i) {
    const EpochResult& epoch = result.epochs[i];
    if (epoch.rows == 0) continue;
    std::string text = "held-out";
    for (const auto& [name, value] : epoch.summary) text += (text.size() > 8 ? ", " : " ") + measure_text(name, value);
    rows.emplace_back(fmt::format("{} {}", job.data.streams() ? "evaluation" : "epoch", epoch.epoch + 1), text);
  }
  if (!job.train.target) return;
  if (!result.reached_target || result.epochs.empty()) return rows.emplace_back("target", "not reached"), void();
  const EpochResult& last = result.epochs.back();
  rows.emplace_back("target", fmt::format("reached after {} {} ({:.2f} s)", job.data.streams() ? "evaluation" : "epoch",
                                          last.epoch + 1, last.seconds));
}

void add_traffic(const JobResult& result, const std::vector<TableTotals>& tables, TableRows& rows) {
  uint64_t pushed = 0, pulled = 0, lists = 0, known = 0;
  for (const auto& worker : result.workers) pushed += worker.bytes_pushed(), pulled += worker.bytes_pulled();
  for (const TableTotals& table : tables) lists += table.key_lists, known += table.lists_known;
  rows.emplace_back("moved",
                    fmt::format("{} in {} messages; workers pushed {}, pulled {}", bytes_text(result.progress.bytes),
                                count_text(result.progress.messages), bytes_text(pushed), bytes_text(pulled)));
  if (lists > 0) {
    rows.emplace_back("key lists", fmt::format("{} of {} went as a hash", count_text(known), count_text(lists)));
  }
}

// What a strategy other than bsp costs: nothing is said where nothing happened.
void add_staleness(const JobResult& result, const std::vector<TableTotals>& tables, TableRows& rows) {
  const TableTotals* worst = nullptr;
  uint64_t late = 0, skipped = 0, zeroed = 0;
  int64_t gap = 0;
  for (const TableTotals& table : tables) {
    late += table.late, zeroed += table.zeroed, gap = std::max(gap, table.widest_gap);
    if (worst == nullptr || table.mean_staleness() > worst->mean_staleness()) worst = &table;
  }
  for (const auto& worker : result.workers) skipped += worker.steps_skipped();
  if (gap > 0 || (worst != nullptr && worst->largest_staleness() > 0)) {
    const bool beyond = worst->largest_staleness() + 1 == SyncMeter::kStaleness;
    rows.emplace_back("staleness",
                      fmt::format("mean {:.2f}, largest {}{} updates missed; workers up to {} steps apart",
                                  worst->mean_staleness(), worst->largest_staleness(), beyond ? " or more" : "", gap));
  }
  if (late + skipped > 0) {
    rows.emplace_back("late",
                      fmt::format("{} pushes dropped, {} steps skipped", count_text(late), count_text(skipped)));
  }
  if (zeroed > 0) rows.emplace_back("not finite", fmt::format("{} gradients were made zero", count_text(zeroed)));
}

void add_tables(const std::vector<TableTotals>& tables, TableRows& rows) {
  for (const TableTotals& table : tables) {
    std::string text = fmt::format("{} {}, {}", count_text(table.rows), table.key_lists > 0 ? "rows" : "values",
                                   bytes_text(table.bytes));
    if (table.expired > 0) text += fmt::format(", {} expired", count_text(table.expired));
    if (table.not_admitted > 0)
      text += fmt::format(", {} touches of keys without a row", count_text(table.not_admitted));
    rows.emplace_back("table " + table.name, text);
  }
}

std::string boxed(const TableRows& rows) {
  size_t left = 0, right = 0;
  for (const auto& [name, value] : rows) left = std::max(left, name.size()), right = std::max(right, value.size());
  const std::string rule = fmt::format("+-{:-<{}}-+-{:-<{}}-+\n", "", left, "", right);
  std::string table = rule;
  for (const auto& [name, value] : rows) table += fmt::format("| {:<{}} | {:<{}} |\n", name, left, value, right);
  return table + rule;
}

}  // namespace

std::string closing_table(const JobConfig& job, const JobResult& result, const std::string& model_path) {
  const Progress& p = result.progress;
  const std::vector<TableTotals> tables = table_totals(result.shards);
  TableRows rows = {
      {"job", job.name},
      {"distribution", distribution_text(job.distribute, result.shards.size())},
      {"rows", fmt::format("{} in {:.2f} s, {} rows/s", count_text(p.rows), p.seconds, human_count(p.rows_per_second))},
      {"steps", std::to_string(p.step)},
  };
  add_epochs(job, result, rows);
  add_traffic(result, tables, rows);
  add_staleness(result, tables, rows);
  rows.emplace_back("workers idle", fmt::format("{:.0f}% of their time", 100 * p.idle_share));
  add_tables(tables, rows);
  uint64_t parameters = 0;
  for (const TrainedTable& table : result.model.tables) parameters += table.values.size() / size_of(table.type);
  rows.emplace_back("model",
                    fmt::format("{} parameters, checksum {:08x}", count_text(parameters), result.model.checksum()));
  if (!model_path.empty()) rows.emplace_back("written to", model_path);
  return boxed(rows);
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
