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

}  // namespace

SourceJoint::SourceJoint(std::unique_ptr<Source> source, uint64_t window, bool fail_on_bad,
                         Clock& clock)
    : source_(std::move(source)), window_(window), fail_on_bad_(fail_on_bad), clock_(clock) {}

void SourceJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) window_.Returned(message.credit);
  if (ended_) return;
  try {
    Pull(outbox);
  } catch (const Error& error) {
    ended_ = true;
    outbox.Send(Message::End(std::make_shared<Error>(error)));
  }
  held_.Set(ended_ || window_.credits() == 0, clock_.Now());
}

void SourceJoint::Pull(Outbox& outbox) {
  // The source throws what ended it only from a call that has no item to give.
  do {
    arrived_.clear();
    source_->Poll(window_.credits(), &arrived_);
    for (const SourceItem& from : arrived_) {
      records_ += 1;
      if (!from.record && EndsPipeline(*from.error, fail_on_bad_)) {
        throw from.error->Within("source");
      }
      window_.Sent();
      outbox.Send(Message::Of(ItemOf(from)));
    }
    source_->Advance(arrived_.size());
  } while (!arrived_.empty() && window_.credits() > 0 && !source_->AtEnd());
  if (source_->AtEnd()) {
    ended_ = true;
    outbox.Send(Message::End(nullptr));
  }
}

std::shared_ptr<Item> SourceJoint::ItemOf(const SourceItem& from) {
  auto item = std::make_shared<Item>();
  item->identity.epoch = from.epoch;
  item->identity.ordinal = from.ordinal;
  item->stream_epoch = from.epoch;
  item->ends_epoch = from.ends_epoch;
  size_.Add(from.record ? from.record->size() : 0);
  item->need = {.bytes = source_->window_records() * size_.bytes(), .item_bytes = size_.bytes()};
  if (from.record) {
    item->example = ExampleOf(*from.record);
  } else {
    item->bad = std::make_shared<BadExample>(
        BadExample{from.uri ? *from.uri : "", from.key, "source", *from.error});
  }
  return item;
}

}  // namespace echopipe::internal
