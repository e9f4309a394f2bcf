#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/echo/draw_random.h>
#include <echopipe/echo/echo_factor.h>

namespace echopipe {

/// What an echo point with a fixed factor is to do.
struct ECHOPIPE_EXPORT EchoOptions {
  EchoFactor factor{};
  uint64_t shuffle_buffer = 1;  ///< distinct items held: 1..2^31
  uint64_t spacing = 0;         ///< least draws between two draws of one item: <= shuffle_buffer
  bool grouped = false;         ///< an item's uses side by side; needs spacing 0
  uint64_t seed = 0;
  uint64_t point = 0;  ///< tells the echo points of one pipeline apart

  /// Throws kInvalidArgument that names the setting.
  void Validate() const;
  /// Residents that draw k waits for while the point is open: min(B, max(S, 1) + k / 16).
  uint64_t FillTarget(uint64_t draw) const {
    return std::min(shuffle_buffer, std::max(spacing, uint64_t{1}) + draw / 16);
  }
};

/// An echo point's identities and counters: enough to go on from here.
struct ECHOPIPE_EXPORT EchoState {
  struct Resident {
    uint64_t item = 0;  ///< the how-manieth admitted, from 0
    uint32_t uses = 0;  ///< so far
    uint32_t uses_left = 0;
    uint64_t first_draw = 0;  ///< meaningless while uses == 0
    uint64_t last_draw = 0;
    bool operator==(const Resident&) const = default;
  };

  uint64_t admitted = 0;
  uint64_t draws = 0;
  uint64_t exceptions = 0;
  uint64_t share_remainder = 0;  ///< of admitted * e, in millionths
  bool closed = false;
  bool in_group = false;                ///< grouped: the first drawable is being repeated
  std::vector<Resident> drawable = {};  ///< in the order that draws are counted in
  std::vector<Resident> blocked = {};   ///< by spacing, drawn longest ago first
  bool operator==(const EchoState&) const = default;

  /// Throws kInvalidArgument that says what no run under these options could have left behind.
  void Validate(const EchoOptions& options) const;
};

/// Which item an echo point uses next: the pure order, in terms of slots of its buffer.
///
/// In any state exactly one thing may happen: below the fill target and open, an item is admitted;
/// else one is drawn. The fill target at draw k is min(B, max(S, 1) + k / 16), so that the first
/// draws need not wait for the whole buffer. Hence the order is a function of the options and of
/// when Close() is called.
///
///   open    draw k is uniform over the items that may be drawn: all but those of the S - 1 last
///           draws, whatever uses they have left. There always is one.
///   closed  draw k is uniform over those of them with the most uses left, which keeps repeats
///           apart longest; if none may be drawn, the one drawn longest ago (an exception).
///
/// "Uniform over" a list that grows at its end, and whose last takes the place of the one drawn.
/// Random numbers are Philox(seed, point, k), one block for four draws, without bias.
/// Threads: one caller at a time.
/// Cost: O(1) per call, amortised after Close(); no allocation once the buffer has filled.
class ECHOPIPE_EXPORT EchoOrder {
 public:
  using Slot = uint32_t;

  struct Pick {
    Slot slot = 0;
    uint64_t item = 0;  ///< the how-manieth admitted, from 0
    uint32_t use = 0;   ///< 0 is the fresh one
    uint64_t draw = 0;  ///< k, from 0
    uint64_t age = 0;   ///< draws since its fresh use
    bool last = false;  ///< used up: the slot is free again
  };

  explicit EchoOrder(const EchoOptions& options);
  /// Goes on from a state told by State(). Its residents get the slots 0, 1, 2, ..., the drawable
  /// first, then the blocked. Throws kInvalidArgument if the state is impossible.
  EchoOrder(const EchoOptions& options, const EchoState& state);

  bool HasRoom() const { return !closed_ && residents_ < options_.FillTarget(draws_); }
  /// Admits the next item; its slot. Precondition: HasRoom().
  Slot Offer();
  void Close();
  /// Opens again after everything has been drawn. Precondition: closed and empty.
  void Reopen() { closed_ = false; }
  /// Nothing if an item is needed first (open) or all are used up (closed).
  std::optional<Pick> Draw();

  bool closed() const { return closed_; }
  bool empty() const { return residents_ == 0; }
  uint64_t residents() const { return residents_; }
  uint64_t admitted() const { return admitted_; }
  uint64_t draws() const { return draws_; }
  /// Draws in which spacing could not be kept.
  uint64_t exceptions() const { return exceptions_; }
  EchoState State() const;
  /// The slots of the residents that State() tells of, in its order: drawable, then blocked.
  std::vector<Slot> ResidentSlots() const;

 private:
  static constexpr Slot kNone = ~Slot{0};

  /// Slots one behind another, linked through next_.
  struct Line {
    Slot first = kNone;
    Slot last = kNone;
    bool empty() const { return first == kNone; }
  };
  /// Closed: the drawable with the same uses left, from drawable_[begin] on, then those waiting.
  struct Level {
    size_t begin = 0;
    Line waiting{};
  };

  Slot NewSlot();
  Slot NextSlot();
  void PutBack(Slot slot);
  void Unblock();
  void MakeDrawable(Slot slot);
  void Wait(Slot slot);
  void RaiseWaiting();
  Slot TakeDrawable();
  void Append(Line& line, Slot slot);
  std::vector<Slot> DrawableSlots() const;
  void AddLine(const Line& line, std::vector<Slot>* slots) const;
  Slot TakeFirst(Line& line);
  uint32_t TopUses() const;
  uint32_t TopWaiting() const;

  EchoOptions options_;
  DrawRandom random_;
  std::vector<EchoState::Resident> slots_;
  std::vector<Slot> next_;  // by slot
  std::vector<Slot> free_;
  // What may be drawn. Closed: by uses left, ascending, and draws are from the last level; what is
  // under the top and not in here yet waits at its level.
  std::vector<Slot> drawable_;
  std::vector<Level> levels_;             // by uses left
  std::vector<uint64_t> waiting_levels_;  // bit u: at levels_[u] some wait
  Line blocked_;                          // by spacing, drawn longest ago first
  std::optional<Slot> group_;
  uint64_t residents_ = 0;
  uint64_t admitted_ = 0;
  uint64_t draws_ = 0;
  uint64_t exceptions_ = 0;
  uint64_t share_remainder_ = 0;
  bool closed_ = false;
};

}  // namespace echopipe
