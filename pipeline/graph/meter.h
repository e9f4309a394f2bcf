#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <echopipe/base/clock.h>

namespace echopipe::internal {

/// A number that one thread at a time writes and any thread reads.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  operator uint64_t() const { return load(); }  // NOLINT(google-explicit-constructor)
  uint64_t load() const { return value_.load(std::memory_order_relaxed); }
  void operator=(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void operator+=(uint64_t by) { *this = load() + by; }
  void operator-=(uint64_t by) { *this = load() - by; }

 private:
  std::atomic<uint64_t> value_{0};
};

inline double Seconds(Clock::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Adds up the time in which something holds.
///
/// Threads  One writer at a time; Total() from any thread.
class Timer {
 public:
  /// From `now` on it holds, or does not.
  void Set(bool holds, Clock::Time now) {
    const int64_t time = now.time_since_epoch().count();
    const int64_t since = since_.load(std::memory_order_relaxed);
    if (holds == (since != kNever)) return;
    if (holds) {
      since_.store(time, std::memory_order_relaxed);
    } else {
      total_.store(total_.load(std::memory_order_relaxed) + time - since,
                   std::memory_order_relaxed);
      since_.store(kNever, std::memory_order_relaxed);
    }
  }
  Clock::Duration Total(Clock::Time now) const {
    const int64_t since = since_.load(std::memory_order_relaxed);
    const int64_t total = total_.load(std::memory_order_relaxed);
    return Clock::Duration(since == kNever ? total
                                           : total + now.time_since_epoch().count() - since);
  }

 private:
  static constexpr int64_t kNever = INT64_MIN;
  std::atomic<int64_t> total_{0};
  std::atomic<int64_t> since_{kNever};
};

/// Adds up how much of another timer's time passes while something holds.
///
/// Threads  As Timer.
class OverlapTimer {
 public:
  explicit OverlapTimer(const Timer& other) : other_(other) {}

  void Set(bool holds, Clock::Time now) {
    if (holds == holds_.load(std::memory_order_relaxed)) return;
    const int64_t other = other_.Total(now).count();
    if (holds) {
      start_.store(other, std::memory_order_relaxed);
    } else {
      total_.store(
          total_.load(std::memory_order_relaxed) + other - start_.load(std::memory_order_relaxed),
          std::memory_order_relaxed);
    }
    holds_.store(holds, std::memory_order_relaxed);
  }
  Clock::Duration Total(Clock::Time now) const {
    const int64_t total = total_.load(std::memory_order_relaxed);
    if (!holds_.load(std::memory_order_relaxed)) return Clock::Duration(total);
    return Clock::Duration(total) + other_.Total(now) -
           Clock::Duration(start_.load(std::memory_order_relaxed));
  }

 private:
  const Timer& other_;
  std::atomic<int64_t> total_{0};
  std::atomic<int64_t> start_{0};
  std::atomic<bool> holds_{false};
};

/// Items and thread time of a stage that runs on many threads at once.
class StageMeter {
 public:
  void Add(Clock::Duration busy) {
    items_.fetch_add(1, std::memory_order_relaxed);
    busy_ns_.fetch_add(static_cast<uint64_t>(busy.count()), std::memory_order_relaxed);
  }
  uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  double busy_s() const {
    return static_cast<double>(busy_ns_.load(std::memory_order_relaxed)) * 1e-9;
  }

 private:
  std::atomic<uint64_t> items_{0};
  std::atomic<uint64_t> busy_ns_{0};
};

}  // namespace echopipe::internal
