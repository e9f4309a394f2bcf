#include <algorithm>

#include <echopipe/tests/support/fake_clock.h>

namespace echopipe::testing {

Clock::Time FakeClock::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

void FakeClock::CallAt(Time time, std::function<void()> callback) {
  MutexLock lock(mutex_);
  calls_.emplace(std::pair(time, next_call_++), std::move(callback));
}

void FakeClock::Advance(Duration duration) {
  const Time until = Now() + duration;
  while (const std::function<void()> callback = TakeDue(until)) callback();
}

bool FakeClock::AdvanceToNext() {
  Duration until_due{};
  {
    MutexLock lock(mutex_);
    if (calls_.empty()) return false;
    until_due = std::max(calls_.begin()->first.first - now_, Duration::zero());
  }
  Advance(until_due);
  return true;
}

size_t FakeClock::pending() const {
  MutexLock lock(mutex_);
  return calls_.size();
}

// The next callback due until then, with the time moved to where it is due; else none, with the
// time moved all the way.
std::function<void()> FakeClock::TakeDue(Time until) {
  MutexLock lock(mutex_);
  if (calls_.empty() || calls_.begin()->first.first > until) {
    now_ = std::max(now_, until);
    return nullptr;
  }
  const auto first = calls_.begin();
  now_ = std::max(now_, first->first.first);
  std::function<void()> callback = std::move(first->second);
  calls_.erase(first);
  return callback;
}

}  // namespace echopipe::testing
