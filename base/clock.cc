#include <algorithm>
#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include <echopipe/base/clock.h>
#include <echopipe/base/mutex.h>

namespace echopipe {
namespace {

// The wait's end must be a time that the system's clock can tell.
constexpr Clock::Duration kLongestWait = std::chrono::hours(1);

class SteadyClock final : public Clock {
 public:
  ~SteadyClock() override {
    {
      MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.NotifyAll();
  }

  Time Now() const override { return std::chrono::steady_clock::now(); }

  void CallAt(Time time, std::function<void()> callback) override {
    {
      MutexLock lock(mutex_);
      if (!thread_.joinable()) thread_ = std::jthread([this] { Run(); });
      calls_.emplace(std::pair(time, next_call_++), std::move(callback));
    }
    changed_.NotifyAll();
  }

 private:
  void Run() {
    mutex_.lock();
    while (!ended_) {
      if (calls_.empty()) {
        changed_.Wait(mutex_);
        continue;
      }
      const Time due = calls_.begin()->first.first;
      if (const Time now = Now(); due > now) {
        changed_.WaitFor(mutex_, std::min(due - now, kLongestWait));
        continue;
      }
      std::function<void()> callback = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      mutex_.unlock();
      callback();
      callback = nullptr;  // what it holds is user code too
      mutex_.lock();
    }
    mutex_.unlock();
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> calls_ ECHOPIPE_GUARDED_BY(mutex_);
  uint64_t next_call_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: joined before the rest goes
};

}  // namespace

std::shared_ptr<Clock> MakeSteadyClock() { return std::make_shared<SteadyClock>(); }

}  // namespace echopipe
