#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe {
namespace {

using testing::EchoCase;
using Buffer = EchoBuffer<uint64_t>;

Buffer Restore(const EchoOptions& options, const EchoState& state) {
  std::vector<std::shared_ptr<const uint64_t>> items;
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const EchoState::Resident& resident : *residents) {
      items.push_back(std::make_shared<uint64_t>(resident.item));
    }
  }
  return Buffer(options, state, std::move(items));
}

/// Plays a case step by step.
class Player {
 public:
  explicit Player(const EchoCase& c) : case_(c), buffer_(c.options) {}

  /// One step; false at the end of the case.
  bool Step() {
    use_.reset();
    if (buffer_.HasRoom()) {
      OfferOrClose();
    } else if ((use_ = buffer_.Draw())) {
      return true;
    } else if (++epoch_ == case_.epochs.size()) {
      return false;
    } else {
      offered_ = 0;
      buffer_.Reopen();
    }
    return true;
  }
  /// Puts a restored buffer in the buffer's place.
  void GoOnFromState() { buffer_ = Restore(case_.options, buffer_.State()); }

  EchoState State() const { return buffer_.State(); }
  const std::optional<Use<uint64_t>>& use() const { return use_; }

 private:
  void OfferOrClose() {
    if (offered_ == case_.epochs[epoch_]) return buffer_.Close();
    buffer_.Offer(std::make_shared<uint64_t>(buffer_.order().admitted()));
    ++offered_;
  }

  EchoCase case_;
  Buffer buffer_;
  size_t epoch_ = 0;
  uint64_t offered_ = 0;
  std::optional<Use<uint64_t>> use_;
};

void ExpectSame(const Player& one, const Player& other) {
  ASSERT_EQ(one.use().has_value(), other.use().has_value());
  if (one.use()) {
    ASSERT_EQ(*one.use()->item, *other.use()->item);
    ASSERT_EQ(one.use()->use, other.use()->use);
    ASSERT_EQ(one.use()->draw, other.use()->draw);
    ASSERT_EQ(one.use()->age, other.use()->age);
  }
  ASSERT_TRUE(one.State() == other.State());
}

class EchoStateLaws : public ::testing::TestWithParam<double> {
 protected:
  template <class Law>
  void ForEachCase(int cases, Law law) {
    for (int i = 0; i < cases; ++i) {
      const EchoCase c =
          testing::MakeEchoCase(2'000'000 + static_cast<uint64_t>(i), GetParam(), 40);
      law(c);
      ASSERT_FALSE(HasFailure()) << c.ToString();
    }
  }
};

TEST_P(EchoStateLaws, ARunRestoredAtEveryStepGoesOnWithTheSameDrawsAndStates) {
  ForEachCase(2 * testing::kThoroughness, [](const EchoCase& c) {
    Player through(c);
    Player restored(c);
    while (through.Step()) {
      ASSERT_TRUE(restored.Step());
      ASSERT_NO_FATAL_FAILURE(ExpectSame(through, restored));
      restored.GoOnFromState();
      ASSERT_TRUE(restored.State() == through.State());
    }
    ASSERT_FALSE(restored.Step());
  });
}

