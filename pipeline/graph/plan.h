#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/echo/adaptive_order.h>
#include <echopipe/echo/echo_order.h>
#include <echopipe/pipeline/graph/stand_ins.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// What an adaptive echo point has instead of a factor.
struct AdaptivePoint {
  AdaptiveOptions options;
  std::optional<Clock::Duration> low_water = {};
};

/// An echo point with its defaults filled in.
struct EchoPoint {
  EchoOptions options;  ///< of an adaptive one: its bounds, with max_factor as the factor
  bool drain_each_epoch = false;
  std::string position = {};  ///< "after decode"
  std::optional<AdaptivePoint> adaptive = {};
};

/// An example-wise stage.
struct PlannedStage {
  std::string name;    ///< of its kind: "decode"
  uint64_t index = 0;  ///< in the spec's list; names its random numbers
  std::unique_ptr<const Stage> stage;
};

/// A spec taken apart for the graph:
///
///     source -> segment 0 -> echo 0 -> segment 1 -> ... -> segment n -> batch -> batch echo ...
struct Plan {
  std::vector<std::vector<PlannedStage>> segments;  ///< one more than echoes
  std::vector<EchoPoint> echoes;                    ///< of examples
  std::vector<EchoPoint> batch_echoes;
  proto::Batch batch;
  bool may_skip = false;  ///< tombstones may reach the batch
  bool replaces = false;  ///< bad examples are replaced
  uint64_t epochs = 1;    ///< of the source; 0: it has no last one
  bool endless() const { return epochs == 0; }
  /// The one adaptive echo point, or null.
  const EchoPoint* adaptive() const;
  /// Where that is among the echo points of examples, if it is one.
  std::optional<size_t> adaptive_echo() const;
  /// Of the edge in front of the echo point of examples with this number, or of batch.
  StandInRule RuleOf(size_t edge) const {
    return {.replaces = replaces, .edge = edge, .adaptive_echo = adaptive_echo()};
  }
};

inline std::span<const proto::Source* const> SourcesOf(const proto::PipelineSpec& message) {
  return {message.source().data(), static_cast<size_t>(message.source_size())};
}

/// Validates the spec and takes it apart; throws kInvalidArgument with the field and the reason.
Plan MakePlan(const PipelineSpec& spec);

}  // namespace echopipe::internal
