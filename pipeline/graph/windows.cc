#include <string>

#include <echopipe/pipeline/graph/windows.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {
namespace {

// Items per thread that may be between two joints, so that no thread waits for a credit.
constexpr uint64_t kItemsPerThread = 4;
// A window takes memory for each of its items.
constexpr uint64_t kLargestWindow = uint64_t{1} << 23;
// So that what makes the runway low is short against the window, and a stop finds some of it.
constexpr uint64_t kAdaptiveBatchesAhead = 2;

}  // namespace

BatchJoint::Options BatchOptionsFor(const Plan& plan, const proto::PipelineSpec& spec,
                                    const RuntimeOptions& options) {
  return {.batch = plan.batch,
          .steps_per_epoch = spec.steps_per_epoch(),
          .epochs = plan.epochs,
          .adaptive_echo = plan.adaptive_echo(),
          .may_skip = plan.may_skip,
          .memory_cap = options.memory_cap};
}

PipelineWindows WindowsFor(const Plan& plan, const BatchJoint::Options& batch,
                           const RuntimeOptions& options, int threads) {
  const uint64_t slack = kItemsPerThread * static_cast<uint64_t>(threads);
  PipelineWindows windows;
  windows.batches_ahead = static_cast<uint64_t>(options.prefetch) +
                          (plan.adaptive() != nullptr ? kAdaptiveBatchesAhead : 0);
  for (const EchoPoint& point : plan.batch_echoes) {
    windows.batches_echoed += point.options.shuffle_buffer + windows.batches_ahead;
  }
  windows.examples.assign(plan.segments.size(), slack);
  windows.examples.front() += static_cast<uint64_t>(options.reads_in_flight);
  // The consumer returns the credits of the last echo point: two batches and more.
  windows.examples.back() +=
      (windows.batches_ahead + (batch.holds_batches() ? 1 : 0)) * plan.batch.size();
  if (windows.examples.back() > kLargestWindow) {
    ThrowInvalidField("RuntimeOptions.prefetch", "too many examples made ahead",
                      std::to_string(windows.examples.back()),
                      "at most " + std::to_string(kLargestWindow));
  }
  return windows;
}

}  // namespace echopipe::internal
