#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// Follows a source behind its consumer, so that the source's state is known at the place that the
/// consumer has come to, however far the source itself is ahead.
///
/// The source tells what it does to its shuffle window and which items it gives; the trail does the
/// same, on places alone, once the consumer has come so far.
/// Threads  Every method from any thread; the source and the consumer are one caller each.
/// Cost     A few words for each item between source and consumer.
class SourceTrail {
 public:
  /// What is admitted to the window.
  struct Entry {
    SourceState::Resident resident = {};
    uint64_t shard = 0;       ///< its place in the epoch's shard order
    uint64_t next_shard = 0;  ///< where the stream goes on behind it
    uint64_t next_byte_offset = 0;
    std::optional<uint64_t> key_hash = {};
  };
  using OptionsOfEpoch = std::function<EchoOptions(uint64_t epoch)>;

  SourceTrail(const SourceState& start, OptionsOfEpoch window_options);

  void BeginEpoch(uint64_t epoch);
  void Admit(Entry entry);
  void CloseWindow();
  void Draw();
  /// What has been done since the last one makes the item of this position, which stands there.
  void EndItem(uint64_t ordinal, const RecordPlace& place);
  /// The consumer is given the item of this position. Epochs come one after the other; in each the
  /// items may come in any order.
  void Give(uint64_t ordinal);

  void Advance(uint64_t items);
  SourceState state() const;

 private:
  struct Step {
    enum class Kind { kBeginEpoch, kAdmit, kClose, kDraw, kEndItem };
    Kind kind = Kind::kDraw;
    uint64_t number = 0;  // epoch or ordinal
    std::optional<Entry> entry = {};
    RecordPlace place = {};
  };

  void Add(Step step);
  void FollowTo(uint64_t ordinal) ECHOPIPE_REQUIRES(mutex_);
  void FollowNext() ECHOPIPE_REQUIRES(mutex_);
  void FollowAdmit(Entry entry) ECHOPIPE_REQUIRES(mutex_);

  const OptionsOfEpoch window_options_;
  mutable Mutex mutex_;
  std::deque<Step> steps_ ECHOPIPE_GUARDED_BY(mutex_);
  std::deque<uint64_t> given_ ECHOPIPE_GUARDED_BY(mutex_);  // and not yet advanced over
  SourceState place_ ECHOPIPE_GUARDED_BY(mutex_);           // without window and residents
  std::optional<EchoBuffer<SourceState::Resident>> window_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::internal
