#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/io/storage.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/tests/support/fake_clock.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::testing {

/// A pipeline between a link and a consumer, on a clock that moves only when nothing can be done
/// without it.
struct VirtualRun {
  /// The link gives nothing for some time.
  struct Stop {
    Clock::Duration at{};
    Clock::Duration length{};
  };

  PipelineSpec spec;  ///< of the source "data", unless there are objects
  int records = 800;  ///< of 1,000 bytes each
  std::map<std::string, std::string> objects = {};  ///< by path, instead of these records
  Rank rank = {};
  Clock::Duration per_record{};  ///< for 1,000 bytes on the link; 0: no time
  Clock::Duration latency{};
  std::vector<Stop> stops = {};
  Clock::Duration per_example{};  ///< the consumer's own time
  /// Instead of it, for the n-th batch.
  std::function<Clock::Duration(uint64_t)> per_batch = nullptr;
  uint64_t most_batches = ~uint64_t{0};
  RuntimeOptions runtime = {.threads = 2};
  const internal::ShadowState* start = nullptr;
  internal::DecisionLogs decisions = {};
  bool keeps_states = false;  ///< behind each batch
  bool keeps_seconds = false;
};

/// What the consumer was given.
struct VirtualResult {
  struct Taken {
    echopipe::Batch batch;
    Clock::Duration at{};
    Clock::Duration waited{};
  };

  std::vector<Taken> batches = {};
  /// [i]: behind batch i; none where it came about by a failure.
  std::vector<std::optional<internal::ShadowState>> states = {};
  PipelineStats stats = {};
  /// As they were after each second of the run.
  std::vector<PipelineStats> seconds = {};
  std::optional<Error> error = {};

  /// Of the batches taken in that time: waited, over all of it.
  double StallShare(Clock::Duration from, Clock::Duration to) const;
  /// Examples over fresh ones.
  double Factor(Clock::Duration from, Clock::Duration to) const;
  Clock::Duration end() const { return batches.empty() ? Clock::Duration{} : batches.back().at; }
};

VirtualResult Play(const VirtualRun& run);
/// The same with a link and a consumer that take no time, on the steady clock.
VirtualResult PlayAtOnce(const VirtualRun& run);

}  // namespace echopipe::testing
