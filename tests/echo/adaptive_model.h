#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <echopipe/echo/adaptive_order.h>

namespace echopipe::testing {

/// The promises of an adaptive echo point put down as plainly as can be: lists, and O(B) per draw.
class AdaptiveModel {
 public:
  using Item = AdaptiveState::Resident;
  /// The index among `n` candidates that draw k takes.
  using Picker = std::function<size_t(uint64_t draw, size_t n)>;

  AdaptiveModel(const AdaptiveOptions& options, Picker picker)
      : options_(options), picker_(std::move(picker)) {}

  bool CanEcho() const { return !drawable_.empty(); }
  /// Each gives the item as it is after the draw.
  Item Admit() {
    if (options_.max_factor > 1 && drawable_.size() + blocked_.size() == options_.shuffle_buffer) {
      DropMostUsed();
    }
    return Draw({.item = admitted_++, .first_draw = draws_});
  }
  Item Pass() {
    const Item item{.item = admitted_++, .uses = 1, .first_draw = draws_, .last_draw = draws_};
    ++draws_;
    Settle();
    return item;
  }
  Item Echo() {
    const size_t index = picker_(draws_, drawable_.size());
    const Item item = drawable_[index];
    RemoveDrawable(index);
    return Draw(item);
  }

  AdaptiveState State() const {
    return {.admitted = admitted_, .draws = draws_, .drawable = drawable_, .blocked = blocked_};
  }

 private:
  Item Draw(Item item) {
    ++item.uses;
    item.last_draw = draws_++;
    if (item.uses < options_.max_factor) blocked_.push_back(item);
    Settle();
    return item;
  }
  void Settle() {
    const auto too_old = [this](const Item& item) {
      return draws_ - item.first_draw > options_.max_age;
    };
    std::erase_if(blocked_, too_old);
    for (size_t i = drawable_.size(); i-- > 0;) {
      if (too_old(drawable_[i])) RemoveDrawable(i);
    }
    while (!blocked_.empty() && draws_ - blocked_.front().last_draw >= options_.spacing) {
      drawable_.push_back(blocked_.front());
      blocked_.erase(blocked_.begin());
    }
  }
  void DropMostUsed() {
    Item most = {};
    for (const auto* items : {&drawable_, &blocked_}) {
      for (const Item& item : *items) {
        if (item.uses > most.uses || (item.uses == most.uses && item.last_draw < most.last_draw)) {
          most = item;
        }
      }
    }
    std::erase(blocked_, most);
    const auto found = std::ranges::find(drawable_, most);
    if (found != drawable_.end()) RemoveDrawable(static_cast<size_t>(found - drawable_.begin()));
  }
  // The last takes its place.
  void RemoveDrawable(size_t index) {
    drawable_[index] = drawable_.back();
    drawable_.pop_back();
  }

  AdaptiveOptions options_;
  Picker picker_;
  std::vector<Item> drawable_;
  std::vector<Item> blocked_;
  uint64_t admitted_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace echopipe::testing
