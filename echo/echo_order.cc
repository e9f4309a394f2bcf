#include <algorithm>
#include <bit>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_order.h>

namespace echopipe {
namespace {

constexpr uint64_t kMaxBuffer = uint64_t{1} << 31;
// Draws for each item that the fill target grows by.
constexpr uint64_t kDrawsPerFill = 16;

void Require(bool condition, const char* where, uint64_t got, const std::string& wanted) {
  if (condition) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "out of range",
               .where = where,
               .got = std::to_string(got),
               .wanted = wanted});
}

void RequirePossible(bool condition, const char* what) {
  if (condition) return;
  throw Error(
      {.code = ErrorCode::kInvalidArgument, .what = what, .where = "state of an echo point"});
}

}  // namespace

void EchoOptions::Validate() const {
  Require(shuffle_buffer >= 1 && shuffle_buffer <= kMaxBuffer, "echo.shuffle_buffer",
          shuffle_buffer, "1 to 2^31");
  Require(spacing <= shuffle_buffer, "echo.spacing", spacing,
          "at most the shuffle buffer's " + std::to_string(shuffle_buffer));
  Require(!grouped || spacing == 0, "echo.spacing", spacing, "0 with grouped");
}

EchoOrder::EchoOrder(const EchoOptions& options)
    : options_(options),
      key_(
          HashToKey(std::array<uint64_t, 3>{0x6563686f /* "echo" */, options.seed, options.point})),
      by_uses_(options.factor.MaxUses() + 1),
      used_levels_(by_uses_.size() / 64 + 1) {
  options_.Validate();
}

EchoOrder::EchoOrder(const EchoOptions& options, const EchoState& state, std::vector<Slot>* slots)
    : EchoOrder(options) {
  RequirePossible(state.drawable.size() + state.blocked.size() <= options.shuffle_buffer,
                  "more residents than the shuffle buffer holds");
  RequirePossible(state.share_remainder < EchoFactor::kUnit, "share out of range");
  RequirePossible(state.blocked.size() <= options.spacing, "more blocked than the spacing");
  RequirePossible(!state.in_group || (options.grouped && !state.drawable.empty()),
                  "a group without its item");
  admitted_ = state.admitted;
  draws_ = state.draws;
  exceptions_ = state.exceptions;
  share_remainder_ = state.share_remainder;
  closed_ = state.closed;
  const auto place = [&](const EchoState::Resident& resident) {
    RequirePossible(resident.uses_left >= 1 && resident.uses_left < by_uses_.size(),
                    "uses out of range");
    RequirePossible(resident.item < admitted_ && resident.last_draw <= draws_, "item out of range");
    const Slot slot = NewSlot();
    slots_[slot] = resident;
    slots->push_back(slot);
    return slot;
  };
  for (const EchoState::Resident& resident : state.drawable) MakeDrawable(place(resident));
  for (const EchoState::Resident& resident : state.blocked) {
    const Slot slot = place(resident);
    blocked_.resize(options_.spacing);
    blocked_[blocked_count_++] = slot;
  }
  if (state.in_group) {
    group_ = slots->front();
    const uint32_t uses_left = slots_[*group_].uses_left;
    std::vector<Slot>& level = closed_ ? by_uses_[uses_left] : drawable_;
    level.erase(level.begin());
    if (closed_ && level.empty()) used_levels_[uses_left / 64] &= ~(uint64_t{1} << uses_left % 64);
  }
}

uint64_t EchoOrder::FillTarget() const {
  return std::min(options_.shuffle_buffer,
                  std::max(options_.spacing, uint64_t{1}) + draws_ / kDrawsPerFill);
}

EchoOrder::Slot EchoOrder::NewSlot() {
  ++residents_;
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<Slot>(slots_.size() - 1);
  }
  const Slot slot = free_.back();
  free_.pop_back();
  return slot;
}

EchoOrder::Slot EchoOrder::Offer() {
  const Slot slot = NewSlot();
  share_remainder_ += static_cast<uint64_t>(options_.factor.millionths());
  slots_[slot] = {.item = admitted_++,
                  .uses_left = static_cast<uint32_t>(share_remainder_ / EchoFactor::kUnit)};
  share_remainder_ %= EchoFactor::kUnit;
  MakeDrawable(slot);
  return slot;
}

void EchoOrder::MakeDrawable(Slot slot) {
  if (!closed_) {
    drawable_.push_back(slot);
    return;
  }
  const uint32_t uses_left = slots_[slot].uses_left;
  by_uses_[uses_left].push_back(slot);
  used_levels_[uses_left / 64] |= uint64_t{1} << uses_left % 64;
}

