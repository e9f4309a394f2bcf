#include <utility>

#include <echopipe/pipeline/graph/echo_joint.h>

namespace echopipe::internal {

EchoJoint::EchoJoint(const EchoPoint& point, Position position, std::optional<Start> start,
                     Windows windows, const Clock& clock, const Timer& stalls)
    : EchoPointJoint(point, std::move(position), windows, clock, stalls),
      echo_(start ? EpochEcho<Item>(point, start->state, std::move(start->residents))
                  : EpochEcho<Item>(point)) {}

void EchoJoint::Advance(Outbox& outbox) {
  while (!ended_ && !late_) {
    switch (echo_.next()) {
      case EpochEcho<Item>::Step::kAdmit: {
        const Inlet::Next next = input(outbox);
        if (next == Inlet::Next::kNothing) return;
        if (next == Inlet::Next::kItem) {
          std::shared_ptr<Item> item = TakeItem(outbox);
          const bool ends_epoch = item->ends_epoch;
          echo_.Admit(std::move(item), ends_epoch);
        } else {
          echo_.EndUpstream();
        }
        break;
      }
      case EpochEcho<Item>::Step::kDraw:
        if (credits() == 0) return;
        Draw(outbox);
        break;
      case EpochEcho<Item>::Step::kEnd:
        ended_ = true;
        SendEnd(outbox, upstream_error());
    }
  }
}

void EchoJoint::Draw(Outbox& outbox) {
  EpochDrawn<Item> drawn = echo_.Draw();
  NoteExceptions(echo_.order().exceptions());
  if (drawn.use.item) {
    Send(drawn, outbox);
  } else {
    late_ = std::move(drawn);
  }
}

void EchoJoint::TakeResident(EchoOrder::Slot slot, std::shared_ptr<Item> item, Outbox& outbox) {
  if (!late_ || late_->use.slot != slot) return echo_.Put(slot, std::move(item));
  late_->use.item = item;
  if (!late_->use.last) echo_.Put(slot, std::move(item));
  Send(*std::exchange(late_, std::nullopt), outbox);
}

}  // namespace echopipe::internal
