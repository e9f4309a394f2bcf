#pragma once

#include <string>

#include <echopipe/pipeline/batch.h>

namespace echopipe::cli {

/// A file with a line "step hash" for each batch delivered, that of each run behind those of the
/// runs before.
///
/// A line is with the system when Add() returns: it outlives the program, however that ends.
class StepHashes {
 public:
  /// Makes the file if it is not there. Throws kIo.
  explicit StepHashes(std::string path);
  ~StepHashes();
  StepHashes(const StepHashes&) = delete;
  StepHashes& operator=(const StepHashes&) = delete;

  void Add(const Batch& batch);

 private:
  bool EndsInsideALine() const;
  void Write(const std::string& text) const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace echopipe::cli
