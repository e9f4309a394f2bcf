#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <echopipe/base/export.h>

namespace echopipe {

/// Tells the time and calls back later; tests put their own in its place.
///
/// Threads: every method may be called from any thread.
class ECHOPIPE_EXPORT Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

  virtual ~Clock() = default;
  virtual Time Now() const = 0;
  /// Runs `callback` once at `time` or soon after, on a thread of the clock's own, in order of
  /// `time`, then of calls. The callback must be short. It is not run after the clock's end.
  virtual void CallAt(Time time, std::function<void()> callback) = 0;
};

/// The steady clock, with one thread for callbacks (started by the first CallAt).
ECHOPIPE_EXPORT std::shared_ptr<Clock> MakeSteadyClock();

}  // namespace echopipe
