#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/batch_joint.h>

namespace echopipe::internal {

BatchJoint::BatchJoint(Options options, uint64_t window, const WritingStage* writer,
                       BufferPool& pool, BatchBuilder::Allocator allocator,
                       BadExamples* bad_examples, std::function<void()> begun, ShadowLogs& logs)
    : options_(std::move(options)),
      ring_(window),
      writer_(writer),
      pool_(pool),
      allocator_(std::move(allocator)),
      bad_examples_(bad_examples),
      begun_(std::move(begun)),
      logs_(logs),
      batches_(options_.batches_before) {}

void BatchJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    for (uint64_t i = 0; i < message.credit; ++i) {
      outbox.Consumed(sizes_.front());
      sizes_.pop_front();
    }
    return;
  }
  if (message.item && message.item->destination) {
    return ReceiveReread(std::move(message.item), outbox);
  }
  ring_.Put(std::move(message));
  while (!ended_ && ring_.Front() != nullptr) Accept(ring_.Pop(), outbox);
}

void BatchJoint::Accept(Message message, Outbox& outbox) {
  try {
    if (message.kind == Message::Kind::kEnd) return End(std::move(message.error), outbox);
    const bool ends_epoch = message.item->ends_epoch;
    if (!message.item->example) logs_.gaps.back().Add({.place = places_, .bad = message.item->bad});
    ++places_;
    bad_examples_->CountRecord(message.item->identity);
    if (message.item->example) {
      Place(std::move(message.item), outbox);
    } else {
      outbox.Consumed(1);
      if (message.item->bad) bad_examples_->Add(*message.item->bad);
    }
    if (ends_epoch) EndEpoch(outbox);
  } catch (const Error& error) {
    End(std::make_shared<Error>(error), outbox);
  }
}

std::shared_ptr<BatchBuilder> BatchJoint::Begin(const Item& first) const {
  auto batch =
      std::make_shared<BatchBuilder>(options_.batch.size(), first, writer_, pool_, allocator_);
  begun_();
  return batch;
}

void BatchJoint::Place(std::shared_ptr<Item> item, Outbox& outbox) {
  if (!partial_) {
    if (!options_.drop()) SendHeld(outbox);
    partial_ = Begin(*item);
    partial_->set_begin(places_ - 1);
  }
  partial_->Reserve(*item);
  partial_->set_end(places_);
  partial_->set_epoch(item->stream_epoch);
  if (item->ends_epoch && options_.steps_per_epoch == 0) partial_->set_ends_epoch();
  item->builder = partial_;
  outbox.SendAs(0, Message::Of(std::move(item)));
  if (partial_->size() < options_.batch.size()) return;
  SendHeld(outbox);
  held_ = std::move(partial_);
  if (!options_.holds_batches()) SendHeld(outbox);
}

void BatchJoint::EndEpoch(Outbox& outbox) {
  if (options_.steps_per_epoch > 0) return;
  if (options_.across_epochs() || !options_.drop()) {
    const std::shared_ptr<BatchBuilder>& last = partial_ ? partial_ : held_;
    if (last) last->set_ends_epoch();
  } else if (held_) {
    held_->set_ends_epoch();
  }
  SendHeld(outbox);
  if (!options_.across_epochs()) SendOrDropPartial(outbox);
}

void BatchJoint::End(std::shared_ptr<const Error> error, Outbox& outbox) {
  ended_ = true;
  if (error) logs_.gaps.back().Add({.place = places_, .failure = true});
  SendHeld(outbox);
  SendOrDropPartial(outbox, /*by_failure=*/error != nullptr);
  outbox.SendAs(sent_, Message::End(std::move(error)));
}

void BatchJoint::SendHeld(Outbox& outbox) {
  if (held_) SendBatch(std::exchange(held_, nullptr), outbox);
}

void BatchJoint::SendOrDropPartial(Outbox& outbox, bool by_failure) {
  const std::shared_ptr<BatchBuilder> partial = std::exchange(partial_, nullptr);
  if (!partial) return;
  if (options_.drop()) {
    outbox.Consumed(partial->size());
  } else {
    SendBatch(partial, outbox, by_failure);
  }
}

void BatchJoint::SendBatch(std::shared_ptr<BatchBuilder> builder, Outbox& outbox, bool by_failure) {
  builder->Seal(sent_++);
  ++batches_;
  if (options_.steps_per_epoch > 0 && batches_ % options_.steps_per_epoch == 0) {
    builder->set_ends_epoch();
  }
  sizes_.push_back(builder->size());
  auto item = std::make_shared<Item>();
  item->stream_epoch = builder->epoch();
  item->ends_epoch = builder->ends_epoch();
  logs_.batches.Add({.begin = builder->places().begin,
                     .end = builder->places().end,
                     .epoch = builder->epoch(),
                     .ends_epoch = builder->ends_epoch(),
                     .by_failure = by_failure});
  item->builder = std::move(builder);
  outbox.SendAs(sent_ - 1, Message::Of(std::move(item)));
}

void BatchJoint::ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox) {
  const std::shared_ptr<const Destination> to = item->destination;
  const auto remade = remade_.try_emplace({to->echo, to->slot}).first;
  std::vector<std::shared_ptr<Item>>& items = remade->second.items;
  items.resize(to->batch->items.size());
  items[to->member] = std::move(item);
  if (++remade->second.came < items.size()) return;
  std::erase_if(items, [](const auto& member) { return !member->example; });
  if (items.empty()) {
    throw Error({.code = ErrorCode::kNotFound,
                 .what = "not one example of a batch can be read any more",
                 .where = "restore"});
  }
  const std::shared_ptr<BatchBuilder> builder = Begin(*items.front());
  builder->set_epoch(to->batch->epoch);
  builder->set_destination(to);
  for (const std::shared_ptr<Item>& member : items) {
    builder->Reserve(*member);
    member->builder = builder;
    outbox.SendAs(0, Message::Of(member));
  }
  remade_.erase(remade);
  auto whole = std::make_shared<Item>();
  whole->builder = builder;
  outbox.SendAs(0, Message::Of(std::move(whole)));
}

}  // namespace echopipe::internal
