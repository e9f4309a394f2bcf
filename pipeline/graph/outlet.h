#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include <echopipe/base/clock.h>
#include <echopipe/base/mutex.h>
#include <echopipe/echo/runway.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/graph/message.h>
#include <echopipe/pipeline/graph/meter.h>

namespace echopipe::internal {

/// The end of the graph, where the consumer waits.
///
/// Threads  Receive() by one caller at a time; everything else from any thread.
class Outlet {
 public:
  /// At most `window` batches come before they are taken. `steps_before` were delivered by another
  /// process.
  Outlet(uint64_t window, uint64_t steps_before, const Clock& clock);

  /// A batch or the end, in any order.
  void Receive(Message message);
  /// Ends the stream at once: waiting and later callers get the error (the first one given).
  void Fail(const Error& error);

  /// The next batch, or nothing at the end; throws what ended the stream. While there is none yet,
  /// `help` is called now and then, without a lock; it tells whether it had anything to do.
  /// `begins` is called likewise, once, when a wait begins.
  std::optional<Batch> Take(const std::function<bool()>& help,
                            const std::function<void()>& begins = nullptr);

  /// Batches delivered in the whole run.
  uint64_t steps() const;
  /// What has been delivered.
  struct Totals {
    uint64_t examples = 0;
    uint64_t fresh = 0;  ///< the first use at every echo point
    uint64_t batches = 0;
    Clock::Time time;  ///< of this reading
    double stall_s = 0;
  };
  Totals totals() const;
  /// What an adaptive echo point must know of the consumer.
  struct Consumer {
    Runway::Consumer figures = {};
    bool waits = false;  ///< now, and there is nothing for it
  };
  Consumer consumer() const;
  /// The totals right after the first batch.
  std::optional<Totals> first_batch() const;
  /// A caller is in Take(), there is nothing for it, and it has called `begins`.
  bool HasWaitingCaller() const;
  /// Holds while a caller waits in Take().
  const Timer& stalls() const { return stalls_; }

 private:
  Batch Deliver(const Message& message) ECHOPIPE_REQUIRES(mutex_);
  Totals TotalsNow() const ECHOPIPE_REQUIRES(mutex_);
  void SetStalled(int change) ECHOPIPE_REQUIRES(mutex_);
  void NoteCall() ECHOPIPE_REQUIRES(mutex_);

  const uint64_t steps_before_;
  const Clock& clock_;
  SequenceRing ring_;  // Receive() alone
  mutable Mutex mutex_;
  CondVar arrived_;
  std::deque<Message> ready_ ECHOPIPE_GUARDED_BY(mutex_);
  std::optional<Error> error_ ECHOPIPE_GUARDED_BY(mutex_);
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  int waiting_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  int resting_ ECHOPIPE_GUARDED_BY(mutex_) = 0;  // of these, with nothing more to do themselves
  Totals totals_ ECHOPIPE_GUARDED_BY(mutex_);
  std::optional<Totals> first_batch_ ECHOPIPE_GUARDED_BY(mutex_);
  Clock::Duration first_stall_ ECHOPIPE_GUARDED_BY(mutex_){};  // until the first batch
  Runway::Consumer called_ ECHOPIPE_GUARDED_BY(mutex_);        // as the latest call began
  Timer stalls_;
};

}  // namespace echopipe::internal
