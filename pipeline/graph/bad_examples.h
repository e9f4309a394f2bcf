#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/options.h>
#include <echopipe/pipeline/stats.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Counts records and the bad ones among them, each once however often it comes.
struct BadTally {
  uint64_t records = 0;         ///< in all epochs
  uint64_t bad_records = 0;     ///< in all epochs
  std::set<uint64_t> bad = {};  ///< hashes of uri and key
  std::string last = {};        ///< of the bad ones, by name and reason

  /// Another place of the stream, in which so many were bad, one after the other; fresh ones count
  /// as records, and once as bad ones.
  void CountPlace(const Identity& identity, size_t bad_ones);
  /// One of these. True if it has not come before; then it counts as a bad record if it is no fresh
  /// one.
  bool Add(const Identity& identity, const BadExample& example);
};

/// The places of an epoch that have come to the batch stage, but for echoes of an adaptive point:
/// whether an epoch is empty is not to depend on the moment.
struct EpochTally {
  uint64_t examples = 0;
  uint64_t bad = 0;
  uint64_t filtered_out = 0;
};

/// What a record is called: its file, or its shard and key.
std::string RecordName(const std::string& uri, const std::string& key);

/// The error of a bad example, with its name.
Error NamedError(const BadExample& bad);

/// True if an example's error is one of the pipeline: the example cannot help want of memory, nor a
/// server that is gone, with which all that follow would be lost one after the other.
inline bool EndsPipeline(const Error& error, bool fail_on_bad) {
  return fail_on_bad || error.code() == ErrorCode::kResourceExhausted ||
         error.code() == ErrorCode::kUnavailable;
}

/// Names and counts the bad examples, each record once however often it comes, and says when there
/// are too many. Beside them it names and counts those of which a part of the picture is missing.
///
/// Threads  count(), named() and partial_count() from any thread; the rest by one caller at a time,
///          in the order of the stream.
class BadExamples {
 public:
  /// Goes on from `tally`; tells the options' callbacks.
  BadExamples(const proto::BadExamples& policy, BadTally tally, const RuntimeOptions& options);

  enum class Fate { kSkipped, kReplaced };

  /// Another place of the stream has come, as BadTally::CountPlace() says.
  void CountPlace(const Identity& identity, size_t bad_ones);
  /// One of these. Throws kLimitExceeded if it is over the limits.
  void Add(const Identity& identity, const BadExample& bad, Fate fate);
  /// An example with a truncated picture, which is used all the same. The tally does not know it:
  /// these are counted from the start of this process on.
  void AddPartial(const Provenance& from);
  /// An epoch ends here. Throws kLimitExceeded if more than the allowed fraction was bad so far,
  /// however few records that are.
  void EndEpoch() const;
  /// The last one added, by name and reason.
  const std::string& last() const { return tally_.last; }

  uint64_t count() const;
  uint64_t partial_count() const;
  /// The first kNamed.
  std::vector<BadExample> named() const;

 private:
  static constexpr size_t kNamed = 1000;

  void CheckFraction(uint64_t records) const;
  [[noreturn]] void ThrowTooMany(uint64_t bad, std::string wanted) const;

  proto::BadExamples policy_;
  std::function<void(std::string_view)> log_;
  std::function<void(const BadExample&)> on_bad_example_;
  BadTally tally_;
  std::set<uint64_t> partial_ = {};  // hashes as the tally's
  mutable Mutex mutex_;
  uint64_t count_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t partial_count_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::vector<BadExample> named_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::internal
