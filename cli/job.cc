#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/job.h>
#include <echopipe/cli/numbers.h>
#include <echopipe/cli/progress.h>
#include <echopipe/cli/step_hashes.h>
#include <echopipe/cli/timeline.h>
#include <echopipe/pipeline/graph/cpus.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

// Of those that the library tells of, one line each; likewise of partial images.
constexpr uint64_t kBadExamplesTold = 20;

// What the library logs, as far as a person wants to read it.
std::function<void(std::string_view)> LogTo(Console& console) {
  return [&console, bad = uint64_t{0}, partial = uint64_t{0}](std::string_view message) mutable {
    const bool is_bad = message.starts_with("skipped ") || message.starts_with("replaced ");
    if (is_bad && ++bad > kBadExamplesTold) return;
    if (message.starts_with("truncated, ") && ++partial > kBadExamplesTold) return;
    console.Line(message);
  };
}

void TellOfTheRest(const PipelineStats& stats, Console& console) {
  if (stats.bad_count > kBadExamplesTold) {
    console.Line("... and " + WithCommas(stats.bad_count - kBadExamplesTold) +
                 " more bad examples; --json names the first 1,000");
  }
  if (stats.partial_images > kBadExamplesTold) {
    console.Line("... and " + WithCommas(stats.partial_images - kBadExamplesTold) +
                 " more that are truncated; verify names them all");
  }
}

std::shared_ptr<Storage> StorageFor(const Job& job, std::shared_ptr<Clock> clock) {
  std::shared_ptr<Storage> storage = MakeStorage(job.runtime.reads_in_flight, job.runtime.http);
  const ShapeOptions& link = job.link;
  if (link.bytes_per_second == 0 && link.latency.count() == 0 && link.jitter.count() == 0) {
    return storage;
  }
  return MakeShapedStorage(std::move(storage), link, std::move(clock));
}

// A run that begins anew would overwrite another's place.
void CheckNothingIsLost(const Job& job) {
  const std::string& file = job.checkpoints.file;
  if (file.empty() || !job.resume.empty() || !std::filesystem::exists(file)) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "the file is there already: go on from it with --resume, or remove it",
               .where = "--checkpoint " + file});
}

// What to go on from, if that is asked for and, with --or-start, there.
std::optional<PipelineCheckpoint> LoadStart(const Job& job, Console& console) {
  if (job.resume.empty()) return std::nullopt;
  try {
    PipelineCheckpoint start = PipelineCheckpoint::Load(job.resume);
    console.Line("going on from " + job.resume + " with step " + WithCommas(start.steps()));
    return start;
  } catch (const Error& error) {
    if (!job.or_start || error.code() != ErrorCode::kNotFound) throw;
    console.Line("no " + job.resume + " yet: beginning anew");
    return std::nullopt;
  }
}

std::unique_ptr<Pipeline> Restore(const Job& job, const PipelineCheckpoint& start,
                                  const RuntimeOptions& options) {
  try {
    return Pipeline::Restore(job.spec, start, options, job.rank);
  } catch (const Error& error) {
    // The spec and the flags are valid by themselves: these two do not go together.
    if (error.code() == ErrorCode::kInvalidArgument) throw error.Within(job.resume);
    throw;
  }
}

std::unique_ptr<Pipeline> Open(const Job& job, const std::optional<PipelineCheckpoint>& start,
                               Console& console) {
  RuntimeOptions options = job.runtime;
  options.clock = MakeSteadyClock();
  options.storage = StorageFor(job, options.clock);
  options.log = LogTo(console);
  return start ? Restore(job, *start, options) : Pipeline::Open(job.spec, options, job.rank);
}

// Returns at `time`, or when asked to stop.
void WaitUntil(std::chrono::steady_clock::time_point time, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, std::move(stop), time, [] { return false; });
}