void EchoOrder::Close() {
  if (closed_) return;
  closed_ = true;
  for (const Slot slot : drawable_) MakeDrawable(slot);
  drawable_.clear();
}

void EchoOrder::Reopen() { closed_ = false; }

// The item drawn at k - S may be drawn again at draw k.
void EchoOrder::Unblock() {
  while (blocked_count_ > 0) {
    const Slot slot = blocked_[blocked_head_];
    if (slots_[slot].last_draw + options_.spacing > draws_) return;
    TakeLongestAgo();
    MakeDrawable(slot);
  }
}

EchoOrder::Slot EchoOrder::TakeLongestAgo() {
  const Slot slot = blocked_[blocked_head_];
  blocked_head_ = (blocked_head_ + 1) % blocked_.size();
  --blocked_count_;
  return slot;
}

// Precondition: some level is not empty.
uint32_t EchoOrder::TopUses() const {
  size_t word = used_levels_.size() - 1;
  while (used_levels_[word] == 0) --word;
  return static_cast<uint32_t>(word * 64 + std::bit_width(used_levels_[word]) - 1);
}

// Precondition: something may be drawn.
EchoOrder::Slot EchoOrder::TakeDrawable() {
  const uint32_t top = closed_ ? TopUses() : 0;
  std::vector<Slot>& candidates = closed_ ? by_uses_[top] : drawable_;
  const uint32_t index = RandomBelow(static_cast<uint32_t>(candidates.size()));
  const Slot slot = candidates[index];
  candidates[index] = candidates.back();
  candidates.pop_back();
  if (closed_ && candidates.empty()) used_levels_[top / 64] &= ~(uint64_t{1} << top % 64);
  return slot;
}

std::optional<EchoOrder::Pick> EchoOrder::Draw() {
  if (HasRoom() || residents_ == 0) return std::nullopt;
  Unblock();
  Slot slot = 0;
  if (group_) {
    slot = *group_;
  } else if (residents_ > blocked_count_) {
    slot = TakeDrawable();
  } else {
    slot = TakeLongestAgo();
    ++exceptions_;
  }
  EchoState::Resident& resident = slots_[slot];
  if (resident.uses == 0) resident.first_draw = draws_;
  resident.last_draw = draws_;
  --resident.uses_left;
  const Pick pick{.slot = slot,
                  .item = resident.item,
                  .use = resident.uses++,
                  .draw = draws_,
                  .age = draws_ - resident.first_draw,
                  .last = resident.uses_left == 0};
  ++draws_;
  group_.reset();
  if (pick.last) {
    free_.push_back(slot);
    --residents_;
  } else if (options_.grouped) {
    group_ = slot;
  } else if (options_.spacing == 0) {
    MakeDrawable(slot);
  } else {
    if (blocked_.empty()) blocked_.resize(options_.spacing);
    blocked_[(blocked_head_ + blocked_count_++) % blocked_.size()] = slot;
  }
  return pick;
}

// Uniform over [0, n): Lemire's method on word k % 4 of block k / 4, then, in the rare case of a
// rejection, on blocks of this draw's own.
uint32_t EchoOrder::RandomBelow(uint32_t n) {
  const auto block = [this](uint64_t number, uint32_t attempt) {
    return Philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), attempt,
                       static_cast<uint32_t>(key_.high)},
                      {static_cast<uint32_t>(key_.low), static_cast<uint32_t>(key_.low >> 32)});
  };
  if (block_number_ != draws_ / 4) {
    block_number_ = draws_ / 4;
    block_ = block(block_number_, 0);
  }
  uint64_t product = uint64_t{block_[draws_ % 4]} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = -n % n;
    for (uint32_t attempt = 1; static_cast<uint32_t>(product) < threshold; ++attempt) {
      product = uint64_t{block(draws_, attempt)[0]} * n;
    }
  }
  return static_cast<uint32_t>(product >> 32);
}

EchoState EchoOrder::State() const {
  EchoState state{.admitted = admitted_,
                  .draws = draws_,
                  .exceptions = exceptions_,
                  .share_remainder = share_remainder_,
                  .closed = closed_,
                  .in_group = group_.has_value()};
  if (group_) state.drawable.push_back(slots_[*group_]);
  for (const Slot slot : drawable_) state.drawable.push_back(slots_[slot]);
  for (const std::vector<Slot>& level : by_uses_) {
    for (const Slot slot : level) state.drawable.push_back(slots_[slot]);
  }
  for (size_t i = 0; i < blocked_count_; ++i) {
    state.blocked.push_back(slots_[blocked_[(blocked_head_ + i) % blocked_.size()]]);
  }
  return state;
}

}  // namespace echopipe
