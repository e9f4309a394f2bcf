#pragma once

#include <cstdint>
#include <vector>

#include <echopipe/pipeline/graph/batch_joint.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/options.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// How far the parts of a pipeline may run ahead of each other.
struct PipelineWindows {
  std::vector<uint64_t> examples;  ///< behind the source and each echo point of examples
  uint64_t batches_ahead = 0;      ///< of the consumer
  uint64_t batches_echoed = 0;     ///< the most that echoes of batches hold
};

/// What the batch joint of this plan does.
BatchJoint::Options BatchOptionsFor(const Plan& plan, const proto::PipelineSpec& spec,
                                    const RuntimeOptions& options);

/// Throws kInvalidArgument if they were too large.
PipelineWindows WindowsFor(const Plan& plan, const BatchJoint::Options& batch,
                           const RuntimeOptions& options, int threads);

}  // namespace echopipe::internal
