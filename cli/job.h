#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <echopipe/base/clock.h>
#include <echopipe/base/error.h>
#include <echopipe/cli/checkpoints.h>
#include <echopipe/cli/console.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

/// A run of a pipeline against a consumer that takes a set time for each batch.
struct Job {
  PipelineSpec spec = {};
  RuntimeOptions runtime = {};
  Rank rank = {};
  ShapeOptions link = {};  ///< the records come over this link, if it limits anything
  Clock::Duration consumer_time{0};
  std::optional<uint64_t> max_batches = {};
  bool hash = false;
  std::string step_hashes = {};  ///< a file for the hash of each step; empty: none
  std::string timeline = {};     ///< a file for the figures of each second; empty: none
  CheckpointPlan checkpoints = {};
  std::string resume = {};  ///< goes on from this checkpoint; empty: begins anew
  bool or_start = false;    ///< begins anew too where that file is not
};

struct JobResult {
  enum class End { kData, kMaxBatches, kInterrupted, kFailed };

  PipelineStats stats = {};
  int threads = 0;
  uint64_t first_step = 0;   ///< of this run; more than 0 if it went on from a checkpoint
  uint64_t checkpoints = 0;  ///< written
  End end = End::kData;
  std::optional<Error> error = {};  ///< set if it failed
  bool too_many_bad_examples = false;
  std::string hash = {};  ///< empty if not asked for
};

/// Runs it to its end, telling the progress. What Open() and Restore() throw, and what loading the
/// checkpoint does, passes through; what Next() throws, and what writing a checkpoint does, is in
/// the result.
JobResult RunJob(const Job& job, Console& console, const std::stop_token& stop);

}  // namespace echopipe::cli
