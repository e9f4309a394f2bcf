#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/pipeline/graph/epoch_drawn.h>
#include <echopipe/pipeline/graph/inlet.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow_log.h>

namespace echopipe::internal {

/// An echo point of either kind: between items from upstream and credits from downstream. What it
/// does with these, each kind says; here is how it takes and sends them, and what it measures.
class EchoPointJoint : public Joint {
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

  /// Where it is among the echo points of examples, or of batches.
  struct Position {
    size_t index = 0;
    Log<ShadowLogs::Gap>* gaps = nullptr;  ///< of the edge in front; null for an echo of batches
    StandInRule rule = {};                 ///< of that edge
    std::optional<Inlet::Start> start = {};
  };

  void Receive(Message message, Outbox& outbox) final;
  /// Items in its buffer. For who may call Receive().
  virtual uint64_t residents() const = 0;

  // From any thread.
  const Window& window() const { return window_; }
  const std::string& position() const { return point_.position; }
  uint64_t draws() const { return draws_; }
  EchoPointStats Stats(Clock::Time now) const;

 protected:
  /// `stalls` holds while the consumer waits.
  EchoPointJoint(const EchoPoint& point, Position position, Windows windows, const Clock& clock,
                 const Timer& stalls);

  /// Does all that can be done now.
  virtual void Advance(Outbox& outbox) = 0;
  /// A resident of its own has been read again.
  virtual void TakeResident(EchoOrder::Slot slot, std::shared_ptr<Item> item, Outbox& outbox) = 0;

  /// Whether upstream's next item is here, or its end.
  Inlet::Next input(Outbox& outbox) { return inlet_.next(outbox); }
  /// Precondition: input() is kItem.
  std::shared_ptr<Item> TakeItem(Outbox& outbox);
  /// What upstream's end came with.
  const std::shared_ptr<const Error>& upstream_error() const { return inlet_.error(); }
  uint64_t credits() const { return window_.credits(); }

  void Send(const EpochDrawn<Item>& drawn, Outbox& outbox);
  void SendEnd(Outbox& outbox, std::shared_ptr<const Error> error) {
    outbox.Send(Message::End(std::move(error)));
  }
  void NoteExceptions(uint64_t exceptions) { exceptions_ = exceptions; }

 private:
  void CountNeed(const Item& item);
  void ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox);

  EchoPoint point_;
  Windows windows_;
  Inlet inlet_;
  Window window_;
  const Clock& clock_;
  size_t index_;
  bool of_batches_;
  MeanSize size_;
  MemoryNeed need_;
  bool upstream_done_ = false;  // its end has come here

  Clock::Time opened_;
  Counter admitted_;
  Counter draws_;
  Counter exceptions_;
  Timer saturated_;       // upstream can do no more: its whole window is here
  OverlapTimer starved_;  // stalls while downstream has nothing to do
};

}  // namespace echopipe::internal
