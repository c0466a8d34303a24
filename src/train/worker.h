// A worker's part of a job: the training loop, the same for every strategy.
#pragma once

#include "cluster/member.h"
#include "train/job.h"

namespace talweg {

// What the coordinator decides after an evaluation that reached the job's target.
constexpr std::string_view kEnough = "enough";

// Trains to the end of the job. `data` must be the same on all workers.
Task<Status> run_worker(Io& io, Member& member, const JobConfig& job, uint32_t rank, TrainingData data,
                        const JobParts& parts);

}  // namespace talweg
