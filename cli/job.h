#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <echopipe/base/clock.h>
#include <echopipe/base/error.h>
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
};

struct JobResult {
  enum class End { kData, kMaxBatches, kInterrupted, kFailed };

  PipelineStats stats = {};
  int threads = 0;
  End end = End::kData;
  std::optional<Error> error = {};  ///< set if it failed
  bool too_many_bad_examples = false;
  std::string hash = {};  ///< empty if not asked for
};

/// Runs it to its end, telling the progress. What Open() throws passes through; what Next() throws
/// is in the result.
JobResult RunJob(const Job& job, Console& console, const std::stop_token& stop);

}  // namespace echopipe::cli
