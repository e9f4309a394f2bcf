#include <algorithm>
#include <span>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_order.h>

namespace echopipe {
namespace {

using Resident = EchoState::Resident;

// Far beyond any run, and low enough that no sum here can overflow.
constexpr uint64_t kMaxAdmitted = uint64_t{1} << 53;

void Require(bool condition, const char* what) {
  if (condition) return;
  throw Error(
      {.code = ErrorCode::kInvalidArgument, .what = what, .where = "state of an echo point"});
}

void CheckCounters(const EchoState& state, const EchoOptions& options) {
  constexpr uint64_t kUnit = EchoFactor::kUnit;
  const auto millionths = static_cast<uint64_t>(options.factor.millionths());
  Require(state.admitted <= kMaxAdmitted, "more items admitted than can be");
  Require(state.share_remainder == state.admitted % kUnit * (millionths % kUnit) % kUnit,
          "a share that does not follow from the admissions");
  Require(state.draws <= options.factor.Uses(state.admitted), "more draws than uses");
  Require(state.exceptions <= (options.spacing > 1 ? state.draws : 0),
          "more exceptions to spacing than can be");
  Require(state.drawable.size() <= options.FillTarget(state.draws) &&
              state.blocked.size() <= options.FillTarget(state.draws) - state.drawable.size(),
          "more residents than the fill target");
}

void CheckResident(const Resident& resident, const EchoState& state, const EchoOptions& options) {
  Require(resident.item < state.admitted, "an item that was not admitted");
  Require(resident.uses_left >= 1 && uint64_t{resident.uses} + resident.uses_left ==
                                         options.factor.Share(resident.item + 1),
          "uses that are not the item's share");
  if (resident.uses == 0) return;
  const uint64_t least_gap = state.exceptions == 0 ? std::max(options.spacing, uint64_t{1}) : 1;
  Require(resident.last_draw < state.draws && resident.first_draw <= resident.last_draw &&
              resident.last_draw - resident.first_draw >= (resident.uses - 1) * least_gap &&
              (resident.uses > 1 || resident.first_draw == resident.last_draw),
          "draws that cannot be an item's first and last");
}

void CheckUsesLeft(const EchoState& state, const EchoOptions& options) {
  uint64_t uses_left = 0;
  for (const Resident& resident : state.drawable) uses_left += resident.uses_left;
  for (const Resident& resident : state.blocked) uses_left += resident.uses_left;
  Require(state.draws + uses_left == options.factor.Uses(state.admitted),
          "draws and uses left that are not the admitted items' uses");
}

void CheckGroup(const EchoState& state, const EchoOptions& options) {
  if (state.in_group) {
    Require(options.grouped && !state.drawable.empty() && state.drawable.front().uses > 0 &&
                state.drawable.front().last_draw + 1 == state.draws,
            "a group without its item");
  }
  if (!options.grouped) return;
  const auto others = std::span(state.drawable).subspan(state.in_group ? 1 : 0);
  Require(std::ranges::all_of(others, [](const Resident& other) { return other.uses == 0; }),
          "an item begun outside its group");
}

void CheckDrawable(const EchoState& state, const EchoOptions& options) {
  for (const Resident& resident : state.drawable) {
    Require(resident.uses == 0 || resident.last_draw + options.spacing < state.draws,
            "a drawable item that spacing holds back");
  }
  const auto others = std::span(state.drawable).subspan(state.in_group ? 1 : 0);
  Require(!state.closed || std::ranges::is_sorted(others, {}, &Resident::uses_left),
          "drawable items out of order");
}

void CheckBlocked(const EchoState& state, const EchoOptions& options) {
  Require(options.spacing > 0 || state.blocked.empty(), "blocked items without spacing");
  for (const Resident& resident : state.blocked) {
    Require(resident.uses > 0 && resident.last_draw + options.spacing >= state.draws,
            "a blocked item that spacing does not hold back");
  }
  Require(std::ranges::is_sorted(state.blocked, {}, &Resident::last_draw),
          "blocked items out of order");
}

void CheckDistinct(std::vector<uint64_t> numbers, const char* what) {
  std::ranges::sort(numbers);
  Require(std::ranges::adjacent_find(numbers) == numbers.end(), what);
}

}  // namespace

void EchoState::Validate(const EchoOptions& options) const {
  CheckCounters(*this, options);
  std::vector<uint64_t> items;
  std::vector<uint64_t> last_draws;
  for (const auto* residents : {&drawable, &blocked}) {
    for (const Resident& resident : *residents) {
      CheckResident(resident, *this, options);
      items.push_back(resident.item);
      if (resident.uses > 0) last_draws.push_back(resident.last_draw);
    }
  }
  CheckDistinct(std::move(items), "an item twice");
  CheckDistinct(std::move(last_draws), "two items of one draw");
  CheckGroup(*this, options);
  CheckDrawable(*this, options);
  CheckBlocked(*this, options);
  CheckUsesLeft(*this, options);
}

}  // namespace echopipe
