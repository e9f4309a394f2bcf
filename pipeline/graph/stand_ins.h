#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace echopipe::internal {

/// What an edge's bad places have to do with what follows them.
struct StandInRule {
  bool replaces = false;  ///< else they go on as they are
  size_t edge = 0;        ///< among those in front of the echo points of examples, and of batch
  std::optional<size_t> adaptive_echo = {};  ///< its place among these echo points
};

/// Where an edge's StandIns stand.
template <class T>
struct StandInsState {
  std::vector<std::shared_ptr<const T>> held = {};  ///< tombstones, in order
  std::shared_ptr<const T> good = nullptr;          ///< has come, and goes on behind these
  bool released = false;                            ///< the held ones go on as they are
  bool epoch_has_good = false;                      ///< one of the epoch under way has gone on
};

/// The order of an edge in which the next good item takes the places of the bad ones before it.
///
///     a x y b c  -->  a b b b c
///     (x, y bad)      (as a, x, y, b, c)
///
/// A place whose item is bad is held back until a good item comes, in a later epoch if need be.
/// Then it goes on under its own identity and epoch, with that item's data; the item itself follows
/// in its own place. What was filtered out keeps its place. Held ones go on as the tombstones they
/// are when nothing more comes, and at the end of an epoch that had no good item: no search is
/// endless.
///
/// Right behind an adaptive echo point, echoes stand in for nobody, nobody for them, and they
/// overtake what is held: without them, the rest is what it would be. An overtaker is of the epoch
/// whose places it overtakes.
///
/// Of T are asked: IsGood(), IsBad(), StandIn(place, good, edge) and Overtake(item, held).
/// Order      A function of what comes, alone.
/// Buffering  One good item; of those held, what T holds without its data.
/// Sharing    Stand-ins alias the data of the one whose it is.
/// Threads    None: one caller at a time.
template <class T>
class StandIns {
 public:
  explicit StandIns(StandInRule rule) : rule_(rule) {}
  /// Goes on from a state, whose good item is to be put first.
  StandIns(StandInRule rule, std::vector<std::shared_ptr<T>> held, bool released,
           bool epoch_has_good)
      : rule_(rule),
        held_(held.begin(), held.end()),
        released_(released),
        epoch_has_good_(epoch_has_good) {}

  /// Whether something goes on before another item is needed.
  bool HasNext() const { return passing_ || good_ || released_; }
  /// Precondition: HasNext().
  std::shared_ptr<T> Next() {
    if (passing_) return std::exchange(passing_, nullptr);
    if (held_.empty()) {
      epoch_has_good_ = !good_->ends_epoch;
      return std::exchange(good_, nullptr);
    }
    std::shared_ptr<T> place = std::move(held_.front());
    held_.pop_front();
    if (held_.empty()) released_ = false;
    return good_ && IsBad(*place) ? StandIn(*place, *good_, rule_.edge) : place;
  }
  /// What is next on the edge; true if it is held back. Precondition: not HasNext().
  bool Put(std::shared_ptr<T> item) {
    if (!rule_.replaces) return Pass(std::move(item));
    if (IsEcho(*item)) {
      if (!held_.empty()) Overtake(*item, *held_.front());
      return Pass(std::move(item));
    }
    if (IsGood(*item)) {
      good_ = std::move(item);
      return false;
    }
    const bool ends_epoch = item->ends_epoch;
    const bool is_held = IsBad(*item) || !held_.empty();
    if (is_held) {
      held_.push_back(std::move(item));
    } else {
      Pass(std::move(item));
    }
    if (ends_epoch) {
      released_ = !epoch_has_good_ && !held_.empty();
      epoch_has_good_ = false;
    }
    return is_held;
  }
  /// Nothing more comes. Precondition: not HasNext().
  void Close() { released_ = !held_.empty(); }

  /// Precondition: nothing passes.
  StandInsState<T> State() const {
    return {.held = {held_.begin(), held_.end()},
            .good = good_,
            .released = released_,
            .epoch_has_good = epoch_has_good_};
  }
  /// What has come and goes on as it is, or null.
  const T* waiting() const { return passing_ ? passing_.get() : good_.get(); }

 private:
  bool Pass(std::shared_ptr<T> item) {
    passing_ = std::move(item);
    return false;
  }
  // Behind a fixed echo the adaptive one's echoes decide the order anyway, and may end an epoch.
  bool IsEcho(const T& item) const {
    return rule_.adaptive_echo && *rule_.adaptive_echo + 1 == rule_.edge &&
           item.identity.use[*rule_.adaptive_echo] > 0;
  }

  StandInRule rule_;
  std::deque<std::shared_ptr<T>> held_;
  std::shared_ptr<T> passing_;
  std::shared_ptr<T> good_;
  bool released_ = false;
  bool epoch_has_good_ = false;
};

}  // namespace echopipe::internal
