#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/graph/shadow.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe::internal {

class BatchBuilder;

/// What a record read again becomes: a resident of an echo point, or a member of a batch that is
/// one.
struct Destination {
  size_t echo = 0;  ///< among the echo points of examples, or of batches
  EchoOrder::Slot slot = 0;
  std::shared_ptr<const ShadowItem> item;
  std::shared_ptr<const ShadowBatch> batch = nullptr;  ///< null if the echo is of examples
  size_t member = 0;                                   ///< of the batch
  /// No resident, but what an edge's held places wait for, before all else that comes over it; then
  /// `echo` is the edge.
  bool comes_first = false;
};

/// One place in the stream between two nodes: an example, a batch, or a tombstone (neither).
///
/// One that is made again for an echo point's buffer has a destination, and no place in the stream:
/// it needs no credit and has no number.
///
/// Owned by one node at a time until it enters an echo buffer; immutable from then on.
struct Item {
  Identity identity;
  uint64_t age = 0;
  /// Which epoch this place of the stream belongs to, and whether it is the epoch's last place. At
  /// an echo point both are counted in draws: n places become floor(n e).
  uint64_t stream_epoch = 0;
  bool ends_epoch = false;
  bool ends_stream = false;  ///< of a batch: no other will come; where that is known
  /// For its place in the window of the edge that it is on.
  bool holds_credit = true;

  MemoryNeed need;

  std::shared_ptr<const Example> example;
  std::shared_ptr<const BadExample> bad;  ///< why it is a tombstone; null if it was filtered out
  /// What was bad in this place before it was filled with others' data, and whose that is now.
  std::vector<std::shared_ptr<const BadExample>> replaced;
  std::optional<RecordOrigin> stands_in;

  std::optional<WritingStage::Output> written;  ///< what the last stage will write into the batch
  std::shared_ptr<BatchBuilder> builder;        ///< the batch it was given a slot in
  size_t slot = 0;

  std::shared_ptr<const Batch::Content> batch;

  std::shared_ptr<const Destination> destination;
};

inline bool IsGood(const Item& item) { return item.example || item.batch; }
inline bool IsBad(const Item& item) { return !IsGood(item) && item.bad; }

/// The place of a bad item with the data of a good one.
inline std::shared_ptr<Item> StandIn(const Item& place, const Item& good, size_t /*edge*/) {
  auto item = std::make_shared<Item>(place);
  item->replaced.push_back(std::exchange(item->bad, nullptr));
  item->example = good.example;
  item->written = good.written;
  item->need = good.need;
  item->stands_in = good.stands_in.value_or(
      RecordOrigin{.epoch = good.identity.epoch, .ordinal = good.identity.ordinal});
  return item;
}

inline void MakeAs(const MadeItem& made, Item& item) {
  item.identity = made.identity;
  item.age = made.age;
  item.stands_in = made.stands_in;
}
/// Makes a tombstone, or what has been read again, what `from` tells of.
inline void Become(const ShadowItem& from, Item& item) {
  MakeAs(MadeNow(from), item);
  item.stream_epoch = from.stream_epoch;
  item.ends_epoch = from.ends_epoch;
  item.replaced = from.replaced;
  item.holds_credit = false;
}

/// It comes before `held` now, which may be the last of its epoch.
inline void Overtake(Item& item, const Item& held) { item.stream_epoch = held.stream_epoch; }

/// What travels between nodes.
///
/// Downstream go items, numbered without a gap on each edge, then one end. Upstream go credits: so
/// many more items may be sent. A wake tells the source that something has arrived.
struct Message {
  enum class Kind { kItem, kEnd, kCredit, kWake };

  Kind kind = Kind::kWake;
  uint64_t sequence = 0;               ///< kItem, kEnd
  uint64_t credit = 0;                 ///< kCredit
  std::shared_ptr<Item> item;          ///< kItem
  std::shared_ptr<const Error> error;  ///< kEnd: null at the end of the data

  static Message Of(std::shared_ptr<Item> item) {
    Message message;
    message.kind = Kind::kItem;
    message.item = std::move(item);
    return message;
  }
  static Message End(std::shared_ptr<const Error> error) {
    Message message;
    message.kind = Kind::kEnd;
    message.error = std::move(error);
    return message;
  }
  static Message Credit(uint64_t credit) {
    Message message;
    message.kind = Kind::kCredit;
    message.credit = credit;
    return message;
  }
};

/// Puts messages that come from a parallel node back into the order of their numbers.
///
/// Every number arrives; at most `window` items and one end are under way at once.
class SequenceRing {
 public:
  explicit SequenceRing(uint64_t window) : slots_(window + 1) {}

  void Put(Message message) {
    std::optional<Message>& slot = slots_[message.sequence % slots_.size()];
    slot = std::move(message);
    ++count_;
  }
  /// The next in order, or null if it has not arrived.
  const Message* Front() const {
    const std::optional<Message>& slot = slots_[next_ % slots_.size()];
    return slot ? &*slot : nullptr;
  }
  /// Precondition: Front() != nullptr.
  Message Pop() {
    Message message = std::move(*slots_[next_ % slots_.size()]);
    slots_[next_++ % slots_.size()].reset();
    --count_;
    return message;
  }
  /// Messages that have arrived and wait.
  uint64_t count() const { return count_; }

 private:
  std::vector<std::optional<Message>> slots_;
  uint64_t next_ = 0;
  uint64_t count_ = 0;
};

}  // namespace echopipe::internal
