#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include <echopipe/base/clock.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/plan.h>

namespace echopipe::internal {

/// An echo point: an echo buffer between items from upstream and credits from downstream.
///
/// Which of the two it waits for follows from the buffer's state alone, so that timing decides
/// when an item goes out, never which. The end, with or without an error, is sent on after all that
/// was admitted.
class EchoJoint final : public Joint {
 public:
  /// Items that may be on the edges around it.
  struct Windows {
    uint64_t upstream = 1;
    uint64_t downstream = 1;
    /// So many items waiting here are all that upstream can do; at most `upstream`.
    uint64_t upstream_full = 1;
    /// Downstream can do nothing with so few: they make no whole batch, or only their credits are
    /// still to come back.
    uint64_t downstream_idle = 0;
  };

  /// `stalls` holds while the consumer waits.
  EchoJoint(const EchoPoint& point, Windows windows, const Clock& clock, const Timer& stalls);

  void Receive(Message message, Outbox& outbox) override;

  // From any thread.
  const Window& window() const { return window_; }
  const std::string& position() const { return point_.position; }
  EchoPointStats Stats(Clock::Time now) const;

 private:
  void Advance(Outbox& outbox);
  void Admit(std::shared_ptr<Item> item, Outbox& outbox);
  void CountNeed(const Item& item);
  void Draw(Outbox& outbox);

  EchoPoint point_;
  Windows windows_;
  SequenceRing ring_;
  Window window_;
  const Clock& clock_;
  EchoBuffer<Item> buffer_;
  std::deque<uint64_t> epoch_borders_;  // draws after which an epoch ends
  uint64_t stream_epoch_ = 0;
  MeanSize size_;
  MemoryNeed need_;
  bool upstream_ended_ = false;
  std::shared_ptr<const Error> upstream_error_;
  bool ended_ = false;

  Clock::Time opened_;
  Counter admitted_;
  Counter draws_;
  Counter exceptions_;
  Timer saturated_;       // upstream can do no more: its whole window is here
  OverlapTimer starved_;  // stalls while downstream has nothing to do
};

}  // namespace echopipe::internal
