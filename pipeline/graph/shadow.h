#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/io/source.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/epoch_adaptive.h>
#include <echopipe/pipeline/graph/epoch_echo.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow_log.h>
#include <echopipe/pipeline/graph/stand_ins.h>

namespace echopipe::internal {

/// An example without its data: what it is, and all that it takes to make it again.
struct ShadowItem {
  /// What the data was made as, up to an edge at which it took a bad one's place.
  struct Former {
    size_t edge = 0;
    Identity identity = {};
    std::vector<uint64_t> ages = {};
  };

  Identity identity = {};
  std::vector<uint64_t> ages = {};  ///< at each echo point that it has passed
  RecordPlace place = {};           ///< of the record that its data is made of
  uint64_t stream_epoch = 0;
  bool ends_epoch = false;
  bool tombstone = false;
  std::shared_ptr<const BadExample> bad = nullptr;  ///< null if filtered out
  std::vector<Former> formers = {};                 ///< by edge
  /// What was bad in this place before it was filled with others' data.
  std::vector<std::shared_ptr<const BadExample>> replaced = {};
};

inline bool IsGood(const ShadowItem& item) { return !item.tombstone; }
inline bool IsBad(const ShadowItem& item) { return item.tombstone && item.bad; }
std::shared_ptr<ShadowItem> StandIn(const ShadowItem& place, const ShadowItem& good, size_t edge);
inline void Overtake(ShadowItem& item, const ShadowItem& held) {
  item.stream_epoch = held.stream_epoch;
}

/// What an item is on its way.
struct MadeItem {
  Identity identity = {};
  uint64_t age = 0;
  std::optional<RecordOrigin> stands_in = {};
};
/// What the data of `item` was when it had passed so many echo points.
MadeItem MadeBehind(const ShadowItem& item, size_t echo_points);
/// What it is now.
MadeItem MadeNow(const ShadowItem& item);

/// A batch without its data.
struct ShadowBatch {
  std::vector<std::shared_ptr<const ShadowItem>> items = {};
  std::vector<uint32_t> uses = {};  ///< at each echo point that it has passed
  uint64_t epoch = 0;
  bool ends_epoch = false;
};

inline bool IsTombstone(const ShadowItem& item) { return item.tombstone; }
inline bool IsTombstone(const ShadowBatch&) { return false; }

/// Where a pipeline stands between two batches: all that a checkpoint holds.
struct ShadowState {
  template <class T>
  struct EchoPoint {
    EpochEchoState state;
    std::vector<std::shared_ptr<const T>> residents = {};  ///< in the order of state.order
    /// Of an adaptive one, in the place of `state`.
    std::optional<EpochAdaptiveState> adaptive = {};
  };

  uint64_t steps = 0;    ///< batches given to the consumer
  uint64_t batches = 0;  ///< made, before echoes of batches
  SourceState source = {};
  std::vector<EchoPoint<ShadowItem>> echoes = {};
  std::vector<EchoPoint<ShadowBatch>> batch_echoes = {};
  /// Of each edge in front of an echo point of examples, and of batch; none if nothing is replaced.
  std::vector<StandInsState<ShadowItem>> stand_ins = {};
  EpochTally epoch = {};  ///< of the epoch that is under way at the batch stage
  BadTally bad = {};
};

/// An echo point of either kind, pulled from its end.
template <class T>
class ShadowEcho {
 public:
  ShadowEcho(const EchoPoint& point, const ShadowState::EchoPoint<T>* start,
             Log<Decision>& decisions);

  /// The next use; `pull` gives what comes from upstream, null at its end.
  template <class Pull>
  std::optional<EpochDrawn<T>> DrawFrom(Pull pull) {
    if (auto* fixed = std::get_if<EpochEcho<T>>(&echo_)) return fixed->DrawFrom(std::move(pull));
    return DrawAdaptively(std::move(pull));
  }
  ShadowState::EchoPoint<T> State() const;

 private:
  template <class Pull>
  std::optional<EpochDrawn<T>> DrawAdaptively(Pull pull) {
    auto& echo = std::get<EpochAdaptive<T>>(echo_);
    const std::optional<Decision> decision = decisions_.Take();
    if (decision == Decision::kEcho) return echo.Echo();
    // Without a decision this is the end, or a failure.
    std::shared_ptr<const T> item = pull();
    if (!item || !decision) return std::nullopt;
    const bool ends_epoch = item->ends_epoch;
    return IsTombstone(*item) ? echo.Pass(std::move(item), ends_epoch)
                              : echo.Admit(std::move(item), ends_epoch);
  }

  std::variant<EpochEcho<T>, EpochAdaptive<T>> echo_;
  Log<Decision>& decisions_;
};

/// The pipeline a second time, on identities alone, behind the consumer.
///
///     consumer's batch pulls: [batch echo ...] <- batch <- [echo n ...] <- source's items
///
/// Nothing is in flight between two of its batches, so that its state is all there is to tell of
/// the pipeline. Draws follow from the spec; the rest comes from the joints' logs, which are ahead:
/// the decisions of an adaptive echo point too.
/// Threads  Any.
/// Cost     An echo point's draw and a few words for each example; the logs hold what is between
///          source and consumer.
class Shadow {
 public:
  /// Begins at `start`, if given. `logs` and `source` must outlive it.
  Shadow(const Plan& plan, const ShadowState* start, ShadowLogs& logs, Source& source);

  /// Follows the consumer, who has been given so many batches in all, unless another caller is
  /// about to.
  void FollowIfFree(uint64_t steps);
  /// The state after so many batches: no fewer than of any earlier call. Throws if what has been
  /// delivered since the last one came about by a failure.
  ShadowState StateAfter(uint64_t steps);

 private:
  void Follow(uint64_t steps) ECHOPIPE_REQUIRES(mutex_);
  void Count(const ShadowItem& item) ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<const ShadowBatch> PullBatch(size_t edge) ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<const ShadowBatch> MakeBatch() ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<const ShadowItem> PullItem(size_t edge) ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<ShadowItem> PullArrival(size_t edge) ECHOPIPE_REQUIRES(mutex_);
  std::vector<StandInsState<ShadowItem>> StandInStates() ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<ShadowItem> DrawItem(size_t echo) ECHOPIPE_REQUIRES(mutex_);
  std::shared_ptr<ShadowItem> NextRecord() ECHOPIPE_REQUIRES(mutex_);

  ShadowLogs& logs_;
  Source& source_;
  Mutex mutex_;
  uint64_t steps_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t batches_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t records_ ECHOPIPE_GUARDED_BY(mutex_) = 0;  // not yet told the source
  const std::optional<size_t> adaptive_echo_;
  std::vector<ShadowEcho<ShadowItem>> echoes_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<ShadowEcho<ShadowBatch>> batch_echoes_ ECHOPIPE_GUARDED_BY(mutex_);
  /// An edge, and how many of its places have been pulled.
  struct Edge {
    StandIns<ShadowItem> stand_ins;
    std::shared_ptr<const ShadowItem> first = nullptr;  // comes before all else
    uint64_t places = 0;
  };
  const bool replaces_;
  std::vector<Edge> edges_ ECHOPIPE_GUARDED_BY(mutex_);
  uint64_t batch_places_ ECHOPIPE_GUARDED_BY(mutex_) = 0;  // that have gone on from the last edge
  EpochTally epoch_ ECHOPIPE_GUARDED_BY(mutex_);
  BadTally bad_ ECHOPIPE_GUARDED_BY(mutex_);
  std::optional<Error> error_ ECHOPIPE_GUARDED_BY(mutex_);  // why there is no state any more
};

}  // namespace echopipe::internal