/// What looks at each batch.
struct Watchers {
  Progress& progress;
  BatchHash* hash;          ///< null if not asked for
  StepHashes* step_hashes;  ///< the same
  Checkpoints& checkpoints;
};

JobResult::End Consume(const Job& job, Pipeline& pipeline, const Watchers& watchers,
                       const std::stop_token& stop) {
  uint64_t batches = 0;
  while (std::optional<Batch> batch = pipeline.Next()) {
    const auto begin = std::chrono::steady_clock::now();
    watchers.progress.SetPlace(batch->epoch(), batch->step());
    if (watchers.hash != nullptr) watchers.hash->Add(*batch);
    // Before the checkpoint, behind which nobody would deliver it again.
    if (watchers.step_hashes != nullptr) watchers.step_hashes->Add(*batch);
    watchers.checkpoints.AfterStep(batch->step() + 1);
    batch.reset();
    if (++batches == job.max_batches) return JobResult::End::kMaxBatches;
    if (job.consumer_time.count() > 0) WaitUntil(begin + job.consumer_time, stop);
    if (stop.stop_requested()) return JobResult::End::kInterrupted;
  }
  return JobResult::End::kData;
}

JobResult::End ConsumeUntilStopped(const Job& job, Pipeline& pipeline, const Watchers& watchers,
                                   const std::stop_token& stop) {
  try {
    return Consume(job, pipeline, watchers, stop);
  } catch (const Error& error) {
    if (stop.stop_requested() && error.code() == ErrorCode::kStopped) {
      return JobResult::End::kInterrupted;
    }
    throw;
  }
}

void ConsumeAll(const Job& job, Pipeline& pipeline, Console& console, const std::stop_token& stop,
                JobResult* result) {
  Progress progress(pipeline, job.spec, console);
  BatchHash hash;
  std::optional<StepHashes> step_hashes;
  std::optional<Timeline> timeline;
  Checkpoints checkpoints(pipeline, job.checkpoints);
  try {
    if (!job.step_hashes.empty()) step_hashes.emplace(job.step_hashes);
    if (!job.timeline.empty()) timeline.emplace(pipeline, job.timeline);
    const Watchers watchers{.progress = progress,
                            .hash = job.hash ? &hash : nullptr,
                            .step_hashes = step_hashes ? &*step_hashes : nullptr,
                            .checkpoints = checkpoints};
    checkpoints.AtStart();
    result->end = ConsumeUntilStopped(job, pipeline, watchers, stop);
    checkpoints.AtEnd();
    if (timeline) timeline->Check();
  } catch (const Error& error) {
    result->end = JobResult::End::kFailed;
    result->error = error;
  }
  if (job.hash) result->hash = hash.Hex();
  result->checkpoints = checkpoints.written();
}

}  // namespace

JobResult RunJob(const Job& job, Console& console, const std::stop_token& stop) {
  job.spec.Validate();
  CheckNothingIsLost(job);
  const std::optional<PipelineCheckpoint> start = LoadStart(job, console);
  const std::unique_ptr<Pipeline> pipeline = [&] {
    // Listing a server's folders may take long, and there is nothing to lose yet.
    const std::stop_callback leave(stop, [] { std::_Exit(kInterrupted); });
    return Open(job, start, console);
  }();
  JobResult result;
  result.threads = job.runtime.threads > 0 ? job.runtime.threads : internal::AvailableCpus();
  if (start) result.first_step = start->steps();
  {
    const std::stop_callback on_stop(stop, [&] { pipeline->Stop(); });
    ConsumeAll(job, *pipeline, console, stop, &result);
  }
  result.stats = pipeline->Stats();
  TellOfTheRest(result.stats, console);
  // Else a single example over a limit is left out, so this is the limit on bad examples.
  result.too_many_bad_examples =
      result.error && result.error->code() == ErrorCode::kLimitExceeded &&
      job.spec.message().bad_examples().policy() != proto::BadExamples::FAIL;
  return result;
}

}  // namespace echopipe::cli
