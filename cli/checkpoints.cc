#include <utility>

#include <echopipe/cli/checkpoints.h>

namespace echopipe::cli {

Checkpoints::Checkpoints(const Pipeline& pipeline, CheckpointPlan plan)
    : pipeline_(pipeline), plan_(std::move(plan)) {}

void Checkpoints::AtStart() {
  if (!plan_.file.empty()) Write();
}

void Checkpoints::AfterStep(uint64_t steps) {
  if (!plan_.file.empty() && steps % plan_.every == 0) Write();
}

void Checkpoints::AtEnd() {
  if (!plan_.file.empty()) Write();
}

void Checkpoints::Write() {
  const PipelineCheckpoint checkpoint = pipeline_.Checkpoint();
  if (checkpoint.steps() == last_) return;
  checkpoint.Save(plan_.file);
  last_ = checkpoint.steps();
  ++written_;
}

}  // namespace echopipe::cli
