#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include <echopipe/base/clock.h>
#include <echopipe/base/mutex.h>

namespace echopipe::testing {

/// A clock that stands still until the test moves it.
///
/// Order    Callbacks run by due time, then in the order of CallAt. What a callback schedules
/// within
///          the span being passed runs in it too.
/// End      What is still scheduled is dropped without being run.
/// Threads  Every method may be called from any thread; callbacks run in the one that moves the
///          time, under no lock.
class FakeClock final : public Clock {
 public:
  Time Now() const override;
  /// A time that has passed already is due at the next Advance, of zero too.
  void CallAt(Time time, std::function<void()> callback) override;

  /// Moves the time on and runs what falls due. While a callback runs, the time stands where it was
  /// due. Precondition: duration >= 0.
  void Advance(Duration duration);
  /// Advances to the next due time. False, and no move, if nothing is scheduled.
  bool AdvanceToNext();
  /// How many callbacks are scheduled.
  size_t pending() const;

 private:
  std::function<void()> TakeDue(Time until);

  mutable Mutex mutex_;
  Time now_ ECHOPIPE_GUARDED_BY(mutex_){};
  uint64_t next_call_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> calls_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::testing
