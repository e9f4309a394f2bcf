#include <utility>

#include <echopipe/pipeline/graph/inlet.h>

namespace echopipe::internal {

Inlet::Inlet(uint64_t window, StandInRule rule, std::optional<Start> start,
             Log<ShadowLogs::Gap>* gaps)
    : ring_(window),
      stand_ins_(start ? StandIns<Item>(rule, std::move(start->held), start->released,
                                        start->epoch_has_good)
                       : StandIns<Item>(rule)),
      gaps_(gaps),
      awaits_first_(start && start->awaits_first) {}

Inlet::Next Inlet::next(Outbox& outbox) {
  while (!stand_ins_.HasNext()) {
    if (ended_) return Next::kEnd;
    if (awaits_first_) {
      if (!first_) return Next::kNothing;
      awaits_first_ = false;
      Accept(std::move(first_), outbox);
      continue;
    }
    if (ring_.Front() == nullptr) return Next::kNothing;
    Message message = ring_.Pop();
    if (message.kind == Message::Kind::kItem) {
      Accept(std::move(message.item), outbox);
    } else {
      End(std::move(message.error));
    }
  }
  return Next::kItem;
}

void Inlet::Accept(std::shared_ptr<Item> item, Outbox& outbox) {
  if (gaps_ != nullptr && !item->example) gaps_->Add({.place = places_, .bad = item->bad});
  ++places_;
  const std::shared_ptr<Item> accepted = item;
  if (!stand_ins_.Put(std::move(item))) return;
  if (std::exchange(accepted->holds_credit, false)) outbox.Consumed(1);
}

void Inlet::End(std::shared_ptr<const Error> error) {
  if (gaps_ != nullptr && error) NoteFailure();
  ended_ = true;
  error_ = std::move(error);
  stand_ins_.Close();
}

uint64_t Inlet::waiting() const {
  const Item* item = stand_ins_.waiting();
  return ring_.count() + (item != nullptr && item->holds_credit ? 1 : 0);
}

}  // namespace echopipe::internal
