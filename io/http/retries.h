#pragma once

#include <optional>

#include <echopipe/base/clock.h>
#include <echopipe/base/random.h>
#include <echopipe/io/http_storage.h>

namespace echopipe::internal {

/// When a request that failed is sent again, and when it is given up.
///
///     wait(n) = uniform over [0, min(longest_wait, first_wait * 2^n)], at least Retry-After
///
/// n counts failures since the last progress; the budget begins with the first of these attempts: a
/// request that goes on piece by piece is not given up, a dead server is after `budget`. The last
/// wait is cut so that one more attempt begins when the budget ends; a Retry-After beyond it ends
/// the request at once. Source of the jitter: Brooker, "Exponential Backoff And Jitter" (2015).
///
/// Threads  One caller at a time.
class Retries {
 public:
  /// The request has moved on: what failed before no longer counts.
  void OnProgress();
  /// An attempt that began then has failed. Gives the time of the next one, or nothing if there is
  /// none.
  std::optional<Clock::Time> OnFailure(const RetryOptions& options, Clock::Time began,
                                       Clock::Time now, std::optional<Clock::Duration> retry_after,
                                       RandomStream& random);
  /// Failures since the last progress, and the time since the first of these attempts began.
  int failures() const { return failures_; }
  Clock::Duration since_first(Clock::Time now) const { return now - budget_begin_; }
  Clock::Time first_failure() const { return first_failure_; }

 private:
  int failures_ = 0;
  Clock::Time first_failure_;  // since the last progress
  Clock::Time budget_begin_;
};

}  // namespace echopipe::internal
