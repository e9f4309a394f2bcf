#pragma once

#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

/// What happened from one reading of a pipeline's figures to the next, as a line of JSON:
///
///     {"second":3,"fresh_per_s":812,"examples_per_s":1600,"factor":1.97,"runway_s":0.2,
///      "stall_share":0.01}
///
/// "second" is the later reading's, since the pipeline was opened, and so is the runway. The factor
/// is null without a fresh example.
std::string TimelineLine(const PipelineStats& last, const PipelineStats& now);

/// Writes such a line for each second of a pipeline's run, from a thread of its own.
class Timeline {
 public:
  /// `pipeline` must outlive this. Throws kIo if the file cannot be written.
  Timeline(const Pipeline& pipeline, const std::string& path);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Throws kIo if a line could not be written.
  void Check();

 private:
  void Run(const std::stop_token& stop);
  void Write(const PipelineStats& last, const PipelineStats& now);

  const Pipeline& pipeline_;
  const std::string path_;
  std::mutex mutex_;
  std::ofstream file_;  // under mutex_
  std::jthread ticker_;
};

}  // namespace echopipe::cli
