#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <echopipe/pipeline/graph/echo_point_joint.h>
#include <echopipe/pipeline/graph/epoch_echo.h>

namespace echopipe::internal {

/// An echo point of a fixed factor: an echo buffer between items from upstream and credits from
/// downstream.
///
/// Which of the two it waits for follows from the buffer's state alone, so that timing decides
/// when an item goes out, never which. The end, with or without an error, is sent on after all that
/// was admitted.
class EchoJoint final : public EchoPointJoint {
 public:
  /// What it goes on from: residents in the order of the state, null where they come later.
  struct Start {
    EpochEchoState state;
    std::vector<std::shared_ptr<const Item>> residents = {};
  };

  /// `stalls` holds while the consumer waits.
  EchoJoint(const EchoPoint& point, Position position, std::optional<Start> start, Windows windows,
            const Clock& clock, const Timer& stalls);

  uint64_t residents() const override { return echo_.order().residents(); }

 private:
  void Advance(Outbox& outbox) override;
  void TakeResident(EchoOrder::Slot slot, std::shared_ptr<Item> item, Outbox& outbox) override;
  void Draw(Outbox& outbox);

  EpochEcho<Item> echo_;
  std::optional<EpochDrawn<Item>> late_;  // drawn, but still to be read again
  bool ended_ = false;
};

}  // namespace echopipe::internal
