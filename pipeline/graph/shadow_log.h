#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <echopipe/base/mutex.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/io/source.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe::internal {

/// Entries on their way from a joint, which runs ahead, to the shadow behind the consumer.
///
/// Threads: one writer and one reader, each one caller at a time.
template <class Entry>
class Log {
 public:
  void Add(Entry entry) {
    MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::optional<Entry> Take() {
    return TakeIf([](const Entry&) { return true; });
  }
  /// The oldest, if there is one and `wanted` says so.
  template <class Wanted>
  std::optional<Entry> TakeIf(Wanted wanted) {
    MutexLock lock(mutex_);
    if (entries_.empty() || !wanted(entries_.front())) return std::nullopt;
    std::optional<Entry> entry = std::move(entries_.front());
    entries_.pop_front();
    return entry;
  }

 private:
  Mutex mutex_;
  std::deque<Entry> entries_ ECHOPIPE_GUARDED_BY(mutex_);
};

/// What the joints tell the shadow: all that does not follow from the spec.
struct ShadowLogs {
  /// An item of the source's.
  struct Record {
    uint64_t epoch = 0;
    uint64_t ordinal = 0;
    bool ends_epoch = false;
    RecordPlace place = {};
  };
  /// At a place on an edge, counted from 0 in this process: an example that is none (any more), or
  /// the end of everything by an error, in the place of what is there or because of it.
  struct Gap {
    uint64_t place = 0;
    bool failure = false;
    std::shared_ptr<const BadExample> bad = nullptr;  ///< null if filtered out
  };
  /// A batch: the examples among these places of the last edge.
  struct Batch {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t next = 0;  ///< behind it, what gives no example any more: the rest of its epoch
    uint64_t epoch = 0;
    bool ends_epoch = false;
    bool by_failure = false;  ///< smaller than it would be, as everything ended by an error
  };

  explicit ShadowLogs(size_t edges) : gaps(edges) {}

  Log<Record> records;
  std::deque<Log<Gap>> gaps;  ///< by edge: in front of each echo point of examples, and of batch
  Log<Batch> batches;
  Log<Decision> decisions;  ///< of the adaptive echo point, one for each draw
};

}  // namespace echopipe::internal
