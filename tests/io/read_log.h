#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/mutex.h>
#include <echopipe/io/storage.h>

namespace echopipe::testing {

/// Keeps what reads end with. Fails the test if one calls back twice.
/// Threads: every method may be called from any thread.
class ReadLog {
 public:
  /// A callback for the read that the test calls `read`. The log must outlive it.
  Storage::Callback Callback(int read) {
    return [this, read](Result<ReadResult> result) { Add(read, std::move(result)); };
  }

  /// Blocks until at least `count` reads have ended.
  void WaitFor(int count) {
    MutexLock lock(mutex_);
    while (calls_ < count) changed_.Wait(mutex_);
  }

  int calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }
  /// Which reads have ended, in order.
  std::vector<int> order() const {
    MutexLock lock(mutex_);
    return order_;
  }
  /// The threads that callbacks ran on.
  std::set<std::thread::id> threads() const {
    MutexLock lock(mutex_);
    return threads_;
  }
  /// Precondition: the read has ended.
  Result<ReadResult> result(int read) const {
    MutexLock lock(mutex_);
    return results_.at(read);
  }

 private:
  void Add(int read, Result<ReadResult> result) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(results_.emplace(read, std::move(result)).second) << "twice: " << read;
    order_.push_back(read);
    threads_.insert(std::this_thread::get_id());
    ++calls_;
    changed_.NotifyAll();  // under the lock: whoever waits may destroy the log next
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<int, Result<ReadResult>> results_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<int> order_ ECHOPIPE_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ ECHOPIPE_GUARDED_BY(mutex_);
  int calls_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
};

/// The bytes read, or "error: ..." with the message.
inline std::string AsString(const Result<ReadResult>& result) {
  if (!result.ok()) return std::string("error: ") + result.error().what();
  const std::span<const uint8_t> bytes = result.value().data->bytes();
  return {bytes.begin(), bytes.end()};
}

/// A result that is an error of this code whose message holds this text.
MATCHER_P2(FailsWith, code, text, "fails with " + std::string(ToString(code))) {
  if (arg.ok()) {
    *result_listener << "which is no error";
    return false;
  }
  *result_listener << "which is " << ToString(arg.error().code()) << ": " << arg.error().what();
  return arg.error().code() == code &&
         std::string(arg.error().what()).find(text) != std::string::npos;
}

}  // namespace echopipe::testing
