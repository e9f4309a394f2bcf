#pragma once

#include <cstdint>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/base/mutex.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe::internal {

/// What an adaptive echo point has done, and when.
///
/// Threads  Any.
/// Cost     A lock for each draw. Its history is of so many spans that are merged two and two when
///          there would be more: it does not grow.
class AdaptiveMeter {
 public:
  explicit AdaptiveMeter(Clock::Time opened) : opened_(opened) {}

  void Add(Decision decision, Clock::Time now);
  /// What it could still repeat.
  void NotePool(uint64_t residents, uint64_t uses_left);
  AdaptiveStats Stats() const;

 private:
  AdaptiveStats::Span& SpanOf(Clock::Time now) ECHOPIPE_REQUIRES(mutex_);
  void MergeSpans() ECHOPIPE_REQUIRES(mutex_);

  const Clock::Time opened_;
  mutable Mutex mutex_;
  AdaptiveStats stats_ ECHOPIPE_GUARDED_BY(mutex_);
  Clock::Duration span_ ECHOPIPE_GUARDED_BY(mutex_) = std::chrono::seconds(1);
  Clock::Time last_fresh_ ECHOPIPE_GUARDED_BY(mutex_){};
};

}  // namespace echopipe::internal
