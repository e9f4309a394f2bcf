#include <utility>

#include <echopipe/pipeline/graph/echo_point_joint.h>

namespace echopipe::internal {

EchoPointJoint::EchoPointJoint(const EchoPoint& point, Position position, Windows windows,
                               const Clock& clock, const Timer& stalls)
    : point_(point),
      windows_(windows),
      inlet_(windows.upstream, position.rule, std::move(position.start), position.gaps),
      window_(windows.downstream),
      clock_(clock),
      index_(position.index),
      of_batches_(position.gaps == nullptr),
      opened_(clock.Now()),
      starved_(stalls) {
  starved_.Set(true, opened_);
}

void EchoPointJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    window_.Returned(message.credit);
  } else if (message.item && message.item->destination) {
    ReceiveReread(std::move(message.item), outbox);
  } else if (message.kind != Message::Kind::kWake) {
    upstream_done_ = upstream_done_ || message.kind == Message::Kind::kEnd;
    inlet_.Put(std::move(message));
  }
  Advance(outbox);
  const Clock::Time now = clock_.Now();
  saturated_.Set(upstream_done_ || inlet_.waiting() + outbox.withheld() >= windows_.upstream_full,
                 now);
  starved_.Set(!inlet_.ended() && window_.in_flight() <= windows_.downstream_idle, now);
}

std::shared_ptr<Item> EchoPointJoint::TakeItem(Outbox& outbox) {
  std::shared_ptr<Item> item = inlet_.Take();
  CountNeed(*item);
  if (item->holds_credit) outbox.Consumed(1);
  admitted_ += 1;
  return item;
}

void EchoPointJoint::CountNeed(const Item& item) {
  size_.Add(item.example ? BytesOf(*item.example) : 0);
  need_ =
      NeedBehindEcho(item.need, windows_.upstream, point_.options.shuffle_buffer, size_.bytes());
}

void EchoPointJoint::Send(const EpochDrawn<Item>& drawn, Outbox& outbox) {
  auto item = std::make_shared<Item>(*drawn.use.item);
  item->identity.use[item->identity.echo_points++] = drawn.use.use;
  item->age = drawn.use.age;
  item->stream_epoch = drawn.stream_epoch;
  item->need = need_;
  item->ends_epoch = drawn.ends_epoch;
  item->ends_stream = false;  // uses of it will
  item->holds_credit = true;
  draws_ += 1;
  window_.Sent();
  outbox.Send(Message::Of(std::move(item)));
}

// It stays here, or goes on to where it is awaited, as what it was when it went on from here.
void EchoPointJoint::ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox) {
  const std::shared_ptr<const Destination> to = item->destination;
  if (to->echo != index_ || (to->batch != nullptr) != of_batches_) {
    if (of_batches_) {
      item->identity.use[item->identity.echo_points++] = to->batch->uses[index_];
    } else {
      MakeAs(MadeBehind(*to->item, index_ + 1), *item);
    }
    outbox.SendAs(0, Message::Of(std::move(item)));
    return;
  }
  item->destination = nullptr;
  if (!of_batches_ && to->item) Become(*to->item, *item);
  if (to->comes_first) return inlet_.PutFirst(std::move(item));
  TakeResident(to->slot, std::move(item), outbox);
}

EchoPointStats EchoPointJoint::Stats(Clock::Time now) const {
  const double elapsed = Seconds(now - opened_);
  const auto admitted = static_cast<double>(admitted_.load());
  const auto draws = static_cast<double>(draws_.load());
  EchoPointStats stats{.position = point_.position,
                       .factor = point_.options.factor.value(),
                       .adaptive = point_.adaptive.has_value(),
                       .admitted = admitted_,
                       .draws = draws_,
                       .exceptions = exceptions_};
  if (admitted_ == 0 || draws_ == 0) return stats;
  const double upstream = (elapsed - Seconds(saturated_.Total(now))) / admitted;
  const double downstream = (elapsed - Seconds(starved_.Total(now))) / draws;
  stats.factor_effective = draws / admitted;
  if (downstream > 0) stats.r = upstream / downstream;
  return stats;
}

}  // namespace echopipe::internal