TEST_P(EchoStateLaws, AChainOfThreeRestoresAnywhereGoesOnToTheEndAlike) {
  ForEachCase(2 * testing::kThoroughness, [](const EchoCase& c) {
    RandomStream random({.low = c.number, .high = 0x57a7e});
    const uint64_t most = std::min<uint64_t>(2'000, 40 + 40 * c.options.factor.MaxUses());
    const uint64_t when = random.Below(static_cast<uint32_t>(most));
    Player through(c);
    Player restored(c);
    for (uint64_t step = 0; through.Step(); ++step) {
      ASSERT_TRUE(restored.Step());
      if (step % 16 == 0 || step >= when) {
        ASSERT_NO_FATAL_FAILURE(ExpectSame(through, restored));
      }
      for (int i = 0; i < 3 && step == when; ++i) restored.GoOnFromState();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Factors, EchoStateLaws, ::testing::ValuesIn(testing::kFactors));

/// A state in the midst of a run, with drawable and blocked residents.
EchoState StateAfter(const EchoOptions& options, uint64_t draws, bool closed = false) {
  EchoOrder order(options);
  while (order.draws() < draws) {
    while (order.HasRoom()) order.Offer();
    order.Draw();
  }
  if (closed) order.Close();
  return order.State();
}

const EchoOptions kSpaced{.factor = 2.5, .shuffle_buffer = 12, .spacing = 4};
const EchoOptions kGrouped{.factor = 4, .shuffle_buffer = 12, .grouped = true};

/// A state changed into one that no run leaves behind, and the words it is refused with.
struct Impossible {
  const char* name;
  std::function<void(EchoState&)> change;
  const char* refusal;
  EchoOptions options = kSpaced;
  bool closed = false;
};

void PrintTo(const Impossible& impossible, std::ostream* out) { *out << impossible.name; }

EchoState::Resident* FindDrawable(EchoState& state, bool drawn) {
  const auto found = std::ranges::find_if(
      state.drawable, [&](const auto& resident) { return (resident.uses > 0) == drawn; });
  return found == state.drawable.end() ? nullptr : &*found;
}
EchoState::Resident& Drawn(EchoState& state) { return *FindDrawable(state, true); }
EchoState::Resident& NotDrawn(EchoState& state) { return *FindDrawable(state, false); }

/// The first state that has all that the changes below need.
EchoState RichState(const EchoOptions& options, bool closed) {
  for (uint64_t draws = 81; draws < 1'000; ++draws) {
    EchoState state = StateAfter(options, draws, closed);
    if (FindDrawable(state, true) && FindDrawable(state, false) &&
        (options.spacing == 0 || state.blocked.size() >= 2) && state.in_group == options.grouped &&
        (!closed || state.drawable.front().uses_left < state.drawable.back().uses_left)) {
      return state;
    }
  }
  throw std::logic_error("no such state");
}

const Impossible kImpossible[] = {
    {"admissions without end", [](EchoState& s) { s.admitted = ~uint64_t{0}; },
     "more items admitted than can be"},
    {"share_remainder over its unit", [](EchoState& s) { s.share_remainder += 1'000'000; },
     "a share that does not follow"},
    {"share_remainder of another count", [](EchoState& s) { s.share_remainder ^= 500'000; },
     "a share that does not follow"},
    {"draws without end", [](EchoState& s) { s.draws = ~uint64_t{0}; }, "more draws than uses"},
    {"one draw too many", [](EchoState& s) { ++s.draws; }, "spacing"},
    {"one draw too many, all drawable", [](EchoState& s) { ++s.draws; },
     "draws and uses left that are not", EchoOptions{.factor = 2.5, .shuffle_buffer = 12}},
    {"a resident lost", [](EchoState& s) { s.drawable.pop_back(); },
     "draws and uses left that are not"},
    {"more exceptions than draws", [](EchoState& s) { s.exceptions = s.draws + 1; },
     "more exceptions to spacing"},
    {"an exception without spacing", [](EchoState& s) { s.exceptions = 1; },
     "more exceptions to spacing", kGrouped},
    {"more residents than the fill target",
     [](EchoState& s) { s.drawable.resize(13, s.drawable[0]); }, "more residents than"},
    {"more blocked than the fill target", [](EchoState& s) { s.blocked.resize(13, s.blocked[0]); },
     "more residents than"},
    {"an item of the future", [](EchoState& s) { s.drawable[0].item = s.admitted; },
     "an item that was not admitted"},
    {"an item twice", [](EchoState& s) { s.drawable[0].item = s.drawable[1].item; },
     "an item twice", EchoOptions{.factor = 2, .shuffle_buffer = 12, .spacing = 4}},
    {"an item used up",
     [](EchoState& s) {
       Drawn(s).uses += Drawn(s).uses_left;
       Drawn(s).uses_left = 0;
     },
     "uses that are not the item's share"},
    {"a use too many", [](EchoState& s) { ++s.drawable[0].uses_left; },
     "uses that are not the item's share"},
    {"uses that wrap around",
     [](EchoState& s) {
       s.drawable[0].uses_left += 3;
       s.drawable[0].uses -= 3;
     },
     "uses that are not the item's share"},
    {"last_draw in the future", [](EchoState& s) { s.blocked.back().last_draw = s.draws; },
     "first and last"},
    {"first_draw after last_draw", [](EchoState& s) { Drawn(s).first_draw = s.draws; },
     "first and last"},
    {"first_draw other than last_draw of a single use", [](EchoState& s) { --Drawn(s).first_draw; },
     "first and last", EchoOptions{.factor = 2, .shuffle_buffer = 12, .spacing = 4}},
    {"two uses nearer than the spacing",
     [](EchoState& s) {
       EchoState::Resident& resident = s.blocked.back();
       resident.uses_left += resident.uses - 2;
       resident.uses = 2;
       resident.first_draw = resident.last_draw - 3;
     },
     "first and last", EchoOptions{.factor = 9, .shuffle_buffer = 12, .spacing = 4}},
    {"two residents of one draw",
     [](EchoState& s) {
       s.blocked[1].last_draw = s.blocked[0].last_draw;
       s.blocked[1].first_draw = s.blocked[0].first_draw;
       s.blocked[1].uses = s.blocked[0].uses;
       s.blocked[1].uses_left = s.blocked[0].uses_left;
     },
     "two items of one draw", EchoOptions{.factor = 2, .shuffle_buffer = 12, .spacing = 4}},
    {"a drawable that should be blocked",
     [](EchoState& s) {
       s.drawable.push_back(s.blocked[0]);
       s.blocked.erase(s.blocked.begin());
     },
     "a drawable item that spacing holds back"},
    {"a blocked that should be drawable",
     [](EchoState& s) {
       s.blocked.insert(s.blocked.begin(), Drawn(s));
       std::erase(s.drawable, s.blocked[0]);
     },
     "a blocked item that spacing does not"},
    {"a blocked that was never drawn",
     [](EchoState& s) {
       s.blocked.insert(s.blocked.begin(), NotDrawn(s));
       std::erase(s.drawable, s.blocked[0]);
     },
     "a blocked item that spacing does not"},
    {"blocked out of order", [](EchoState& s) { std::swap(s.blocked[0], s.blocked[1]); },
     "blocked items out of order"},
    {"blocked without spacing",
     [](EchoState& s) {
       s.blocked.push_back(s.drawable.back());
       s.drawable.pop_back();
     },
     "blocked items without spacing", EchoOptions{.factor = 2.5, .shuffle_buffer = 12}},
    {"closed and drawable out of order",
     [](EchoState& s) { std::swap(s.drawable.front(), s.drawable.back()); },
     "drawable items out of order", kSpaced, true},
    {"a group where none are", [](EchoState& s) { s.in_group = true; }, "a group without its item"},
    {"a group of nothing",
     [](EchoState& s) {
       s.in_group = true;
       s.drawable.clear();
     },
     "a group without its item", kGrouped},
    {"a group whose item was not drawn last",
     [](EchoState& s) { std::swap(s.drawable.front(), s.drawable.back()); },
     "a group without its item", kGrouped},
    {"a group forgotten", [](EchoState& s) { s.in_group = false; },
     "an item begun outside its group", kGrouped},
};

class EchoStateRefusal : public ::testing::TestWithParam<Impossible> {};

TEST_P(EchoStateRefusal, NamesWhatIsImpossible) {
  EchoState state = RichState(GetParam().options, GetParam().closed);
  ASSERT_NO_THROW(state.Validate(GetParam().options));
  GetParam().change(state);
  try {
    const EchoOrder order(GetParam().options, state);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.details().where, "state of an echo point");
    EXPECT_THAT(error.details().what, ::testing::HasSubstr(GetParam().refusal));
  }
}

INSTANTIATE_TEST_SUITE_P(States, EchoStateRefusal, ::testing::ValuesIn(kImpossible));

TEST(EchoStateTest, OtherItemsThanTheResidentsAreRefused) {
  const EchoState state = StateAfter(kSpaced, 81);
  const size_t residents = state.drawable.size() + state.blocked.size();
  for (const size_t count : {residents - 1, residents + 1}) {
    EXPECT_THROW(Buffer(kSpaced, state, std::vector<std::shared_ptr<const uint64_t>>(count)),
                 Error);
  }
}

uint64_t AnyNumber(RandomStream& random) {
  return (uint64_t{random.Next()} << 32 | random.Next()) >> random.Below(64);
}

/// Overwrites or nudges one number of the state.
void Damage(EchoState& state, RandomStream& random) {
  std::vector<uint64_t*> numbers = {&state.admitted, &state.draws, &state.exceptions,
                                    &state.share_remainder};
  std::vector<uint32_t*> uses;
  for (auto* residents : {&state.drawable, &state.blocked}) {
    for (EchoState::Resident& resident : *residents) {
      numbers.insert(numbers.end(), {&resident.item, &resident.first_draw, &resident.last_draw});
      uses.insert(uses.end(), {&resident.uses, &resident.uses_left});
    }
  }
  const bool nudge = random.Bernoulli(0.5);
  if (!uses.empty() && random.Bernoulli(0.4)) {
    uint32_t& number = *uses[random.Below(static_cast<uint32_t>(uses.size()))];
    number = nudge ? number + 1 - 2 * random.Below(2) : random.Next();
  } else {
    uint64_t& number = *numbers[random.Below(static_cast<uint32_t>(numbers.size()))];
    number = nudge ? number + 1 - 2 * random.Below(2) : AnyNumber(random);
  }
}

TEST(EchoStateTest, ADamagedStateIsRefusedOrRunsToItsEnd) {
  int refused = 0;
  for (int i = 0; i < 200 * testing::kThoroughness; ++i) {
    RandomStream random({.low = static_cast<uint64_t>(i), .high = 0xdead});
    EchoCase c = testing::MakeEchoCase(static_cast<uint64_t>(i), 2.333333);
    EchoState state = StateAfter(c.options, random.Below(200), random.Bernoulli(0.5));
    for (uint32_t count = 1 + random.Below(3); count > 0; --count) Damage(state, random);
    try {
      EchoOrder order(c.options, state);
      order.Close();
      uint64_t uses = 0;
      while (order.Draw()) ++uses;
      ASSERT_EQ(state.draws + uses, c.options.factor.Uses(state.admitted)) << c.ToString();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 150 * testing::kThoroughness);
}

}  // namespace
}  // namespace echopipe
