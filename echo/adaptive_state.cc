#include <algorithm>
#include <span>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_order.h>

namespace echopipe {
namespace {

using Resident = AdaptiveState::Resident;

// Far beyond any run, and low enough that no sum here can overflow.
constexpr uint64_t kMaxDraws = uint64_t{1} << 53;

void Require(bool condition, const char* what) {
  if (condition) return;
  throw Error(
      {.code = ErrorCode::kInvalidArgument, .what = what, .where = "state of an echo point"});
}

void CheckCounters(const AdaptiveState& state, const AdaptiveOptions& options) {
  Require(state.draws <= kMaxDraws, "more draws than can be");
  Require(state.admitted <= state.draws, "more items than draws");
  Require(state.drawable.size() <= options.shuffle_buffer &&
              state.blocked.size() <= options.shuffle_buffer - state.drawable.size(),
          "more residents than the shuffle buffer holds");
}

void CheckResident(const Resident& resident, const AdaptiveState& state,
                   const AdaptiveOptions& options) {
  Require(resident.item < state.admitted, "an item that was not admitted");
  Require(resident.uses >= 1 && resident.uses < options.max_factor,
          "uses that no item of the pool can have");
  Require(resident.last_draw < state.draws && resident.first_draw <= resident.last_draw &&
              resident.last_draw - resident.first_draw >=
                  (resident.uses - 1) * std::max(options.spacing, uint64_t{1}) &&
              (resident.uses > 1 || resident.first_draw == resident.last_draw),
          "draws that cannot be an item's first and last");
  Require(resident.first_draw >= resident.item &&
              state.draws - resident.first_draw >= state.admitted - resident.item,
          "a first draw that leaves no room for the other items' draws");
  Require(state.draws - resident.first_draw <= options.max_age, "an item that is too old");
}

// Each draw is one use of one item.
void CheckDraws(std::span<const Resident> residents) {
  std::vector<uint64_t> draws;
  for (const Resident& resident : residents) {
    draws.push_back(resident.first_draw);
    if (resident.uses > 1) draws.push_back(resident.last_draw);
  }
  std::ranges::sort(draws);
  Require(std::ranges::adjacent_find(draws) == draws.end(), "two uses in one draw");
}

// Fresh items are drawn in their order, each in a draw of its own.
void CheckItems(std::vector<Resident> residents) {
  std::ranges::sort(residents, {}, &Resident::item);
  for (size_t i = 1; i < residents.size(); ++i) {
    const Resident& one = residents[i - 1];
    const Resident& next = residents[i];
    Require(one.item != next.item, "an item twice");
    Require(next.first_draw > one.first_draw &&
                next.first_draw - one.first_draw >= next.item - one.item,
            "items drawn out of their order");
  }
}

// Those that have left had a use at least each, and max_factor at most.
void CheckUses(std::span<const Resident> residents, const AdaptiveState& state,
               const AdaptiveOptions& options) {
  uint64_t uses = 0;
  for (const Resident& resident : residents) uses += resident.uses;
  const uint64_t left = state.admitted - residents.size();
  Require(uses <= state.draws && state.draws - uses >= left, "fewer draws than uses");
  Require(state.draws - uses <= left * options.max_factor, "more draws than uses");
}

void CheckSpacing(const AdaptiveState& state, const AdaptiveOptions& options) {
  for (const Resident& resident : state.drawable) {
    Require(state.draws - resident.last_draw >= options.spacing,
            "a drawable item that spacing holds back");
  }
  for (const Resident& resident : state.blocked) {
    Require(state.draws - resident.last_draw < options.spacing,
            "a blocked item that spacing does not hold back");
  }
  Require(std::ranges::is_sorted(state.blocked, {}, &Resident::last_draw),
          "blocked items out of order");
}

}  // namespace

void AdaptiveState::Validate(const AdaptiveOptions& options) const {
  CheckCounters(*this, options);
  std::vector<Resident> residents = drawable;
  residents.insert(residents.end(), blocked.begin(), blocked.end());
  for (const Resident& resident : residents) CheckResident(resident, *this, options);
  CheckSpacing(*this, options);
  CheckDraws(residents);
  CheckItems(residents);
  CheckUses(residents, *this, options);
}

}  // namespace echopipe
