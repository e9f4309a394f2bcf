#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <echopipe/base/error.h>
#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/mutex.h>
#include <echopipe/echo/decision_log.h>

namespace echopipe::internal {

/// Reads one. Throws what DecisionLog::FromBytes() does, kNotFound, kIo and kLimitExceeded.
DecisionLog LoadDecisionLog(const std::string& path);

/// Keeps a run's decisions in a file.
///
/// Buffering  What has been added since the last Write().
/// Errors     Those of a write, again at each later one; the file is a whole log up to there.
/// Threads    Add() never waits for the disk; each method by any thread.
class DecisionLogFile {
 public:
  /// Begins the file at once, with what it says already about the draws before `draw`. Throws
  /// kInvalidArgument if there is another pipeline's log that is to be gone on from, or no log at
  /// all (it is left alone), and what ReplaceFile() throws.
  DecisionLogFile(std::string path, uint64_t fingerprint, uint64_t draw);

  void Add(Decision decision);
  /// All that has been added, if it has come to a page.
  void WriteIfMuch();
  void Write();
  /// The same, and so that a power failure does not lose it.
  void Sync();

 private:
  bool Append(std::string_view bytes) ECHOPIPE_REQUIRES(file_mutex_);
  void Check(bool done) ECHOPIPE_REQUIRES(file_mutex_);

  const std::string path_;
  Mutex mutex_;
  std::optional<DecisionLogWriter> writer_ ECHOPIPE_GUARDED_BY(mutex_);
  Mutex file_mutex_;  // taken first
  std::unique_ptr<FileDescriptor> file_ ECHOPIPE_GUARDED_BY(file_mutex_);
  int64_t size_ ECHOPIPE_GUARDED_BY(file_mutex_) = 0;
  std::optional<Error> error_ ECHOPIPE_GUARDED_BY(file_mutex_);
};

}  // namespace echopipe::internal
