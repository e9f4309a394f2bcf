#include <algorithm>
#include <utility>

#include <echopipe/pipeline/graph/adaptive_joint.h>

namespace echopipe::internal {

AdaptiveJoint::AdaptiveJoint(const EchoPoint& point, Position position, std::optional<Start> start,
                             Windows windows, Options options, Surroundings surroundings,
                             const Clock& clock)
    : EchoPointJoint(point, std::move(position), windows, clock, surroundings.outlet->stalls()),
      options_(std::move(options)),
      surroundings_(std::move(surroundings)),
      clock_(clock),
      echo_(start ? EpochAdaptive<Item>(point, start->state, std::move(start->residents))
                  : EpochAdaptive<Item>(point)),
      runway_(options_.runway),
      meter_(clock.Now()) {
  // The slots of a state's residents are the first.
  for (EchoOrder::Slot slot = 0; slot < echo_.order().residents(); ++slot) missing_.insert(slot);
  if (options_.replay) {
    decisions_ = std::make_unique<ReplayedDecisions>(*options_.replay, point.position);
  } else {
    decisions_ = std::make_unique<LiveDecisions>(runway_);
  }
}

void AdaptiveJoint::Advance(Outbox& outbox) {
  const Outlet::Consumer consumer = surroundings_.outlet->consumer();
  Observe(consumer);
  try {
    Follow(outbox);
  } catch (const Error& error) {
    End(outbox, std::make_shared<Error>(error));
  }
  armed_.store(runway_.armed() || ended_, std::memory_order_relaxed);
  // While upstream stands still, nothing else comes here.
  const Clock::Time now = clock_.Now();
  const std::optional<Clock::Duration> patience = runway_.TimeToArm();
  if (!consumer.waits || !patience || ended_) return;
  if (wake_at_ && *wake_at_ > now && *wake_at_ <= now + *patience) return;
  wake_at_ = now + *patience;
  surroundings_.wake_at(*wake_at_);
}

void AdaptiveJoint::Observe(const Outlet::Consumer& consumer) {
  NoteDraws();
  runway_.NoteConsumer(consumer.figures);
}

void AdaptiveJoint::Follow(Outbox& outbox) {
  while (!ended_ && !late_ && credits() > 0) {
    const Inlet::Next next = input(outbox);
    const bool live = !options_.replay;
    // An echo behind the last item of all would open an epoch that there is not.
    const bool ended = next == Inlet::Next::kEnd || (live && last_epoch_ended_);
    const bool can_echo = echo_.CanEcho() && (!live || missing_.empty());
    switch (decisions_->Next({.fresh_waits = next == Inlet::Next::kItem,
                              .upstream_ended = ended,
                              .can_echo = can_echo})) {
      case Decisions::Step::kFresh:
        DrawFresh(outbox);
        break;
      case Decisions::Step::kEcho:
        DrawEcho(outbox);
        break;
      case Decisions::Step::kEnd:
        if (next != Inlet::Next::kEnd) return;  // it may have failed
        End(outbox, upstream_error());
        break;
      case Decisions::Step::kWait:
        return;
    }
  }
}

void AdaptiveJoint::DrawFresh(Outbox& outbox) {
  std::shared_ptr<Item> item = TakeItem(outbox);
  Log(Decision::kFresh);
  const bool ends_epoch = item->ends_epoch;
  last_epoch_ended_ =
      item->ends_stream || (ends_epoch && item->stream_epoch + 1 == options_.epochs);
  const bool worth_repeating = item->example || item->batch;
  Give(worth_repeating ? echo_.Admit(std::move(item), ends_epoch)
                       : echo_.Pass(std::move(item), ends_epoch),
       outbox);
}

void AdaptiveJoint::DrawEcho(Outbox& outbox) {
  Log(Decision::kEcho);
  Give(echo_.Echo(), outbox);
}

void AdaptiveJoint::Log(Decision decision) {
  surroundings_.shadow->Add(decision);
  if (surroundings_.file != nullptr) surroundings_.file->Add(decision);
  meter_.Add(decision, clock_.Now());
}

void AdaptiveJoint::Give(EpochDrawn<Item> drawn, Outbox& outbox) {
  for (const EchoOrder::Slot slot : echo_.order().vacated()) {
    if (drawn.use.item || slot != drawn.use.slot) missing_.erase(slot);
  }
  meter_.NotePool(echo_.order().residents(), echo_.order().uses_left());
  if (!drawn.use.item) {
    late_ = std::move(drawn);
    return;
  }
  Send(drawn, outbox);
  NoteDraws();
}

void AdaptiveJoint::TakeResident(EchoOrder::Slot slot, std::shared_ptr<Item> item, Outbox& outbox) {
  if (missing_.erase(slot) == 0) return;  // it has left the pool
  if (!late_ || late_->use.slot != slot) return echo_.Put(slot, std::move(item));
  late_->use.item = item;
  // Nothing has happened since that draw, with which it may have left.
  if (std::ranges::count(echo_.order().vacated(), slot) == 0) echo_.Put(slot, std::move(item));
  Send(*std::exchange(late_, std::nullopt), outbox);
  NoteDraws();
}

void AdaptiveJoint::End(Outbox& outbox, std::shared_ptr<const Error> error) {
  ended_ = true;
  SendEnd(outbox, std::move(error));
}

}  // namespace echopipe::internal
