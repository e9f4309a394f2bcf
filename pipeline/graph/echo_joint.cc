#include <algorithm>
#include <utility>

#include <echopipe/pipeline/graph/echo_joint.h>

namespace echopipe::internal {

EchoJoint::EchoJoint(const EchoPoint& point, Position position, std::optional<Start> start,
                     Windows windows, const Clock& clock, const Timer& stalls)
    : point_(point),
      windows_(windows),
      ring_(windows.upstream),
      window_(windows.downstream),
      clock_(clock),
      index_(position.index),
      gaps_(position.gaps),
      echo_(start ? EpochEcho<Item>(point, start->state, std::move(start->residents))
                  : EpochEcho<Item>(point)),
      admitted_before_(echo_.order().admitted()),
      draws_before_(echo_.order().draws()),
      opened_(clock.Now()),
      starved_(stalls) {
  starved_.Set(true, opened_);
}

void EchoJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    window_.Returned(message.credit);
  } else if (message.item && message.item->destination) {
    ReceiveReread(std::move(message.item), outbox);
  } else {
    upstream_done_ = upstream_done_ || message.kind == Message::Kind::kEnd;
    ring_.Put(std::move(message));
  }
  Advance(outbox);
  const Clock::Time now = clock_.Now();
  saturated_.Set(upstream_done_ || ring_.count() + outbox.withheld() >= windows_.upstream_full,
                 now);
  starved_.Set(!upstream_ended_ && window_.in_flight() <= windows_.downstream_idle, now);
}

void EchoJoint::Advance(Outbox& outbox) {
  while (!ended_ && !late_) {
    switch (echo_.next()) {
      case EpochEcho<Item>::Step::kAdmit: {
        if (ring_.Front() == nullptr) return;
        Message message = ring_.Pop();
        if (message.kind == Message::Kind::kItem) {
          Admit(std::move(message.item), outbox);
        } else {
          EndUpstream(std::move(message.error));
        }
        break;
      }
      case EpochEcho<Item>::Step::kDraw: {
        if (window_.credits() == 0) return;
        EpochEcho<Item>::Drawn drawn = echo_.Draw();
        if (drawn.use.item) {
          Send(drawn, outbox);
        } else {
          late_ = std::move(drawn);
        }
        break;
      }
      case EpochEcho<Item>::Step::kEnd:
        ended_ = true;
        outbox.Send(Message::End(upstream_error_));
    }
  }
}

void EchoJoint::Admit(std::shared_ptr<Item> item, Outbox& outbox) {
  if (gaps_ != nullptr && !item->example) gaps_->Add({.place = places_, .bad = item->bad});
  ++places_;
  const bool ends_epoch = item->ends_epoch;
  CountNeed(*item);
  echo_.Admit(std::move(item), ends_epoch);
  outbox.Consumed(1);
  admitted_ = echo_.order().admitted() - admitted_before_;
}

void EchoJoint::EndUpstream(std::shared_ptr<const Error> error) {
  if (gaps_ != nullptr && error) gaps_->Add({.place = places_, .failure = true});
  upstream_ended_ = true;
  upstream_error_ = std::move(error);
  echo_.EndUpstream();
}

void EchoJoint::CountNeed(const Item& item) {
  size_.Add(item.example ? BytesOf(*item.example) : 0);
  const uint64_t size = size_.bytes();
  // On the edge it may have its old size or its new one.
  need_.bytes = item.need.bytes + windows_.upstream * std::max(size, item.need.item_bytes) +
                point_.options.shuffle_buffer * size;
  need_.item_bytes = size;
}

void EchoJoint::Send(const EpochEcho<Item>::Drawn& drawn, Outbox& outbox) {
  auto item = std::make_shared<Item>(*drawn.use.item);
  item->identity.use[item->identity.echo_points++] = drawn.use.use;
  item->age = drawn.use.age;
  item->stream_epoch = drawn.stream_epoch;
  item->need = need_;
  item->ends_epoch = drawn.ends_epoch;
  draws_ = echo_.order().draws() - draws_before_;
  exceptions_ = echo_.order().exceptions();
  window_.Sent();
  outbox.Send(Message::Of(std::move(item)));
}

// It stays here, or goes on to where it is awaited, with the use that it had here.
void EchoJoint::ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox) {
  const std::shared_ptr<const Destination> to = item->destination;
  const bool of_batches = gaps_ == nullptr;
  if (to->echo != index_ || (to->batch != nullptr) != of_batches) {
    item->identity.use[item->identity.echo_points++] =
        of_batches ? to->batch->uses[index_] : to->item->identity.use[index_];
    if (!of_batches) item->age = to->item->ages[index_];
    outbox.SendAs(0, Message::Of(std::move(item)));
    return;
  }
  item->destination = nullptr;
  if (!late_ || late_->use.slot != to->slot) return echo_.Put(to->slot, std::move(item));
  late_->use.item = item;
  if (!late_->use.last) echo_.Put(to->slot, std::move(item));
  Send(*std::exchange(late_, std::nullopt), outbox);
}

EchoPointStats EchoJoint::Stats(Clock::Time now) const {
  const double elapsed = Seconds(now - opened_);
  const auto admitted = static_cast<double>(admitted_.load());
  const auto draws = static_cast<double>(draws_.load());
  EchoPointStats stats{.position = point_.position,
                       .factor = point_.options.factor.value(),
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
