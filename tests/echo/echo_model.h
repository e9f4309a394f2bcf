#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <echopipe/base/random.h>
#include <echopipe/echo/echo_order.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe::testing {

/// The promises of an echo point put down as plainly as can be: lists, and O(B) per draw.
class EchoModel {
 public:
  struct Item {
    uint64_t item = 0;
    uint64_t uses = 0;
    uint64_t uses_left = 0;
    uint64_t first_draw = 0;
    uint64_t last_draw = 0;
  };
  /// The index of the candidate that draw k takes.
  using Picker = std::function<size_t(uint64_t draw, const std::vector<Item>& candidates)>;

  EchoModel(const EchoOptions& options, Picker picker)
      : options_(options), picker_(std::move(picker)) {}

  bool HasRoom() const {
    const uint64_t target =
        std::min(options_.shuffle_buffer, std::max<uint64_t>(options_.spacing, 1) + draws_ / 16);
    return !closed_ && drawable_.size() + blocked_.size() < target;
  }
  void Offer() {
    drawable_.push_back({.item = admitted_, .uses_left = ExactShare(admitted_, options_.factor)});
    ++admitted_;
  }
  void Close() { closed_ = true; }
  void Reopen() { closed_ = false; }

  /// The item as it is after the draw.
  std::optional<Item> Draw() {
    if (HasRoom() || drawable_.size() + blocked_.size() == 0) return std::nullopt;
    while (!blocked_.empty() && blocked_.front().last_draw + options_.spacing <= draws_) {
      drawable_.push_back(blocked_.front());
      blocked_.erase(blocked_.begin());
    }
    Item item = Take();
    if (item.uses == 0) item.first_draw = draws_;
    item.last_draw = draws_;
    ++item.uses;
    --item.uses_left;
    ++draws_;
    if (item.uses_left > 0) {
      if (options_.grouped) {
        drawable_.insert(drawable_.begin(), item);
        in_group_ = true;
      } else {
        (options_.spacing == 0 ? drawable_ : blocked_).push_back(item);
      }
    }
    return item;
  }
  uint64_t exceptions() const { return exceptions_; }

 private:
  Item Take() {
    if (in_group_) {
      in_group_ = false;
      return TakeAt(drawable_, 0);
    }
    if (drawable_.empty()) {
      ++exceptions_;
      return TakeAt(blocked_, 0);
    }
    uint64_t most = 0;
    for (const Item& item : drawable_) most = std::max(most, item.uses_left);
    std::vector<Item> candidates;
    std::vector<size_t> places;
    for (size_t i = 0; i < drawable_.size(); ++i) {
      if (closed_ && drawable_[i].uses_left != most) continue;
      candidates.push_back(drawable_[i]);
      places.push_back(i);
    }
    const size_t place = places[picker_(draws_, candidates)];
    // The last candidate takes the place of the one drawn.
    std::swap(drawable_[place], drawable_[places.back()]);
    return TakeAt(drawable_, places.back());
  }
  static Item TakeAt(std::vector<Item>& items, size_t index) {
    const Item item = items[index];
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
    return item;
  }

  EchoOptions options_;
  Picker picker_;
  std::vector<Item> drawable_;
  std::vector<Item> blocked_;
  uint64_t admitted_ = 0;
  uint64_t draws_ = 0;
  uint64_t exceptions_ = 0;
  bool closed_ = false;
  bool in_group_ = false;
};

/// Philox(seed, point, k) as documented, without anything kept from draw to draw.
class ModelRandom {
 public:
  ModelRandom(uint64_t seed, uint64_t point)
      : key_(HashToKey(std::array<uint64_t, 3>{0x6563686f, seed, point})) {}

  uint32_t Below(uint64_t draw, uint64_t n) const {
    uint64_t word = Block(draw / 4, 0)[draw % 4];
    for (uint32_t attempt = 1; word * n % kWords < kWords % n; ++attempt) {
      word = Block(draw, attempt)[0];
    }
    return static_cast<uint32_t>(word * n / kWords);
  }
  std::array<uint32_t, 4> Block(uint64_t number, uint32_t attempt) const {
    return Philox4x32(
        {static_cast<uint32_t>(number % kWords), static_cast<uint32_t>(number / kWords), attempt,
         static_cast<uint32_t>(key_.high % kWords)},
        {static_cast<uint32_t>(key_.low % kWords), static_cast<uint32_t>(key_.low / kWords)});
  }

 private:
  static constexpr uint64_t kWords = uint64_t{1} << 32;
  RandomKey key_;
};

}  // namespace echopipe::testing
