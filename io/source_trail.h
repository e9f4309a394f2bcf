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
/// The source tells what it does to its shuffle window; the trail does the same, on places alone,
/// once the consumer has come so far.
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
  /// An item has been made of the position before `next_ordinal`.
  void EndItem(uint64_t next_ordinal);

  void Advance(uint64_t items);
  SourceState state() const;

 private:
  struct Step {
    enum class Kind { kBeginEpoch, kAdmit, kClose, kDraw, kEndItem };
    Kind kind = Kind::kDraw;
    uint64_t number = 0;  // epoch or ordinal
    std::optional<Entry> entry = {};
  };

  void Add(Step step);
  void Follow(Step step) ECHOPIPE_REQUIRES(mutex_);
  void FollowAdmit(Entry entry) ECHOPIPE_REQUIRES(mutex_);

  const OptionsOfEpoch window_options_;
  mutable Mutex mutex_;
  std::deque<Step> steps_ ECHOPIPE_GUARDED_BY(mutex_);
  SourceState place_ ECHOPIPE_GUARDED_BY(mutex_);  // without window and residents
  std::optional<EchoBuffer<SourceState::Resident>> window_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::internal
