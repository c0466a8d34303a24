#include "cli/display.h"

#include <gtest/gtest.h>

namespace talweg {
namespace {

TEST(Display, counts_have_three_digits_and_a_unit) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1.00k");
  EXPECT_EQ(human_count(15'340), "15.3k");
  EXPECT_EQ(human_count(1'530'000), "1.53M");
  EXPECT_EQ(human_count(999.4e6), "999M");
  EXPECT_EQ(human_count(2e15), "2000T");
}

TEST(Display, rounding_never_shows_more_digits_than_a_unit_has) {
  EXPECT_EQ(human_count(9999), "10.0k");
  EXPECT_EQ(human_count(99'999), "100k");
  EXPECT_EQ(human_count(999'999), "1.00M");
  EXPECT_EQ(human_count(999.7), "1.00k");
}

TEST(Display, bytes_have_their_unit_apart) {
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(849'321), "849 KB");
  EXPECT_EQ(human_bytes(1.53e9), "1.53 GB");
}

Progress some_progress() {
  Progress p;
  p.seconds = 2;
  p.epoch = 1;
  p.epochs = 2;
  p.step = 30;
  p.steps = 40;
  p.rows = 15'340;
  p.rows_per_second = 7670;
  p.loss = 0.43219;
  p.bytes = 2'000'000;
  p.idle_share = 0.256;
  return p;
}

TEST(Display, the_progress_line_tells_where_the_job_is) {
  Progress p = some_progress();
  EXPECT_EQ(progress_line(p), "epoch 2/2  step 30/40  7.67k rows/s  loss 0.4322  moved 2.00 MB  idle 26%");
  p.evaluation = EpochResult{.epoch = 0, .rows = 100, .summary = {{"loss", 0.5}, {"auc", 0.78125}, {"ece", 0.1}}};
  EXPECT_NE(progress_line(p).find("  AUC 0.7812  moved"), std::string::npos) << progress_line(p);
  p.evaluation->summary = {{"loss", 0.5}, {"rmse", 1.5}};
  EXPECT_NE(progress_line(p).find("  RMSE 1.5000  moved"), std::string::npos) << progress_line(p);
  p.epoch = 2;
  EXPECT_EQ(progress_line(p).find("epoch 2/2"), 0u) << "the last epoch stays the last when it is over";
}

TEST(Display, the_progress_of_a_stream_tells_what_has_come) {
  Progress p = some_progress();
  p.steps = 0;
  EXPECT_EQ(progress_line(p), "step 30  15.3k rows  7.67k rows/s  loss 0.4322  moved 2.00 MB  idle 26%");
}

JobResult some_result() {
  JobResult result;
  result.progress = some_progress();
  result.epochs = {{.epoch = 0, .rows = 100, .summary = {{"loss", 0.5}, {"auc", 0.75}, {"accuracy", 0.9}}},
                   {.epoch = 1, .rows = 0, .seconds = 1.5}};
  TrainedTable table;
  table.keys = {1, 2};
  table.values.resize(8);
  result.model.tables.push_back(table);
  result.workers.resize(2);
  result.workers[0].set_bytes_pushed(3'000'000);
  result.workers[1].set_bytes_pulled(5000);
  proto::TableStats& stats = *result.shards.emplace_back().add_tables();
  stats.set_name("weights");
  stats.set_rows(1200);
  stats.set_bytes(96'000);
  stats.set_pulls(30);
  stats.set_pushes(30);
  stats.set_keys_received(5);
  stats.set_lists_known(45);
  stats.add_staleness(60);
  return result;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Display, the_closing_table_is_a_rectangle_that_tells_the_model) {
  JobConfig job;
  job.name = "clicks";
  const JobResult result = some_result();
  const std::string text = closing_table(job, result, "/runs/model");
  size_t width = text.find('\n');
  for (size_t begin = 0; begin < text.size(); begin += width + 1) {
    ASSERT_EQ(text.find('\n', begin), begin + width) << text;
  }
  expect_parts(text, {"clicks", "held-out loss 0.5000, AUC 0.7500, accuracy 0.9000", "/runs/model", "15.3k in 2.00 s",
                      fmt::format("2 parameters, checksum {:08x}", result.model.checksum()),
                      "workers pushed 3.00 MB, pulled 5.00 KB", "45 of 60 went as a hash",
                      "| table weights | 1.20k rows, 96.0 KB"});
  for (const char* absent : {"epoch 2", "staleness", "late", "not finite", "target", "expired", "push every"}) {
    EXPECT_EQ(text.find(absent), std::string::npos) << absent << " has nothing to tell here\n" << text;
  }
}

TEST(Display, the_closing_table_tells_what_a_loose_strategy_cost) {
  JobConfig job;
  job.distribute.sync = Sync::ssp(3);
  job.distribute.dense_sync = Sync::bsp();
  job.distribute.push_every = 4;
  job.distribute.rate_by_staleness = true;
  JobResult result = some_result();
  proto::TableStats& stats = *result.shards[0].mutable_tables(0);
  stats.add_staleness(30);
  stats.add_staleness(10);
  stats.set_widest_gap(3);
  stats.set_late(7);
  stats.set_zeroed(2);
  stats.set_expired(11);
  result.workers[0].set_steps_skipped(5);
  expect_parts(closing_table(job, result, ""),
               {"ssp(3) (dense tables bsp), push every 4, fetch every 1, rate by staleness",
                "mean 0.50, largest 2 updates missed; workers up to 3 steps apart", "7 pushes dropped, 5 steps skipped",
                "2 gradients were made zero", "11 expired"});
}

TEST(Display, the_closing_table_tells_when_the_target_was_reached) {
  JobConfig job;
  job.train.target.emplace().auc = 0.7;
  JobResult result = some_result();
  expect_parts(closing_table(job, result, ""), {"not reached"});
  result.reached_target = true;
  expect_parts(closing_table(job, result, ""), {"reached after epoch 2 (1.50 s)"});
}

TEST(Display, of_many_epochs_the_last_ones_are_shown) {
  JobResult result = some_result();
  result.epochs.clear();
  for (uint64_t i = 0; i < 30; ++i) result.epochs.push_back({.epoch = i, .rows = 1, .summary = {{"loss", 1.0}}});
  const std::string text = closing_table(JobConfig{}, result, "");
  expect_parts(text, {"epoch 21", "epoch 30"});
  EXPECT_EQ(text.find("epoch 20"), std::string::npos) << text;
}

}  // namespace
}  // namespace talweg
