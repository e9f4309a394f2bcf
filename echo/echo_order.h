#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <echopipe/base/random.h>
#include <echopipe/echo/echo_factor.h>

namespace echopipe {

/// What an echo point with a fixed factor is to do.
struct EchoOptions {
  EchoFactor factor{};
  uint64_t shuffle_buffer = 1;  ///< distinct items held: 1..2^31
  uint64_t spacing = 0;         ///< least draws between two draws of one item: <= shuffle_buffer
  bool grouped = false;         ///< an item's uses side by side; needs spacing 0
  uint64_t seed = 0;
  uint64_t point = 0;  ///< tells the echo points of one pipeline apart

  /// Throws kInvalidArgument that names the setting.
  void Validate() const;
};

/// An echo point's identities and counters: enough to go on from here.
struct EchoState {
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
/// Random numbers are Philox(seed, point, k), one block for four draws, without bias.
/// Threads: one caller at a time.
/// Cost: O(1) per call; no allocation once the buffer has filled and been drained.
class EchoOrder {
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
  /// Goes on from a state told by State(). `slots` receives a slot for each resident, the drawable
  /// first. Throws kInvalidArgument if the state is impossible under these options.
  EchoOrder(const EchoOptions& options, const EchoState& state, std::vector<Slot>* slots);

  bool HasRoom() const { return !closed_ && residents_ < FillTarget(); }
  /// Admits the next item; its slot. Precondition: HasRoom().
  Slot Offer();
  void Close();
  /// Opens again after everything has been drawn. Precondition: closed and empty.
  void Reopen();
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

 private:
  uint64_t FillTarget() const;
  Slot NewSlot();
  void Unblock();
  void MakeDrawable(Slot slot);
  Slot TakeDrawable();
  Slot TakeLongestAgo();
  uint32_t RandomBelow(uint32_t n);
  uint32_t TopUses() const;

  EchoOptions options_;
  RandomKey key_;
  std::vector<EchoState::Resident> slots_;
  std::vector<Slot> free_;
  std::vector<Slot> drawable_;              // open: all that may be drawn
  std::vector<std::vector<Slot>> by_uses_;  // closed: the same, by uses left
  std::vector<uint64_t> used_levels_;       // bit u: by_uses_[u] is not empty
  std::vector<Slot> blocked_;               // ring, drawn longest ago first
  size_t blocked_head_ = 0;
  size_t blocked_count_ = 0;
  std::optional<Slot> group_;
  uint64_t residents_ = 0;
  uint64_t admitted_ = 0;
  uint64_t draws_ = 0;
  uint64_t exceptions_ = 0;
  uint64_t share_remainder_ = 0;
  bool closed_ = false;
  std::array<uint32_t, 4> block_{};
  uint64_t block_number_ = ~uint64_t{0};
};

}  // namespace echopipe
