#include <algorithm>
#include <bit>

#include <echopipe/echo/echo_order.h>

namespace echopipe {

EchoOrder::EchoOrder(const EchoOptions& options)
    : options_(options),
      random_(options.seed, options.point),
      levels_(options.factor.MaxUses() + 1),
      waiting_levels_(levels_.size() / 64 + 1) {
  options_.Validate();
}

EchoOrder::EchoOrder(const EchoOptions& options, const EchoState& state) : EchoOrder(options) {
  state.Validate(options);
  admitted_ = state.admitted;
  draws_ = state.draws;
  exceptions_ = state.exceptions;
  share_remainder_ = state.share_remainder;
  closed_ = state.closed;
  const auto place = [this](const EchoState::Resident& resident) {
    const Slot slot = NewSlot();
    slots_[slot] = resident;
    return slot;
  };
  for (const EchoState::Resident& resident : state.drawable) {
    const Slot slot = place(resident);
    if (state.in_group && !group_) {
      group_ = slot;
    } else {
      MakeDrawable(slot);
    }
  }
  for (const EchoState::Resident& resident : state.blocked) Append(blocked_, place(resident));
}

EchoOrder::Slot EchoOrder::NewSlot() {
  ++residents_;
  if (free_.empty()) {
    slots_.emplace_back();
    next_.push_back(kNone);
    // All that may ever be needed for so many slots, so that nothing grows later.
    drawable_.reserve(slots_.capacity());
    free_.reserve(slots_.capacity());
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

void EchoOrder::Append(Line& line, Slot slot) {
  (line.empty() ? line.first : next_[line.last]) = slot;
  next_[slot] = kNone;
  line.last = slot;
}

// Precondition: the line is not empty.
EchoOrder::Slot EchoOrder::TakeFirst(Line& line) {
  const Slot slot = line.first;
  line.first = next_[slot];
  return slot;
}

void EchoOrder::MakeDrawable(Slot slot) {
  if (closed_) {
    const uint32_t uses_left = slots_[slot].uses_left;
    if (uses_left < TopUses()) return Wait(slot);
    if (uses_left > TopUses()) levels_[uses_left].begin = drawable_.size();
  }
  drawable_.push_back(slot);
}

void EchoOrder::Wait(Slot slot) {
  const uint32_t uses_left = slots_[slot].uses_left;
  Append(levels_[uses_left].waiting, slot);
  waiting_levels_[uses_left / 64] |= uint64_t{1} << uses_left % 64;
}

// Once the top level is used up, those that waited at the next one join it.
void EchoOrder::RaiseWaiting() {
  const uint32_t uses_left = TopWaiting();
  if (uses_left == 0 || uses_left < TopUses()) return;
  Level& level = levels_[uses_left];
  if (uses_left > TopUses()) level.begin = drawable_.size();
  while (!level.waiting.empty()) drawable_.push_back(TakeFirst(level.waiting));
  waiting_levels_[uses_left / 64] &= ~(uint64_t{1} << uses_left % 64);
}

// Uses left at the highest level of drawable_; 0 if it is empty.
uint32_t EchoOrder::TopUses() const {
  return drawable_.empty() ? 0 : slots_[drawable_.back()].uses_left;
}

// Uses left at the highest level where some wait; 0 if none do.
uint32_t EchoOrder::TopWaiting() const {
  size_t word = waiting_levels_.size() - 1;
  while (word > 0 && waiting_levels_[word] == 0) --word;
  const uint64_t bits = waiting_levels_[word];
  return bits == 0 ? 0 : static_cast<uint32_t>(word * 64 + std::bit_width(bits) - 1);
}

void EchoOrder::Close() {
  if (closed_) return;
  closed_ = true;
  for (const Slot slot : drawable_) Wait(slot);
  drawable_.clear();
  RaiseWaiting();
}

// The item drawn at k - S may be drawn again at draw k.
void EchoOrder::Unblock() {
  while (!blocked_.empty() && slots_[blocked_.first].last_draw + options_.spacing <= draws_) {
    MakeDrawable(TakeFirst(blocked_));
  }
}

// Precondition: something may be drawn.
EchoOrder::Slot EchoOrder::TakeDrawable() {
  const size_t begin = closed_ ? levels_[TopUses()].begin : 0;
  const size_t index =
      begin + random_.Below(draws_, static_cast<uint32_t>(drawable_.size() - begin));
  const Slot slot = drawable_[index];
  drawable_[index] = drawable_.back();
  drawable_.pop_back();
  if (closed_ && drawable_.size() == begin) RaiseWaiting();
  return slot;
}

// Precondition: there is a resident.
EchoOrder::Slot EchoOrder::NextSlot() {
  if (group_) return *group_;
  if (!drawable_.empty()) return TakeDrawable();
  ++exceptions_;
  return TakeFirst(blocked_);
}

std::optional<EchoOrder::Pick> EchoOrder::Draw() {
  if (HasRoom() || residents_ == 0) return std::nullopt;
  Unblock();
  const Slot slot = NextSlot();
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
  PutBack(slot);
  return pick;
}

// Where a slot goes that has just been drawn.
void EchoOrder::PutBack(Slot slot) {
  group_.reset();
  if (slots_[slot].uses_left == 0) {
    free_.push_back(slot);
    --residents_;
  } else if (options_.grouped) {
    group_ = slot;
  } else if (options_.spacing == 0) {
    MakeDrawable(slot);
  } else {
    Append(blocked_, slot);
  }
}

EchoState EchoOrder::State() const {
  EchoState state{.admitted = admitted_,
                  .draws = draws_,
                  .exceptions = exceptions_,
                  .share_remainder = share_remainder_,
                  .closed = closed_,
                  .in_group = group_.has_value()};
  for (const Slot slot : DrawableSlots()) state.drawable.push_back(slots_[slot]);
  std::vector<Slot> blocked;
  AddLine(blocked_, &blocked);
  for (const Slot slot : blocked) state.blocked.push_back(slots_[slot]);
  return state;
}

std::vector<EchoOrder::Slot> EchoOrder::ResidentSlots() const {
  std::vector<Slot> slots = DrawableSlots();
  AddLine(blocked_, &slots);
  return slots;
}

// With the one under way in a group first. Closed: by uses left, as if no level waited.
std::vector<EchoOrder::Slot> EchoOrder::DrawableSlots() const {
  std::vector<Slot> slots = drawable_;
  if (closed_) {
    for (const Level& level : levels_) AddLine(level.waiting, &slots);
    std::ranges::stable_sort(slots, {}, [this](Slot slot) { return slots_[slot].uses_left; });
  }
  if (group_) slots.insert(slots.begin(), *group_);
  return slots;
}

void EchoOrder::AddLine(const Line& line, std::vector<Slot>* slots) const {
  for (Slot slot = line.first; slot != kNone; slot = next_[slot]) slots->push_back(slot);
}

}  // namespace echopipe
