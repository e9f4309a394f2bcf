#pragma once

#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

/// Writes a line of JSON for each second of a pipeline's run, from a thread of its own:
///
///     {"second":3,"fresh_per_s":812,"examples_per_s":1600,"factor":1.97,"runway_s":0.2,
///      "stall_share":0.01}
///
/// The factor is null in a second without a fresh example.
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
