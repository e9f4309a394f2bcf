#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/batch_joint.h>

namespace echopipe::internal {

BatchJoint::BatchJoint(Options options, uint64_t window, const WritingStage* writer,
                       BufferPool& pool, BatchBuilder::Allocator allocator,
                       BadExamples* bad_examples, std::function<void()> begun)
    : options_(std::move(options)),
      ring_(window),
      writer_(writer),
      pool_(pool),
      allocator_(std::move(allocator)),
      bad_examples_(bad_examples),
      begun_(std::move(begun)) {}

void BatchJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    for (uint64_t i = 0; i < message.credit; ++i) {
      outbox.Consumed(sizes_.front());
      sizes_.pop_front();
    }
    return;
  }
  ring_.Put(std::move(message));
  while (!ended_ && ring_.Front() != nullptr) Accept(ring_.Pop(), outbox);
}

void BatchJoint::Accept(Message message, Outbox& outbox) {
  try {
    if (message.kind == Message::Kind::kEnd) return End(std::move(message.error), outbox);
    const bool ends_epoch = message.item->ends_epoch;
    bad_examples_->CountRecord(message.item->identity);
    if (message.item->example) {
      ++epoch_.examples;
      Place(std::move(message.item), outbox);
    } else {
      outbox.Consumed(1);
      CountTombstone(*message.item);
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
  }
  partial_->Reserve(*item);
  partial_->set_epoch(item->stream_epoch);
  if (item->ends_epoch && options_.steps_per_epoch == 0) partial_->set_ends_epoch();
  item->builder = partial_;
  outbox.SendAs(0, Message::Of(std::move(item)));
  if (partial_->size() < options_.batch.size()) return;
  SendHeld(outbox);
  held_ = std::move(partial_);
  if (!options_.holds_batches()) SendHeld(outbox);
}

void BatchJoint::CountTombstone(const Item& item) {
  if (item.bad) {
    ++epoch_.bad;
    bad_examples_->Add(*item.bad);
  } else {
    ++epoch_.filtered_out;
  }
}

void BatchJoint::EndEpoch(Outbox& outbox) {
  bad_examples_->EndEpoch();
  CheckNotEmpty(std::exchange(epoch_, {}));
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

// Nothing tells that the next epoch would be better, and without end there might never be a batch.
void BatchJoint::CheckNotEmpty(const Places& epoch) const {
  if (epoch.examples > 0) return;
  std::string what = "an epoch gave no example: of " +
                     std::to_string(epoch.bad + epoch.filtered_out) + ", " +
                     std::to_string(epoch.bad) + " were bad and " +
                     std::to_string(epoch.filtered_out) + " filtered out";
  if (epoch.bad > 0) what += "; the last bad one: " + bad_examples_->last();
  throw Error({.code = ErrorCode::kEmpty, .what = std::move(what), .where = "batch"});
}

void BatchJoint::End(std::shared_ptr<const Error> error, Outbox& outbox) {
  ended_ = true;
  SendHeld(outbox);
  SendOrDropPartial(outbox);
  outbox.SendAs(batches_, Message::End(std::move(error)));
}

void BatchJoint::SendHeld(Outbox& outbox) {
  if (held_) SendBatch(std::exchange(held_, nullptr), outbox);
}

void BatchJoint::SendOrDropPartial(Outbox& outbox) {
  const std::shared_ptr<BatchBuilder> partial = std::exchange(partial_, nullptr);
  if (!partial) return;
  if (options_.drop()) {
    outbox.Consumed(partial->size());
  } else {
    SendBatch(partial, outbox);
  }
}

void BatchJoint::SendBatch(std::shared_ptr<BatchBuilder> builder, Outbox& outbox) {
  builder->Seal(batches_++);
  if (options_.steps_per_epoch > 0 && batches_ % options_.steps_per_epoch == 0) {
    builder->set_ends_epoch();
  }
  sizes_.push_back(builder->size());
  auto item = std::make_shared<Item>();
  item->stream_epoch = builder->epoch();
  item->ends_epoch = builder->ends_epoch();
  item->builder = std::move(builder);
  outbox.SendAs(batches_ - 1, Message::Of(std::move(item)));
}

}  // namespace echopipe::internal
