#include "train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace talweg {
namespace {

Time at(int64_t second) { return Time(seconds(second)); }

proto::WorkerReport report(uint64_t step, uint64_t rows, double loss_sum = 0, uint64_t loss_rows = 0) {
  proto::WorkerReport report;
  report.set_step(step);
  report.set_rows(rows);
  report.set_loss_sum(loss_sum);
  report.set_loss_rows(loss_rows);
  return report;
}

std::string evaluation(uint64_t epoch, const std::string& metrics) {
  proto::WorkerReport report;
  report.set_epoch(epoch);
  auto* part = report.mutable_evaluation();
  part->set_epoch(epoch);
  part->set_metrics(metrics);
  return report.SerializeAsString();
}

// `rows` rows of one score.
std::string scored(float score, bool positive, int rows, double loss) {
  Metrics metrics(Objective::kBinary);
  for (int i = 0; i < rows; ++i) metrics.add_score(score, positive, loss);
  return metrics.serialize();
}

TEST(ProgressBoard, adds_up_the_latest_report_of_each_worker) {
  ProgressBoard board(2, 100, 2);
  board.start(at(10));
  proto::WorkerReport first = report(5, 500, 30, 100);
  first.set_bytes_sent(7);
  first.set_bytes_received(8);
  first.set_compute_ns(1000);
  first.set_wait_ns(3000);
  ASSERT_TRUE(board.add(3, report(1, 100, 99, 1).SerializeAsString(), at(11)).ok());
  ASSERT_TRUE(board.add(3, first.SerializeAsString(), at(12)).ok());
  EXPECT_EQ(board.progress().step, 0u) << "a worker that has not reported yet has done nothing";
  ASSERT_TRUE(board.add(4, report(4, 400, 10, 100).SerializeAsString(), at(12)).ok());
  const Progress p = board.progress();
  EXPECT_EQ(p.step, 4u);
  EXPECT_EQ(p.steps, 100u);
  EXPECT_EQ(p.rows, 900u);
  EXPECT_DOUBLE_EQ(p.seconds, 2);
  EXPECT_DOUBLE_EQ(p.rows_per_second, 450);
  EXPECT_DOUBLE_EQ(p.loss, 0.2);
  EXPECT_EQ(p.bytes, 15u);
  EXPECT_DOUBLE_EQ(p.idle_share, 0.75);
  EXPECT_FALSE(p.evaluation.has_value());
}

TEST(ProgressBoard, an_epoch_is_evaluated_when_every_worker_has_told_its_part) {
  ProgressBoard board(2, 100, 2);
  auto done = board.add(1, evaluation(0, scored(-1, false, 10, 0.5)), at(1));
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  // The other worker's part of the next epoch may not be taken for its part of this one.
  done = board.add(1, evaluation(1, scored(-1, true, 10, 0.1)), at(2));
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  done = board.add(2, evaluation(0, scored(1, true, 30, 0.9)), at(3));
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(*done);
  ASSERT_EQ(board.epochs().size(), 1u);
  EXPECT_EQ(board.epochs()[0].rows, 40u);
  EXPECT_DOUBLE_EQ(board.epochs()[0].loss, 0.8);
  EXPECT_DOUBLE_EQ(board.epochs()[0].auc, 1);
  EXPECT_DOUBLE_EQ(board.progress().evaluation->auc, 1);
  const auto& summary = board.epochs()[0].summary;
  EXPECT_NE(std::find(summary.begin(), summary.end(), std::pair<std::string, double>("accuracy", 1)), summary.end());
}

TEST(ProgressBoard, a_report_that_cannot_be_read_is_an_error) {
  ProgressBoard board(1, 1, 1);
  EXPECT_EQ(board.add(1, "\xff\xff\xff", at(1)).status().code(), Code::kCorrupt);
}

TEST(ProgressBoard, metrics_that_cannot_be_read_or_merged_are_an_error_that_names_the_node) {
  ProgressBoard board(2, 1, 2);
  ASSERT_TRUE(board.add(1, evaluation(0, scored(1, true, 1, 1)), at(1)).ok());
  EXPECT_EQ(board.add(2, evaluation(0, "\xff"), at(1)).status().code(), Code::kCorrupt);
  const auto other = board.add(2, evaluation(0, Metrics(Objective::kRegression).serialize()), at(1));
  EXPECT_NE(other.status().message().find("node 2"), std::string::npos) << other.status().message();
}

TEST(ProgressBoard, an_epoch_that_the_job_does_not_have_is_an_error_and_takes_no_memory) {
  ProgressBoard board(2, 1, 1);
  EXPECT_TRUE(board.add(1, evaluation(1, scored(1, true, 1, 1)), at(1)).ok());
  EXPECT_EQ(board.add(1, evaluation(2, scored(1, true, 1, 1)), at(1)).status().code(), Code::kCorrupt);
}

TEST(ProgressBoard, the_order_in_which_parts_come_does_not_change_a_bit) {
  const std::vector<std::string> parts = {scored(1, true, 1, 1), scored(1, true, 1, 1e16), scored(1, true, 1, 1)};
  // To 1e16 alone a 1 is lost, two of them together are not.
  const auto loss_of = [&](std::vector<Peer> order) {
    ProgressBoard board(1, 1, 3);
    for (const Peer from : order) EXPECT_TRUE(board.add(from, evaluation(0, parts[from - 1]), at(1)).ok());
    return board.epochs().at(0).loss;
  };
  for (const auto& order : {std::vector<Peer>{2, 1, 3}, {3, 2, 1}, {3, 1, 2}})
    EXPECT_EQ(loss_of(order), loss_of({1, 2, 3}));
}

TEST(ProgressBoard, nothing_to_tell_is_no_division_by_zero) {
  const Progress p = ProgressBoard(1, 1, 1).progress();
  EXPECT_EQ(p.rows_per_second, 0);
  EXPECT_EQ(p.loss, 0);
  EXPECT_EQ(p.idle_share, 0);
}

}  // namespace
}  // namespace talweg
