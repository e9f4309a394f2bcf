#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's -Wthread-safety cannot see through libstdc++'s std::mutex; these wrappers can be checked.
#if defined(__clang__)
#define ECHOPIPE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ECHOPIPE_THREAD_ANNOTATION(x)
#endif
#define ECHOPIPE_GUARDED_BY(mutex) ECHOPIPE_THREAD_ANNOTATION(guarded_by(mutex))
#define ECHOPIPE_REQUIRES(...) ECHOPIPE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ECHOPIPE_EXCLUDES(...) ECHOPIPE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace echopipe {

/// std::mutex with lock annotations.
class ECHOPIPE_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() ECHOPIPE_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  bool try_lock() ECHOPIPE_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }
  void unlock() ECHOPIPE_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  /// Tells the check that it is held, where that cannot be seen: inside a lambda. Does nothing.
  void AssertHeld() const ECHOPIPE_THREAD_ANNOTATION(assert_capability(this)) {}

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class ECHOPIPE_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ECHOPIPE_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  /// Of one that is locked already.
  MutexLock(Mutex& mutex, std::adopt_lock_t) ECHOPIPE_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() ECHOPIPE_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition on what a Mutex guards. Waits may wake without a notification: test in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) ECHOPIPE_REQUIRES(mutex) { condition_.wait(mutex); }
  /// Returns after a notification, or after `timeout`.
  void WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) ECHOPIPE_REQUIRES(mutex) {
    condition_.wait_for(mutex, timeout);
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace echopipe
