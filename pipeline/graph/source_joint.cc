#include <utility>

#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/source_joint.h>

namespace echopipe::internal {
namespace {

std::shared_ptr<const Example> ExampleOf(const Record& record) {
  auto example = std::make_shared<Example>();
  for (const Record::Member& member : record.members) {
    example->Set(member.name,
                 Tensor(DType::kBytes, {static_cast<int64_t>(member.bytes->size())}, member.bytes));
  }
  example->set_label(record.label);
  example->mutable_provenance().uri = record.uri;
  example->mutable_provenance().key = record.key;
  return example;
}

void SetContent(const SourceItem& from, Item& item) {
  if (from.record) {
    item.example = ExampleOf(*from.record);
  } else {
    item.bad = std::make_shared<BadExample>(
        BadExample{from.uri ? *from.uri : "", from.key, "source", *from.error});
  }
}

}  // namespace

SourceJoint::SourceJoint(std::unique_ptr<Source> source, uint64_t window, bool fail_on_bad,
                         Clock& clock, Log<ShadowLogs::Record>& log, std::vector<Reread> rereads)
    : source_(std::move(source)),
      window_(window),
      fail_on_bad_(fail_on_bad),
      clock_(clock),
      log_(log),
      rereads_(std::move(rereads)),
      rereads_due_(rereads_.size()) {
  std::vector<RecordPlace> places;
  places.reserve(rereads_.size());
  for (const Reread& reread : rereads_) places.push_back(reread.place);
  source_->Reread(std::move(places));
}

void SourceJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) window_.Returned(message.credit);
  if (ended_ && rereads_due_ == 0) return;
  try {
    Pull(outbox);
  } catch (const Error& error) {
    // What others wait for will not come.
    if (ended_ || rereads_due_ > 0) throw;
    ended_ = true;
    outbox.Send(Message::End(std::make_shared<Error>(error)));
  }
  held_.Set(ended_ || window_.credits() == 0, clock_.Now());
}

void SourceJoint::Pull(Outbox& outbox) {
  // The source throws what ended it only from a call that has no item to give.
  do {
    arrived_.clear();
    source_->Poll(ended_ ? 0 : window_.credits(), &arrived_);
    for (const SourceItem& from : arrived_) {
      if (from.reread) {
        SendReread(from, outbox);
      } else {
        SendNext(from, outbox);
      }
    }
  } while (!arrived_.empty() && window_.credits() > 0 && !source_->AtEnd());
  if (!ended_ && source_->AtEnd()) {
    ended_ = true;
    outbox.Send(Message::End(nullptr));
  }
}

void SourceJoint::SendNext(const SourceItem& from, Outbox& outbox) {
  records_ += 1;
  if (!from.record && EndsPipeline(*from.error, fail_on_bad_)) {
    throw from.error->Within("source");
  }
  log_.Add({.epoch = from.epoch,
            .ordinal = from.ordinal,
            .ends_epoch = from.ends_epoch,
            .place = from.place});
  auto item = std::make_shared<Item>();
  item->identity.epoch = from.epoch;
  item->identity.ordinal = from.ordinal;
  item->stream_epoch = from.epoch;
  item->ends_epoch = from.ends_epoch;
  size_.Add(from.record ? from.record->size() : 0);
  item->need = {.bytes = source_->window_records() * size_.bytes(), .item_bytes = size_.bytes()};
  SetContent(from, *item);
  window_.Sent();
  outbox.Send(Message::Of(std::move(item)));
}

void SourceJoint::SendReread(const SourceItem& from, Outbox& outbox) {
  for (const std::shared_ptr<const Destination>& destination :
       rereads_[*from.reread].destinations) {
    auto item = std::make_shared<Item>();
    MakeAs(MadeBehind(*destination->item, 0), *item);
    item->destination = destination;
    SetContent(from, *item);
    outbox.SendAs(0, Message::Of(std::move(item)));
  }
  --rereads_due_;
}

}  // namespace echopipe::internal
