#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/stats.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// True if an example's error is one of the pipeline; for want of memory the example cannot help.
inline bool EndsPipeline(const Error& error, bool fail_on_bad) {
  return fail_on_bad || error.code() == ErrorCode::kResourceExhausted;
}

/// Names and counts the bad examples, each record once however often it comes, and says when there
/// are too many.
///
/// Threads  count() and named() from any thread; the rest by one caller at a time, in the order of
///          the stream.
class BadExamples {
 public:
  using Log = std::function<void(std::string_view)>;

  BadExamples(const proto::BadExamples& policy, Log log);

  /// Another place of the stream has come; fresh ones count as records.
  void CountRecord(const Identity& identity);
  /// Throws kLimitExceeded if this one is over the limits.
  void Add(const BadExample& bad);
  /// An epoch ends here. Throws kLimitExceeded if more than the allowed fraction was bad so far,
  /// however few records that are.
  void EndEpoch() const;
  /// The last one added, by name and reason.
  const std::string& last() const { return last_; }

  uint64_t count() const;
  /// The first kNamed.
  std::vector<BadExample> named() const;

 private:
  static constexpr size_t kNamed = 1000;

  void CheckFraction(uint64_t records) const;
  [[noreturn]] void ThrowTooMany(std::string wanted) const;

  proto::BadExamples policy_;
  Log log_;
  uint64_t records_ = 0;
  std::unordered_set<uint64_t> seen_;  // hashes of uri and key
  std::string last_;
  mutable Mutex mutex_;
  uint64_t count_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::vector<BadExample> named_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::internal
