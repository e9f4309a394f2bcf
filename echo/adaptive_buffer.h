#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_order.h>
#include <echopipe/echo/echo_buffer.h>

namespace echopipe {

/// Hands items on as they come, and repeats used ones when it is asked to.
///
///     a b c d ...  -->  a b c (b a) d ...
///                       [ pool of 3 ]
///
/// Order      Fresh items in theirs; echoes as AdaptiveOrder says.
/// Buffering  At most `shuffle_buffer` items, all of them used.
/// Sharing    Uses of one item alias one immutable object.
/// End        Nothing is owed: what is in the pool has been used.
/// Threads    None: one caller at a time.
/// Cost       O(1) per call; no allocation once the pool has filled.
template <class T>
class AdaptiveBuffer {
 public:
  explicit AdaptiveBuffer(const AdaptiveOptions& options) : order_(options) {}
  /// Goes on from a state; `items` are its residents, the drawable first, then the blocked, and
  /// their slots are 0, 1, 2, ... An item may be null until Put().
  /// Throws kInvalidArgument if the state is impossible or not of so many items.
  AdaptiveBuffer(const AdaptiveOptions& options, const AdaptiveState& state,
                 std::vector<std::shared_ptr<const T>> items)
      : order_(options, state), items_(std::move(items)) {
    if (items_.size() == order_.residents()) return;
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "items that are not the residents",
                 .where = "state of an echo point",
                 .got = std::to_string(items_.size()),
                 .wanted = std::to_string(order_.residents())});
  }

  /// The fresh use of the next item, which enters the pool.
  Use<T> Admit(std::shared_ptr<const T> item) {
    const EchoOrder::Pick pick = order_.Admit();
    LetGo();
    if (!pick.last) {
      if (pick.slot >= items_.size()) items_.resize(pick.slot + size_t{1});
      items_[pick.slot] = item;
    }
    return MakeUse(pick, std::move(item));
  }
  /// The same of a tombstone, which does not.
  Use<T> Pass(std::shared_ptr<const T> item) {
    const EchoOrder::Pick pick = order_.Pass();
    LetGo();
    return MakeUse(pick, std::move(item));
  }
  /// Whether an item may be drawn again now.
  bool CanEcho() const { return order_.CanEcho(); }
  /// The next use of an item of the pool. Precondition: CanEcho().
  Use<T> Echo() {
    const EchoOrder::Pick pick = order_.Echo();
    Use<T> use = MakeUse(pick, items_[pick.slot]);
    LetGo();
    return use;
  }
  /// Gives a slot its item, which has come later. Precondition: nothing else has been in it.
  void Put(EchoOrder::Slot slot, std::shared_ptr<const T> item) { items_[slot] = std::move(item); }
  /// Counters and the rest of what the order tells about itself.
  const AdaptiveOrder& order() const { return order_; }
  /// Identities and counters alone: enough to go on from here.
  AdaptiveState State() const { return order_.State(); }
  /// The residents, in the order of State().
  std::vector<std::shared_ptr<const T>> Residents() const {
    std::vector<std::shared_ptr<const T>> items;
    for (const EchoOrder::Slot slot : order_.ResidentSlots()) items.push_back(items_[slot]);
    return items;
  }

 private:
  void LetGo() {
    for (const EchoOrder::Slot slot : order_.vacated()) items_[slot] = nullptr;
  }
  static Use<T> MakeUse(const EchoOrder::Pick& pick, std::shared_ptr<const T> item) {
    return {.item = std::move(item),
            .use = pick.use,
            .draw = pick.draw,
            .age = pick.age,
            .last = pick.last,
            .slot = pick.slot};
  }

  AdaptiveOrder order_;
  std::vector<std::shared_ptr<const T>> items_;  // by slot
};

}  // namespace echopipe
