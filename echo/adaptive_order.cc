#include <algorithm>
#include <bit>

#include <echopipe/echo/adaptive_order.h>

namespace echopipe {

AdaptiveOrder::AdaptiveOrder(const AdaptiveOptions& options)
    : options_(options), random_(options.seed, options.point) {
  options_.Validate();
  levels_.resize(options_.max_factor);
  filled_levels_.resize(levels_.size() / 64 + 1);
}

AdaptiveOrder::AdaptiveOrder(const AdaptiveOptions& options, const AdaptiveState& state)
    : AdaptiveOrder(options) {
  state.Validate(options);
  admitted_ = state.admitted;
  draws_ = state.draws;
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const AdaptiveState::Resident& resident : *residents) {
      const Slot slot = NewSlot();
      slots_[slot] = resident;
      uses_left_ += options_.max_factor - resident.uses;
    }
  }
  const auto drawable = static_cast<Slot>(state.drawable.size());
  std::vector<Slot> slots(slots_.size());
  for (Slot slot = 0; slot < slots.size(); ++slot) {
    slots[slot] = slot;
    if (slot < drawable) {
      MakeDrawable(slot);
    } else {
      Append(blocked_links_, blocked_, slot);
    }
  }
  std::ranges::sort(slots, {}, [this](Slot slot) { return slots_[slot].first_draw; });
  for (const Slot slot : slots) Append(age_links_, by_age_, slot);
  std::ranges::sort(slots, {}, [this](Slot slot) { return slots_[slot].last_draw; });
  for (const Slot slot : slots) AppendToLevel(slot);
}

void AdaptiveOrder::Append(Links& links, Line& line, Slot slot) {
  links[slot] = {.before = line.last};
  (line.last == kNone ? line.first : links[line.last].after) = slot;
  line.last = slot;
}

// Precondition: it is in this line.
void AdaptiveOrder::Remove(Links& links, Line& line, Slot slot) {
  const auto [before, after] = links[slot];
  (before == kNone ? line.first : links[before].after) = after;
  (after == kNone ? line.last : links[after].before) = before;
}

AdaptiveOrder::Slot AdaptiveOrder::NewSlot() {
  ++residents_;
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  slots_.emplace_back();
  place_.push_back(kNone);
  for (Links* links : {&blocked_links_, &age_links_, &level_links_}) links->emplace_back();
  // All that may ever be needed for so many slots, so that nothing grows later.
  drawable_.reserve(slots_.capacity());
  free_.reserve(slots_.capacity());
  return static_cast<Slot>(slots_.size() - 1);
}

AdaptiveOrder::Pick AdaptiveOrder::Admit() {
  if (options_.max_factor == 1) return Pass();
  vacated_count_ = 0;
  if (residents_ == options_.shuffle_buffer) Leave(MostUsed());
  const Slot slot = NewSlot();
  slots_[slot] = {.item = admitted_++, .first_draw = draws_};
  uses_left_ += options_.max_factor;
  Append(age_links_, by_age_, slot);
  return Use(slot);
}

AdaptiveOrder::Pick AdaptiveOrder::Pass() {
  vacated_count_ = 0;
  const Pick pick{.slot = kNone, .item = admitted_++, .draw = draws_++, .last = true};
  Settle();
  return pick;
}

AdaptiveOrder::Pick AdaptiveOrder::Echo() {
  vacated_count_ = 0;
  const Slot slot = drawable_[random_.Below(draws_, static_cast<uint32_t>(drawable_.size()))];
  RemoveDrawable(slot);
  RemoveFromLevel(slot);
  return Use(slot);
}

// Precondition: it is neither drawable nor blocked, and on no level.
AdaptiveOrder::Pick AdaptiveOrder::Use(Slot slot) {
  AdaptiveState::Resident& resident = slots_[slot];
  const Pick pick{.slot = slot,
                  .item = resident.item,
                  .use = resident.uses++,
                  .draw = draws_,
                  .age = draws_ - resident.first_draw,
                  .last = resident.uses == options_.max_factor};
  resident.last_draw = draws_++;
  --uses_left_;
  if (pick.last) {
    Vacate(slot);
  } else {
    AppendToLevel(slot);
    Append(blocked_links_, blocked_, slot);
  }
  Settle();
  return pick;
}

// What the next draw finds: too old ones have left, and the item drawn at k - S may be drawn again
// at draw k. Each is one item at most, as no two had a use in the same draw.
void AdaptiveOrder::Settle() {
  const Slot oldest = by_age_.first;
  if (oldest != kNone && draws_ - slots_[oldest].first_draw > options_.max_age) Leave(oldest);
  const Slot slot = blocked_.first;
  if (slot != kNone && draws_ - slots_[slot].last_draw >= options_.spacing) {
    Remove(blocked_links_, blocked_, slot);
    MakeDrawable(slot);
  }
}

void AdaptiveOrder::AppendToLevel(Slot slot) {
  const uint32_t uses = slots_[slot].uses;
  Append(level_links_, levels_[uses], slot);
  filled_levels_[uses / 64] |= uint64_t{1} << uses % 64;
}

void AdaptiveOrder::RemoveFromLevel(Slot slot) {
  const uint32_t uses = slots_[slot].uses;
  Remove(level_links_, levels_[uses], slot);
  if (levels_[uses].first == kNone) filled_levels_[uses / 64] &= ~(uint64_t{1} << uses % 64);
}

// Precondition: there is a resident.
AdaptiveOrder::Slot AdaptiveOrder::MostUsed() const {
  size_t word = filled_levels_.size() - 1;
  while (filled_levels_[word] == 0) --word;
  const size_t uses = word * 64 + static_cast<size_t>(std::bit_width(filled_levels_[word])) - 1;
  return levels_[uses].first;
}

void AdaptiveOrder::MakeDrawable(Slot slot) {
  place_[slot] = static_cast<uint32_t>(drawable_.size());
  drawable_.push_back(slot);
}

void AdaptiveOrder::RemoveDrawable(Slot slot) {
  const Slot last = drawable_.back();
  drawable_[place_[slot]] = last;
  place_[last] = place_[slot];
  drawable_.pop_back();
  place_[slot] = kNone;
}

// Before it is used up.
void AdaptiveOrder::Leave(Slot slot) {
  uses_left_ -= options_.max_factor - slots_[slot].uses;
  RemoveFromLevel(slot);
  if (place_[slot] == kNone) {
    Remove(blocked_links_, blocked_, slot);
  } else {
    RemoveDrawable(slot);
  }
  Vacate(slot);
}

void AdaptiveOrder::Vacate(Slot slot) {
  Remove(age_links_, by_age_, slot);
  free_.push_back(slot);
  --residents_;
  vacated_[vacated_count_++] = slot;
}

AdaptiveState AdaptiveOrder::State() const {
  AdaptiveState state{.admitted = admitted_, .draws = draws_};
  for (const Slot slot : drawable_) state.drawable.push_back(slots_[slot]);
  for (Slot slot = blocked_.first; slot != kNone; slot = blocked_links_[slot].after) {
    state.blocked.push_back(slots_[slot]);
  }
  return state;
}

std::vector<AdaptiveOrder::Slot> AdaptiveOrder::ResidentSlots() const {
  std::vector<Slot> slots = drawable_;
  for (Slot slot = blocked_.first; slot != kNone; slot = blocked_links_[slot].after) {
    slots.push_back(slot);
  }
  return slots;
}

}  // namespace echopipe
