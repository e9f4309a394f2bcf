#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/echo/draw_random.h>
#include <echopipe/echo/echo_factor.h>
#include <echopipe/echo/echo_order.h>

namespace echopipe {

/// What an echo point is to do that repeats only what its consumer would else wait for.
struct ECHOPIPE_EXPORT AdaptiveOptions {
  static constexpr uint32_t kMaxFactor = EchoFactor::kMax;

  uint32_t max_factor = 8;          ///< most uses of one item: 1..kMaxFactor
  uint64_t shuffle_buffer = 1;      ///< used items held: 1..2^31
  uint64_t spacing = 0;             ///< least draws between two of one item: <= shuffle_buffer
  uint64_t max_age = ~uint64_t{0};  ///< most draws since an item's fresh use: >= spacing and 1
  uint64_t seed = 0;
  uint64_t point = 0;  ///< tells the echo points of one pipeline apart

  /// Throws kInvalidArgument that names the setting.
  void Validate() const;
};

/// An adaptive echo point's identities and counters: enough to go on from here.
struct ECHOPIPE_EXPORT AdaptiveState {
  struct Resident {
    uint64_t item = 0;  ///< the how-manieth admitted, from 0
    uint32_t uses = 0;  ///< so far
    uint64_t first_draw = 0;
    uint64_t last_draw = 0;
    bool operator==(const Resident&) const = default;
  };

  uint64_t admitted = 0;
  uint64_t draws = 0;
  std::vector<Resident> drawable = {};  ///< in the order that draws are counted in
  std::vector<Resident> blocked = {};   ///< by spacing, drawn longest ago first
  bool operator==(const AdaptiveState&) const = default;

  /// Throws kInvalidArgument that says what no run under these options could have left behind.
  void Validate(const AdaptiveOptions& options) const;
};

/// Which item an adaptive echo point uses next: the pure order, in terms of slots of its buffer.
///
///     a b c d ...  -->  a b c  -->  b a  -->  d ...
///                      (fresh)    (echoes)
///
/// A draw is fresh or an echo; the caller says which, and the order is a function of that and the
/// options.
///
///   fresh  The next item, at once and in order. It enters the pool of used items; if that is full,
///          the item used most leaves (of several, the one drawn longest ago).
///   echo   Draw k is uniform over the pool's items that may be drawn: all but those of the S - 1
///          last draws. There may be none.
///
/// An item leaves with its last use, at max_factor, and when the next draw would be more than
/// max_age draws after its first.
///
/// "Uniform over" a list that grows at its end, and whose last takes the place of one that leaves.
/// Random numbers are Philox(seed, point, k), one block for four draws, without bias.
/// Threads: one caller at a time.
/// Cost: O(1) per call; no allocation once the pool has filled.
class ECHOPIPE_EXPORT AdaptiveOrder {
 public:
  using Slot = EchoOrder::Slot;
  using Pick = EchoOrder::Pick;
  static constexpr Slot kNone = ~Slot{0};

  explicit AdaptiveOrder(const AdaptiveOptions& options);
  /// Goes on from a state told by State(). Its residents get the slots 0, 1, 2, ..., the drawable
  /// first, then the blocked. Throws kInvalidArgument if the state is impossible.
  AdaptiveOrder(const AdaptiveOptions& options, const AdaptiveState& state);

  /// The fresh use of the next item.
  Pick Admit();
  /// The same of one that is not worth repeating, a tombstone: its place counts as an item and a
  /// draw, but it does not enter the pool. The pick has no slot.
  Pick Pass();
  /// Whether an item may be drawn again now.
  bool CanEcho() const { return !drawable_.empty(); }
  /// The next use of an item of the pool. Precondition: CanEcho().
  Pick Echo();
  /// The slots whose items have left with the last draw. If it was fresh, its item may have taken
  /// one of them.
  std::span<const Slot> vacated() const { return {vacated_.data(), vacated_count_}; }

  uint64_t residents() const { return residents_; }
  uint64_t admitted() const { return admitted_; }
  uint64_t draws() const { return draws_; }
  /// The most echoes that may still be drawn if no item comes. Spacing may hold back some uses of
  /// the last S - 1 items.
  uint64_t uses_left() const { return uses_left_; }
  AdaptiveState State() const;
  /// The slots of the residents that State() tells of, in its order: drawable, then blocked.
  std::vector<Slot> ResidentSlots() const;

 private:
  /// Slots one behind another, any of which may leave.
  struct Line {
    Slot first = kNone;
    Slot last = kNone;
  };
  struct Neighbours {
    Slot before = kNone;
    Slot after = kNone;
  };
  using Links = std::vector<Neighbours>;  // by slot

  static void Append(Links& links, Line& line, Slot slot);
  static void Remove(Links& links, Line& line, Slot slot);

  Slot NewSlot();
  Slot MostUsed() const;
  Pick Use(Slot slot);
  void AppendToLevel(Slot slot);
  void RemoveFromLevel(Slot slot);
  void MakeDrawable(Slot slot);
  void RemoveDrawable(Slot slot);
  void Leave(Slot slot);
  void Vacate(Slot slot);
  void Settle();

  AdaptiveOptions options_;
  DrawRandom random_;
  std::vector<AdaptiveState::Resident> slots_;
  std::vector<Slot> free_;
  std::vector<Slot> drawable_;
  std::vector<uint32_t> place_;  // by slot: in drawable_; kNone if blocked
  Line blocked_;                 // by spacing, drawn longest ago first
  Links blocked_links_;
  Line by_age_;  // fresh longest ago first
  Links age_links_;
  std::vector<Line> levels_;  // by uses: drawn longest ago first
  Links level_links_;
  std::vector<uint64_t> filled_levels_;  // bit u: levels_[u] is not empty
  std::array<Slot, 2> vacated_{};
  size_t vacated_count_ = 0;
  uint64_t residents_ = 0;
  uint64_t admitted_ = 0;
  uint64_t draws_ = 0;
  uint64_t uses_left_ = 0;
};

}  // namespace echopipe
