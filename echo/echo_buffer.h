#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_order.h>

namespace echopipe {

/// One use of an item.
template <class T>
struct Use {
  std::shared_ptr<const T> item;
  uint32_t use = 0;   ///< 0 is the fresh one
  uint64_t draw = 0;  ///< the how-manieth of the echo point, from 0
  uint64_t age = 0;   ///< draws since its fresh use
  bool last = false;  ///< used up
  EchoOrder::Slot slot = 0;
};

/// Repeats items: emits each one `factor` times, drawn at random from a window.
///
///     a b c d ...  -->  [ shuffle buffer of 3 ]  -->  b a c b a d c d ...
///
/// Order      A function of the seed and the input order alone (EchoOrder says which).
/// Buffering  At most `shuffle_buffer` distinct items.
/// Sharing    Uses of one item alias one immutable object.
/// End        Close() lets the buffer drain; no use is lost.
/// Threads    None: one caller at a time.
/// Cost       O(1) per call, amortised after Close(); no allocation once the buffer has filled.
template <class T>
class EchoBuffer {
 public:
  explicit EchoBuffer(const EchoOptions& options) : order_(options) {}
  /// Goes on from a state; `items` are its residents, the drawable first, then the blocked, and
  /// their slots are 0, 1, 2, ... An item may be null until Put().
  /// Throws kInvalidArgument if the state is impossible or not of so many items.
  EchoBuffer(const EchoOptions& options, const EchoState& state,
             std::vector<std::shared_ptr<const T>> items)
      : order_(options, state), items_(std::move(items)) {
    if (items_.size() == order_.residents()) return;
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "items that are not the residents",
                 .where = "state of an echo point",
                 .got = std::to_string(items_.size()),
                 .wanted = std::to_string(order_.residents())});
  }

  /// True while another fresh item may (and must) be offered before the next draw.
  bool HasRoom() const { return order_.HasRoom(); }
  /// Takes the next fresh item. Precondition: HasRoom().
  void Offer(std::shared_ptr<const T> item) {
    const size_t slot = order_.Offer();
    if (slot >= items_.size()) items_.resize(slot + 1);
    items_[slot] = std::move(item);
  }
  /// No fresh item will follow, or none until Reopen(). To be called when HasRoom(), as Offer():
  /// the order depends on after which draw it comes.
  void Close() { order_.Close(); }
  /// Fresh items follow again. Precondition: closed and drained.
  void Reopen() { order_.Reopen(); }
  /// The next use, or nothing when a fresh item is needed first or all are used up.
  std::optional<Use<T>> Draw() {
    const std::optional<EchoOrder::Pick> pick = order_.Draw();
    if (!pick) return std::nullopt;
    std::shared_ptr<const T>& item = items_[pick->slot];
    return Use<T>{.item = pick->last ? std::move(item) : item,
                  .use = pick->use,
                  .draw = pick->draw,
                  .age = pick->age,
                  .last = pick->last,
                  .slot = pick->slot};
  }
  /// Gives a slot its item, which has come later. Precondition: nothing else has been in it.
  void Put(EchoOrder::Slot slot, std::shared_ptr<const T> item) { items_[slot] = std::move(item); }
  /// Counters and the rest of what the order tells about itself.
  const EchoOrder& order() const { return order_; }
  /// Identities and counters alone: enough to go on from here.
  EchoState State() const { return order_.State(); }
  /// The residents, in the order of State().
  std::vector<std::shared_ptr<const T>> Residents() const {
    std::vector<std::shared_ptr<const T>> items;
    for (const EchoOrder::Slot slot : order_.ResidentSlots()) items.push_back(items_[slot]);
    return items;
  }

 private:
  EchoOrder order_;
  std::vector<std::shared_ptr<const T>> items_;  // by slot
};

}  // namespace echopipe
