#include <algorithm>
#include <utility>

#include <echopipe/pipeline/graph/echo_joint.h>

namespace echopipe::internal {

EchoJoint::EchoJoint(const EchoPoint& point, Windows windows, const Clock& clock,
                     const Timer& stalls)
    : point_(point),
      windows_(windows),
      ring_(windows.upstream),
      window_(windows.downstream),
      clock_(clock),
      buffer_(point.options),
      opened_(clock.Now()),
      starved_(stalls) {
  starved_.Set(true, opened_);
}

void EchoJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    window_.Returned(message.credit);
  } else {
    ring_.Put(std::move(message));
  }
  Advance(outbox);
  const Clock::Time now = clock_.Now();
  saturated_.Set(upstream_ended_ || ring_.count() + outbox.withheld() >= windows_.upstream_full,
                 now);
  starved_.Set(!upstream_ended_ && window_.in_flight() <= windows_.downstream_idle, now);
}

void EchoJoint::Advance(Outbox& outbox) {
  while (!ended_) {
    if (buffer_.HasRoom()) {
      if (ring_.Front() == nullptr) return;
      Message message = ring_.Pop();
      if (message.kind == Message::Kind::kItem) {
        Admit(std::move(message.item), outbox);
      } else {
        upstream_ended_ = true;
        upstream_error_ = std::move(message.error);
        buffer_.Close();
      }
    } else if (!buffer_.order().empty()) {
      if (window_.credits() == 0) return;
      Draw(outbox);
    } else if (upstream_ended_) {
      ended_ = true;
      outbox.Send(Message::End(upstream_error_));
    } else {
      buffer_.Reopen();
    }
  }
}

void EchoJoint::Admit(std::shared_ptr<Item> item, Outbox& outbox) {
  const bool ends_epoch = item->ends_epoch;
  CountNeed(*item);
  buffer_.Offer(std::move(item));
  outbox.Consumed(1);
  admitted_ = buffer_.order().admitted();
  if (ends_epoch) {
    epoch_borders_.push_back(point_.options.factor.Uses(buffer_.order().admitted()));
    if (point_.drain_each_epoch) buffer_.Close();
  }
}

void EchoJoint::CountNeed(const Item& item) {
  size_.Add(item.example ? BytesOf(*item.example) : 0);
  const uint64_t size = size_.bytes();
  // On the edge it may have its old size or its new one.
  need_.bytes = item.need.bytes + windows_.upstream * std::max(size, item.need.item_bytes) +
                point_.options.shuffle_buffer * size;
  need_.item_bytes = size;
}

void EchoJoint::Draw(Outbox& outbox) {
  Use<Item> use = *buffer_.Draw();
  auto item = std::make_shared<Item>(*use.item);
  item->identity.use[item->identity.echo_points++] = use.use;
  item->age = use.age;
  item->stream_epoch = stream_epoch_;
  item->need = need_;
  item->ends_epoch = !epoch_borders_.empty() && use.draw + 1 == epoch_borders_.front();
  if (item->ends_epoch) {
    ++stream_epoch_;
    epoch_borders_.pop_front();
  }
  draws_ = buffer_.order().draws();
  exceptions_ = buffer_.order().exceptions();
  window_.Sent();
  outbox.Send(Message::Of(std::move(item)));
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
