#pragma once

#include <memory>
#include <vector>

#include <echopipe/io/source.h>
#include <echopipe/pipeline/graph/message.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow.h>

namespace echopipe::internal {

/// A record to be read again, once, for all that is made of it.
struct Reread {
  RecordPlace place;
  std::vector<std::shared_ptr<const Destination>> destinations;
};

/// What the residents of `state`, and the items that held places wait for, are made of: each record
/// once, those in front that will be drawn first. Tombstones need no record.
std::vector<Reread> RereadsFor(const Plan& plan, const ShadowState& state);

}  // namespace echopipe::internal
