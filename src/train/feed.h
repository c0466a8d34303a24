// The coordinator's part of learning from a stream: it reads rows as they come, makes them into steps and deals each
// step's rows out to the workers that ask. Some steps are read ahead; a step is kept until every worker has asked for a
// later one, so that an answer that was lost can be given again. A step whose rows come slowly is dealt out short.
#pragma once

#include <deque>
#include <memory>

#include "data/dataset.h"
#include "data/stream.h"
#include "io/rpc.h"
#include "train/job.h"

namespace talweg::proto {
class FeedReply;
class FeedRequest;
}  // namespace talweg::proto

namespace talweg {

// The rows of a feed's answer. Its lengths are not trusted.
Result<Dataset> unpack_rows(const proto::FeedReply& head, Bytes body);

class RowFeed {
 public:
  // Opens its service: make it before the node can be reached.
  RowFeed(Io& io, const JobConfig& job);

  // Opens the stream and reads it to its end. A failure is the job's.
  Task<Status> run();
  // Answers workers for as long as the node runs.
  void start(TaskSet& tasks);
  // What has come is all: the job ends in order when it is used up.
  void end_here() { interrupted_ = true; }

 private:
  // The rows of one step.
  struct Step {
    std::shared_ptr<const RowBlock> block;
    size_t begin = 0, end = 0;
  };
  static constexpr size_t kStepsAhead = 4;
  // A step that is not full goes out when its first row has waited for this long.
  static constexpr Duration kPatience = seconds(1);

  Task<Status> read_some();
  void cut_steps();
  Task<> on_request(Request request);
  Task<Status> wait_for(int64_t step);
  void forget_steps();

  Io& io_;
  const JobConfig& job_;
  std::unique_ptr<RowStream> stream_;
  RowBlock coming_;         // not yet cut into steps
  Time first_came_{};       // of those
  Time last_came_{};        // of all
  std::deque<Step> steps_;  // from first_step_ on
  int64_t first_step_ = 0;
  std::vector<int64_t> asked_;  // by rank: the latest step it asked for
  bool ended_ = false;
  bool interrupted_ = false;
  Status failure_;
  Signal changed_;
};

}  // namespace talweg
