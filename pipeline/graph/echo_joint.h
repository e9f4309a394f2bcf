#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/pipeline/graph/epoch_echo.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow_log.h>

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

  /// Where it is among the echo points of examples, or of batches.
  struct Position {
    size_t index = 0;
    Log<ShadowLogs::Gap>* gaps = nullptr;  ///< of the edge in front; null for an echo of batches
  };
  /// What it goes on from: residents in the order of the state, null where they come later.
  struct Start {
    EpochEchoState state;
    std::vector<std::shared_ptr<const Item>> residents = {};
  };

  /// `stalls` holds while the consumer waits.
  EchoJoint(const EchoPoint& point, Position position, std::optional<Start> start, Windows windows,
            const Clock& clock, const Timer& stalls);

  void Receive(Message message, Outbox& outbox) override;

  // From any thread.
  const Window& window() const { return window_; }
  const std::string& position() const { return point_.position; }
  EchoPointStats Stats(Clock::Time now) const;

 private:
  void Advance(Outbox& outbox);
  void Admit(std::shared_ptr<Item> item, Outbox& outbox);
  void EndUpstream(std::shared_ptr<const Error> error);
  void CountNeed(const Item& item);
  void Send(const EpochEcho<Item>::Drawn& drawn, Outbox& outbox);
  void ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox);

  EchoPoint point_;
  Windows windows_;
  SequenceRing ring_;
  Window window_;
  const Clock& clock_;
  size_t index_;
  Log<ShadowLogs::Gap>* gaps_;
  EpochEcho<Item> echo_;
  uint64_t admitted_before_;  // the start
  uint64_t draws_before_;
  uint64_t places_ = 0;                         // of the edge, so far
  std::optional<EpochEcho<Item>::Drawn> late_;  // drawn, but still to be read again
  MeanSize size_;
  MemoryNeed need_;
  bool upstream_done_ = false;   // its end has come here
  bool upstream_ended_ = false;  // and all that was in front of it has been admitted
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
