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
  p.evaluation = EpochResult{.epoch = 0, .rows = 100, .loss = 0.5, .auc = 0.78125};
  EXPECT_NE(progress_line(p).find("  AUC 0.7812"), std::string::npos) << progress_line(p);
  p.epoch = 2;
  EXPECT_EQ(progress_line(p).find("epoch 2/2"), 0u) << "the last epoch stays the last when it is over";
}

TEST(Display, the_closing_table_is_a_rectangle_that_tells_the_model) {
  JobConfig job;
  job.name = "clicks";
  JobResult result;
  result.progress = some_progress();
  result.epochs = {{.epoch = 0, .rows = 100, .loss = 0.5, .auc = 0.75}, {.epoch = 1, .rows = 0, .loss = 0, .auc = 0.5}};
  TrainedTable table;
  table.keys = {1, 2};
  table.values.resize(8);
  result.model.tables.push_back(table);
  const std::string text = closing_table(job, result, "/runs/model");
  size_t width = text.find('\n');
  for (size_t begin = 0; begin < text.size(); begin += width + 1) {
    ASSERT_EQ(text.find('\n', begin), begin + width) << text;
  }
  const std::string checksum = fmt::format("2 parameters, checksum {:08x}", result.model.checksum());
  for (const std::string& part : {std::string("clicks"), std::string("held-out loss 0.5000, AUC 0.7500"), checksum,
                                  std::string("/runs/model"), std::string("15.3k in 2.00 s")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("epoch 2"), std::string::npos) << "an epoch without held-out rows has no line";
}

}  // namespace
}  // namespace talweg
