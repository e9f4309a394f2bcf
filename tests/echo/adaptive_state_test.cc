#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_order.h>
#include <echopipe/tests/echo/adaptive_cases.h>

namespace echopipe {
namespace {

const AdaptiveOptions kOptions{
    .max_factor = 4, .shuffle_buffer = 12, .spacing = 4, .max_age = 60, .seed = 3};

/// A state in the midst of a run that has all that the changes below need: of the drawable one used
/// once and one used more often, two blocked ones used once.
AdaptiveState RichState(const AdaptiveOptions& options) {
  AdaptiveOrder order(options);
  RandomStream random({.low = 77});
  for (int i = 0; i < 10'000; ++i) {
    if (order.CanEcho() && random.Bernoulli(0.5)) {
      order.Echo();
    } else {
      order.Admit();
    }
    const AdaptiveState state = order.State();
    const auto used_once = [](const auto& resident) { return resident.uses == 1; };
    if (order.draws() > 100 && std::ranges::count_if(state.drawable, used_once) >= 2 &&
        !std::ranges::all_of(state.drawable, used_once) &&
        std::ranges::count_if(state.blocked, used_once) >= 2) {
      return state;
    }
  }
  throw std::logic_error("no such state");
}

AdaptiveState::Resident& Drawable(AdaptiveState& state, bool used_once) {
  return *std::ranges::find_if(
      state.drawable, [&](const auto& resident) { return (resident.uses == 1) == used_once; });
}
AdaptiveState::Resident& UsedOnce(AdaptiveState& state) { return Drawable(state, true); }
AdaptiveState::Resident& UsedMore(AdaptiveState& state) { return Drawable(state, false); }

/// A state changed into one that no run leaves behind, and the words it is refused with.
struct Impossible {
  const char* name;
  std::function<void(AdaptiveState&)> change;
  const char* refusal;
  AdaptiveOptions options = kOptions;
};

void PrintTo(const Impossible& impossible, std::ostream* out) { *out << impossible.name; }

const AdaptiveOptions kAnyAge{.max_factor = 4, .shuffle_buffer = 12, .spacing = 4, .seed = 3};

const Impossible kImpossible[] = {
    {"draws without end", [](AdaptiveState& s) { s.draws = ~uint64_t{0}; },
     "more draws than can be"},
    {"admissions without end", [](AdaptiveState& s) { s.admitted = ~uint64_t{0}; },
     "more items than draws"},
    {"more items than draws", [](AdaptiveState& s) { s.admitted = s.draws + 1; },
     "more items than draws"},
    {"more draws than uses", [](AdaptiveState& s) { s = {.admitted = 3, .draws = 13}; },
     "more draws than uses"},
    {"more draws than the residents leave over",
     [](AdaptiveState& s) {
       s = {.admitted = 3,
            .draws = 11,
            .drawable = {{.item = 1, .uses = 1, .first_draw = 4, .last_draw = 4}}};
     },
     "more draws than uses"},
    {"more residents than the buffer holds",
     [](AdaptiveState& s) { s.drawable.resize(13, s.drawable[0]); }, "more residents than"},
    {"more blocked than the buffer holds",
     [](AdaptiveState& s) { s.blocked.resize(13, s.blocked[0]); }, "more residents than"},
    {"an item of the future", [](AdaptiveState& s) { UsedOnce(s).item = s.admitted; },
     "an item that was not admitted"},
    {"an item never used", [](AdaptiveState& s) { UsedOnce(s).uses = 0; },
     "uses that no item of the pool can have"},
    {"an item used up", [](AdaptiveState& s) { UsedMore(s).uses = 4; },
     "uses that no item of the pool can have"},
    {"last_draw in the future", [](AdaptiveState& s) { s.blocked.back().last_draw = s.draws; },
     "first and last"},
    {"first_draw after last_draw",
     [](AdaptiveState& s) { UsedMore(s).first_draw = UsedMore(s).last_draw + 1; },
     "first and last"},
    {"two draws of a single use", [](AdaptiveState& s) { --UsedOnce(s).first_draw; },
     "first and last"},
    {"uses nearer than the spacing",
     [](AdaptiveState& s) { UsedMore(s).first_draw = UsedMore(s).last_draw - 3; },
     "first and last"},
    {"a first draw before the items before it",
     [](AdaptiveState& s) {
       UsedMore(s).item = s.admitted - 1;
       UsedMore(s).first_draw = s.admitted - 2;
     },
     "no room for the other items' draws", kAnyAge},
    {"a first draw too late for the items after it",
     [](AdaptiveState& s) {
       UsedOnce(s).item = 0;
       UsedOnce(s).first_draw = UsedOnce(s).last_draw = s.draws - s.admitted + 1;
     },
     "no room for the other items' draws", kAnyAge},
    {"an item that is too old",
     [](AdaptiveState& s) {
       UsedMore(s).item = 0;
       UsedMore(s).first_draw = s.draws - 61;
     },
     "too old"},
    {"a drawable that should be blocked",
     [](AdaptiveState& s) {
       s.drawable.push_back(s.blocked[0]);
       s.blocked.erase(s.blocked.begin());
     },
     "a drawable item that spacing holds back"},
    {"a blocked that should be drawable",
     [](AdaptiveState& s) {
       s.blocked.insert(s.blocked.begin(), UsedMore(s));
       std::erase(s.drawable, s.blocked[0]);
     },
     "a blocked item that spacing does not"},
    {"blocked out of order",
     [](AdaptiveState& s) { std::swap(s.blocked.front(), s.blocked.back()); },
     "blocked items out of order"},
    {"two uses in one draw",
     [](AdaptiveState& s) { UsedMore(s).last_draw = UsedOnce(s).last_draw; },
     "two uses in one draw"},
    {"an item twice",
     [](AdaptiveState& s) { std::next(&s.drawable[0])->item = s.drawable[0].item; },
     "an item twice", kAnyAge},
    {"items out of their order",
     [](AdaptiveState& s) { std::swap(s.blocked[0].item, UsedOnce(s).item); }, "no room for",
     kAnyAge},
    {"fewer draws than uses",
     [](AdaptiveState& s) {
       // The last draws that the residents can have had, and not one before.
       s.drawable.clear();
       s.blocked = {{.item = 0, .uses = 3, .first_draw = 0, .last_draw = 8}};
       s.admitted = 9;
       s.draws = 10;
     },
     "fewer draws than uses", kAnyAge},
};

class AdaptiveStateRefusal : public ::testing::TestWithParam<Impossible> {};

TEST_P(AdaptiveStateRefusal, NamesWhatIsImpossible) {
  AdaptiveState state = RichState(GetParam().options);
  ASSERT_NO_THROW(state.Validate(GetParam().options));
  GetParam().change(state);
  try {
    const AdaptiveOrder order(GetParam().options, state);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.details().where, "state of an echo point");
    EXPECT_THAT(error.details().what, ::testing::HasSubstr(GetParam().refusal));
  }
}

INSTANTIATE_TEST_SUITE_P(States, AdaptiveStateRefusal, ::testing::ValuesIn(kImpossible));

uint64_t AnyNumber(RandomStream& random) {
  return (uint64_t{random.Next()} << 32 | random.Next()) >> random.Below(64);
}

/// Overwrites or nudges one number of the state.
void Damage(AdaptiveState& state, RandomStream& random) {
  std::vector<uint64_t*> numbers = {&state.admitted, &state.draws};
  std::vector<uint32_t*> uses;
  for (auto* residents : {&state.drawable, &state.blocked}) {
    for (AdaptiveState::Resident& resident : *residents) {
      numbers.insert(numbers.end(), {&resident.item, &resident.first_draw, &resident.last_draw});
      uses.push_back(&resident.uses);
    }
  }
  const bool nudge = random.Bernoulli(0.5);
  if (!uses.empty() && random.Bernoulli(0.3)) {
    uint32_t& number = *uses[random.Below(static_cast<uint32_t>(uses.size()))];
    number = nudge ? number + 1 - 2 * random.Below(2) : random.Next();
  } else {
    uint64_t& number = *numbers[random.Below(static_cast<uint32_t>(numbers.size()))];
    number = nudge ? number + 1 - 2 * random.Below(2) : AnyNumber(random);
  }
}

/// Admits, repeats and empties the pool, and keeps its promises meanwhile.
void RunOn(AdaptiveOrder& order, const AdaptiveOptions& options, RandomStream& random) {
  for (int i = 0; i < 100; ++i) {
    const AdaptiveOrder::Pick pick =
        order.CanEcho() && random.Bernoulli(0.6) ? order.Echo() : order.Admit();
    ASSERT_LT(pick.use, options.max_factor);
    ASSERT_LE(pick.age, options.max_age);
    ASSERT_LE(order.residents(), options.shuffle_buffer);
    ASSERT_NO_THROW(order.State().Validate(options));
  }
  uint64_t left = order.uses_left();
  for (; order.CanEcho(); --left) order.Echo();
  ASSERT_LE(order.uses_left(), left);
}

TEST(AdaptiveStateTest, ADamagedStateIsRefusedOrRunsOn) {
  int refused = 0;
  for (int i = 0; i < 200 * testing::kThoroughness; ++i) {
    RandomStream random({.low = static_cast<uint64_t>(i), .high = 0xdeada});
    testing::AdaptiveCase c = testing::MakeAdaptiveCase(static_cast<uint64_t>(i));
    c.options.max_factor = std::min(c.options.max_factor, 65U);
    AdaptiveOrder order(c.options);
    for (const testing::AdaptiveEvent event : c.events) {
      if (event != testing::AdaptiveEvent::kEcho) {
        order.Admit();
      } else if (order.CanEcho()) {
        order.Echo();
      }
    }
    AdaptiveState state = order.State();
    for (uint32_t count = 1 + random.Below(3); count > 0; --count) Damage(state, random);
    try {
      AdaptiveOrder damaged(c.options, state);
      RunOn(damaged, c.options, random);
      ASSERT_FALSE(HasFailure()) << c.ToString();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 120 * testing::kThoroughness);
}

}  // namespace
}  // namespace echopipe
