#pragma once

#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow.h>
#include <echopipe/proto/checkpoint.pb.h>

namespace echopipe::internal {

/// Writes the state's part of a checkpoint.
void Encode(const ShadowState& state, proto::Checkpoint* message);

/// Reads it again. Throws kInvalidArgument for what no pipeline of this plan can have written;
/// echo points and source check their own parts when they begin from them.
ShadowState Decode(const proto::Checkpoint& message, const Plan& plan);

}  // namespace echopipe::internal
