#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/batch_joint.h>

namespace echopipe::internal {

BatchJoint::BatchJoint(Options options, uint64_t window, Inlet inlet, const WritingStage* writer,
                       BufferPool& pool, BatchBuilder::Allocator allocator,
                       BadExamples* bad_examples, ShadowLogs& logs)
    : options_(std::move(options)),
      window_(window),
      inlet_(std::move(inlet)),
      writer_(writer),
      pool_(pool),
      allocator_(std::move(allocator)),
      bad_examples_(bad_examples),
      logs_(logs),
      batches_(options_.batches_before),
      epoch_(options_.epoch_before) {}

void BatchJoint::Receive(Message message, Outbox& outbox) {
  if (message.kind == Message::Kind::kCredit) {
    for (uint64_t i = 0; i < message.credit; ++i) {
      outbox.Consumed(outstanding_.front().credits);
      in_flight_ -= outstanding_.front().examples;
      outstanding_.pop_front();
    }
  } else if (message.item && message.item->destination) {
    ReceiveReread(std::move(message.item), outbox);
  } else {
    inlet_.Put(std::move(message));
  }
  Advance(outbox);
}

void BatchJoint::Advance(Outbox& outbox) {
  while (!ended_) {
    switch (inlet_.next(outbox)) {
      case Inlet::Next::kNothing:
        return;
      case Inlet::Next::kItem:
        // Stand-ins come without a credit, however many.
        if (in_flight_ >= window_) return;
        Accept(inlet_.Take(), outbox);
        break;
      case Inlet::Next::kEnd:
        End(inlet_.error(), outbox);
    }
  }
}

void BatchJoint::Accept(std::shared_ptr<Item> item, Outbox& outbox) {
  try {
    const bool ends_epoch = item->ends_epoch;
    ends_stream_ = ends_epoch && item->stream_epoch + 1 == options_.epochs;
    CountPlace(*item);
    CountNeed(*item);
    if (item->example) {
      const Provenance& from = item->example->provenance();
      if (from.partial) bad_examples_->AddPartial(from);
      Place(std::move(item), outbox);
    } else if (item->holds_credit) {
      outbox.Consumed(1);
    }
    if (ends_epoch) EndEpoch(outbox);
    if (!options_.holds_batches()) SendHeld(outbox);
    ++places_;
  } catch (const Error& error) {
    Fail(error, outbox);
  }
}

void BatchJoint::Fail(const Error& error, Outbox& outbox) {
  inlet_.NoteFailure();
  // Behind a batch that the place of the error completed, a run that goes on would not meet it.
  if (held_ && held_->places().end > places_) {
    SendBatch(std::exchange(held_, nullptr), outbox, /*by_failure=*/true);
  }
  End(std::make_shared<Error>(error), outbox);
}

void BatchJoint::CountNeed(const Item& item) {
  need_ = item.need;
  if (!item.example) return;
  example_size_.Add(BytesOf(*item.example));
  shared_size_.Add(SharedBytesOf(*item.example));
}

// Before a batch goes out, so that with the first one it is known whether the cap will do.
void BatchJoint::CheckMemory() {
  if (options_.memory_cap == 0 || !partial_) return;
  const uint64_t bytes = NeedOfAll(need_, {.window = window_,
                                           .size = options_.batch.size(),
                                           .batches_echoed = options_.batches_echoed,
                                           .batch_bytes = partial_->bytes(),
                                           .example_bytes = example_size_.bytes(),
                                           .shared_bytes = shared_size_.bytes()});
  if (CapFor(bytes) <= options_.memory_cap) return;
  partial_ = nullptr;
  // With room for later examples, should they be larger.
  const uint64_t wanted = CapFor(bytes + bytes / 4);
  throw Error({.code = ErrorCode::kResourceExhausted,
               .what = "too small for the buffers that the spec asks for; about " +
                       std::to_string(wanted - options_.memory_cap) + " bytes are missing",
               .where = "RuntimeOptions.memory_cap",
               .got = std::to_string(options_.memory_cap),
               .wanted = "about " + std::to_string(wanted)});
}

void BatchJoint::Place(std::shared_ptr<Item> item, Outbox& outbox) {
  if (!partial_) {
    if (!options_.drop()) SendHeld(outbox);
    partial_ =
        std::make_shared<BatchBuilder>(options_.batch.size(), *item, writer_, pool_, allocator_);
    partial_->set_begin(places_);
  }
  partial_->Reserve(*item);
  ++in_flight_;
  partial_->set_end(places_ + 1);
  partial_->set_epoch(item->stream_epoch);
  if (item->ends_epoch && options_.steps_per_epoch == 0) partial_->set_ends_epoch();
  if (ends_stream_) partial_->set_ends_stream();
  item->builder = partial_;
  outbox.SendAs(0, Message::Of(std::move(item)));
  if (partial_->size() < options_.batch.size()) return;
  CheckMemory();
  SendHeld(outbox);
  held_ = std::move(partial_);
}

// Echoes that are the moment's decide nothing about an epoch.
bool BatchJoint::CountsForEpoch(const Item& item) const {
  return !options_.adaptive_echo || item.identity.use[*options_.adaptive_echo] == 0;
}

void BatchJoint::CountPlace(const Item& item) {
  const uint64_t count = CountsForEpoch(item) ? 1 : 0;
  (item.example ? epoch_.examples : item.bad ? epoch_.bad : epoch_.filtered_out) += count;
  bad_examples_->CountPlace(item.identity, item.replaced.size() + (item.bad ? 1 : 0));
  for (const std::shared_ptr<const BadExample>& bad : item.replaced) {
    bad_examples_->Add(item.identity, *bad, BadExamples::Fate::kReplaced);
  }
  if (item.bad) bad_examples_->Add(item.identity, *item.bad, BadExamples::Fate::kSkipped);
}

void BatchJoint::EndEpoch(Outbox& outbox) {
  bad_examples_->EndEpoch();
  CheckNotEmpty(std::exchange(epoch_, {}));
  CheckMemory();
  if (ends_stream_ && partial_) partial_->set_ends_stream();
  if (options_.steps_per_epoch > 0) return;
  const bool takes_partial = options_.across_epochs() || !options_.drop();
  const std::shared_ptr<BatchBuilder>& last = takes_partial && partial_ ? partial_ : held_;
  if (last) {
    last->set_ends_epoch();
    if (ends_stream_) last->set_ends_stream();
    // Else a run that goes on behind it might still draw an echo into this epoch.
    last->set_next(places_ + 1);
  }
  SendHeld(outbox);
  if (!options_.across_epochs()) SendOrDropPartial(outbox);
}

// Nothing tells that the next epoch would be better, and without end there might never be a batch.
void BatchJoint::CheckNotEmpty(const EpochTally& epoch) const {
  if (options_.endless() && options_.drop() && !options_.across_epochs() && epoch.examples > 0 &&
      epoch.examples < options_.batch.size()) {
    throw Error({.code = ErrorCode::kEmpty,
                 .what = "an epoch gave no batch, and there is no last one: remainders are "
                         "dropped, and it has fewer examples than a batch",
                 .where = "batch",
                 .got = std::to_string(epoch.examples),
                 .wanted = std::to_string(options_.batch.size())});
  }
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
    outbox.Consumed(partial->credits());
    in_flight_ -= partial->size();
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
  outstanding_.push_back({.examples = builder->size(), .credits = builder->credits()});
  auto item = std::make_shared<Item>();
  item->stream_epoch = builder->epoch();
  item->ends_epoch = builder->ends_epoch();
  item->ends_stream = builder->ends_stream();
  logs_.batches.Add({.begin = builder->places().begin,
                     .end = builder->places().end,
                     .next = builder->places().next,
                     .epoch = builder->epoch(),
                     .ends_epoch = builder->ends_epoch(),
                     .by_failure = by_failure});
  item->builder = std::move(builder);
  outbox.SendAs(sent_ - 1, Message::Of(std::move(item)));
}

void BatchJoint::ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox) {
  const std::shared_ptr<const Destination> to = item->destination;
  Become(*to->item, *item);
  if (to->comes_first) {
    item->destination = nullptr;
    return inlet_.PutFirst(std::move(item));
  }
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
  const auto builder = std::make_shared<BatchBuilder>(to->batch->items.size(), *items.front(),
                                                      writer_, pool_, allocator_);
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
