#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

/// Where checkpoints go, and how often.
struct CheckpointPlan {
  std::string file = {};  ///< empty: none are written
  uint64_t every = 0;     ///< steps of the run
};

/// Keeps a file at a pipeline's place.
class Checkpoints {
 public:
  /// `pipeline` must outlive this.
  Checkpoints(const Pipeline& pipeline, CheckpointPlan plan);

  /// Before the first step, so that a path that cannot be written is told at once.
  void AtStart();
  /// The consumer has done with so many steps of the run. Throws what Save() throws.
  void AfterStep(uint64_t steps);
  /// No step will follow.
  void AtEnd();
  uint64_t written() const { return written_; }

 private:
  void Write();

  const Pipeline& pipeline_;
  CheckpointPlan plan_;
  std::optional<uint64_t> last_;  // steps of the one in the file
  uint64_t written_ = 0;
};

}  // namespace echopipe::cli
