#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_buffer.h>
#include <echopipe/tests/echo/adaptive_cases.h>
#include <echopipe/tests/echo/adaptive_model.h>
#include <echopipe/tests/echo/echo_model.h>

namespace echopipe {
namespace {

using testing::AdaptiveCase;
using testing::AdaptiveEvent;
using testing::AdaptiveModel;
using testing::ModelRandom;
using Buffer = AdaptiveBuffer<uint64_t>;

struct Step {
  AdaptiveEvent event = AdaptiveEvent::kAdmit;
  uint64_t item = 0;
  uint64_t use = 0;
  uint64_t draw = 0;
  uint64_t age = 0;
  bool last = false;
  bool operator==(const Step&) const = default;
};

/// What happens at an event; nothing if it is an echo that cannot be.
std::optional<Step> Play(AdaptiveEvent event, Buffer& buffer) {
  if (event == AdaptiveEvent::kEcho && !buffer.CanEcho()) return std::nullopt;
  Use<uint64_t> use;
  if (event == AdaptiveEvent::kEcho) {
    use = buffer.Echo();
  } else {
    auto item = std::make_shared<uint64_t>(buffer.order().admitted());
    use = event == AdaptiveEvent::kAdmit ? buffer.Admit(std::move(item))
                                         : buffer.Pass(std::move(item));
  }
  return Step{.event = event,
              .item = *use.item,
              .use = use.use,
              .draw = use.draw,
              .age = use.age,
              .last = use.last};
}

std::vector<Step> StepsOf(const AdaptiveCase& c) {
  Buffer buffer(c.options);
  std::vector<Step> steps;
  for (const AdaptiveEvent event : c.events) {
    if (const std::optional<Step> step = Play(event, buffer)) steps.push_back(*step);
  }
  return steps;
}

/// Each law over 100,000 runs with events in random order.
template <class Law>
void ForEachCase(Law law) {
  for (int i = 0; i < 1'000 * testing::kThoroughness; ++i) {
    const AdaptiveCase c = testing::MakeAdaptiveCase(static_cast<uint64_t>(i));
    law(c);
    ASSERT_FALSE(::testing::Test::HasFailure()) << c.ToString();
  }
}

TEST(AdaptiveOrderLaws, WithoutItsEchoesARunIsTheItemsInTheirOrder) {
  ForEachCase([](const AdaptiveCase& c) {
    uint64_t next_item = 0;
    size_t next_event = 0;
    for (const Step& step : StepsOf(c)) {
      // Each event but an impossible echo was followed at once.
      while (c.events[next_event] != step.event) {
        ASSERT_EQ(c.events[next_event++], AdaptiveEvent::kEcho);
      }
      ++next_event;
      if (step.event == AdaptiveEvent::kEcho) continue;
      ASSERT_EQ(step.item, next_item++);
      ASSERT_EQ(step.use, 0);
      ASSERT_EQ(step.age, 0);
    }
    const auto fresh = std::ranges::count_if(
        c.events, [](AdaptiveEvent event) { return event != AdaptiveEvent::kEcho; });
    ASSERT_EQ(next_item, static_cast<uint64_t>(fresh));
  });
}

TEST(AdaptiveOrderLaws, UsesAreCountedInOrderUpToMaxFactorAndNoTombstoneIsRepeated) {
  ForEachCase([](const AdaptiveCase& c) {
    std::vector<std::vector<Step>> by_item;
    uint64_t draws = 0;
    for (const Step& step : StepsOf(c)) {
      if (step.event != AdaptiveEvent::kEcho) by_item.emplace_back();
      std::vector<Step>& uses = by_item.at(step.item);
      ASSERT_EQ(step.draw, draws++);
      ASSERT_EQ(step.use, uses.size());
      if (step.event == AdaptiveEvent::kEcho) {
        ASSERT_EQ(uses.front().event, AdaptiveEvent::kAdmit);
        ASSERT_EQ(step.age, step.draw - uses.front().draw);
        ASSERT_FALSE(uses.back().last);
      }
      ASSERT_LT(step.use, c.options.max_factor);
      ASSERT_EQ(step.last,
                step.event == AdaptiveEvent::kPass || step.use + 1 == c.options.max_factor);
      uses.push_back(step);
    }
  });
}

TEST(AdaptiveOrderLaws, SpacingAndMaxAgeAreKeptWithoutException) {
  ForEachCase([](const AdaptiveCase& c) {
    std::vector<uint64_t> last_draw;
    for (const Step& step : StepsOf(c)) {
      ASSERT_LE(step.age, c.options.max_age);
      if (step.event == AdaptiveEvent::kEcho) {
        ASSERT_GE(step.draw - last_draw.at(step.item), c.options.spacing);
        last_draw[step.item] = step.draw;
      } else {
        last_draw.push_back(step.draw);
      }
    }
  });
}

TEST(AdaptiveOrderLaws, AStopIsBridgedForWhatIsLeftInThePoolButForSpacing) {
  ForEachCase([](AdaptiveCase c) {
    c.options.max_age = ~uint64_t{0};
    c.options.max_factor = std::min(c.options.max_factor, 8U);
    Buffer buffer(c.options);
    for (const AdaptiveEvent event : c.events) Play(event, buffer);
    uint64_t left = 0;
    const AdaptiveState state = buffer.State();
    for (const auto* residents : {&state.drawable, &state.blocked}) {
      for (const auto& resident : *residents) left += c.options.max_factor - resident.uses;
    }
    ASSERT_EQ(buffer.order().uses_left(), left);
    uint64_t echoes = 0;
    while (buffer.CanEcho()) {
      buffer.Echo();
      ++echoes;
    }
    ASSERT_EQ(echoes + buffer.order().uses_left(), left);
    ASSERT_LT(buffer.order().residents(), std::max<uint64_t>(c.options.spacing, 1));
  });
}

AdaptiveModel UniformModel(const AdaptiveOptions& options) {
  return {options, [random = ModelRandom(options.seed, options.point)](uint64_t draw, size_t n) {
            return size_t{random.Below(draw, n)};
          }};
}

void ExpectSame(const Step& step, const AdaptiveModel::Item& item, const AdaptiveCase& c) {
  ASSERT_EQ(step.item, item.item);
  ASSERT_EQ(step.use + 1, item.uses);
  ASSERT_EQ(step.draw, item.last_draw);
  ASSERT_EQ(step.age, item.last_draw - item.first_draw);
  ASSERT_EQ(step.last, step.event == AdaptiveEvent::kPass || item.uses == c.options.max_factor);
}

/// Plays an event on both; nothing if it cannot be.
std::optional<Step> PlayBoth(AdaptiveEvent event, Buffer& buffer, AdaptiveModel& model,
                             const AdaptiveCase& c) {
  EXPECT_EQ(buffer.CanEcho(), model.CanEcho());
  const std::optional<Step> step = Play(event, buffer);
  if (!step) return step;
  ExpectSame(*step,
             event == AdaptiveEvent::kAdmit  ? model.Admit()
             : event == AdaptiveEvent::kPass ? model.Pass()
                                             : model.Echo(),
             c);
  return step;
}

/// The buffer holds the residents' items and no other.
void ExpectItems(const Buffer& buffer, const AdaptiveState& state) {
  std::vector<uint64_t> items;
  for (const auto& item : buffer.Residents()) items.push_back(item ? *item : ~uint64_t{0});
  std::vector<uint64_t> wanted;
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const auto& resident : *residents) wanted.push_back(resident.item);
  }
  ASSERT_EQ(items, wanted);
}

TEST(AdaptiveOrderLaws, AgreesWithTheModelDrawForDraw) {
  ForEachCase([](const AdaptiveCase& c) {
    Buffer buffer(c.options);
    AdaptiveModel model = UniformModel(c.options);
    for (size_t i = 0; i < c.events.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(PlayBoth(c.events[i], buffer, model, c));
      if (i % 16 != 0) continue;
      ASSERT_EQ(buffer.State(), model.State());
      ASSERT_NO_FATAL_FAILURE(ExpectItems(buffer, model.State()));
    }
    ASSERT_EQ(buffer.State(), model.State());
    ASSERT_NO_THROW(buffer.State().Validate(c.options));
  });
}

TEST(AdaptiveOrderLaws, NoItemIsHeldThatIsNotInThePool) {
  ForEachCase([](const AdaptiveCase& c) {
    AdaptiveBuffer<int> buffer(c.options);
    const auto item = std::make_shared<const int>(0);
    for (const AdaptiveEvent event : c.events) {
      if (event == AdaptiveEvent::kAdmit) buffer.Admit(item);
      if (event == AdaptiveEvent::kPass) buffer.Pass(item);
      if (event == AdaptiveEvent::kEcho && buffer.CanEcho()) buffer.Echo();
      ASSERT_EQ(item.use_count(), 1 + buffer.order().residents());
    }
  });
}

Buffer Restore(const AdaptiveOptions& options, const AdaptiveState& state) {
  std::vector<std::shared_ptr<const uint64_t>> items;
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const auto& resident : *residents) {
      items.push_back(std::make_shared<uint64_t>(resident.item));
    }
  }
  return {options, state, std::move(items)};
}

TEST(AdaptiveOrderLaws, ARunRestoredAtEveryStepGoesOnWithTheSameDrawsAndStates) {
  for (int i = 0; i < 100 * testing::kThoroughness; ++i) {
    const AdaptiveCase c = testing::MakeAdaptiveCase(1'000'000 + static_cast<uint64_t>(i));
    Buffer through(c.options);
    Buffer restored(c.options);
    for (const AdaptiveEvent event : c.events) {
      ASSERT_EQ(Play(event, through), Play(event, restored)) << c.ToString();
      const AdaptiveState state = through.State();
      ASSERT_EQ(restored.State(), state) << c.ToString();
      restored = Restore(c.options, state);
      ASSERT_EQ(restored.State(), state) << c.ToString();
      ASSERT_EQ(restored.order().uses_left(), through.order().uses_left()) << c.ToString();
    }
  }
}

/// All runs of so many events over a few options: what random cases might miss.
class SmallRuns {
 public:
  explicit SmallRuns(const AdaptiveOptions& options) { case_.options = options; }

  void Check(size_t events) { Go(Buffer(case_.options), UniformModel(case_.options), events); }

 private:
  void Go(const Buffer& buffer, const AdaptiveModel& model, size_t events) {
    if (events == 0 || ::testing::Test::HasFailure()) return;
    for (const AdaptiveEvent event :
         {AdaptiveEvent::kAdmit, AdaptiveEvent::kPass, AdaptiveEvent::kEcho}) {
      Buffer next_buffer = buffer;
      AdaptiveModel next_model = model;
      case_.events.push_back(event);
      if (PlayBoth(event, next_buffer, next_model, case_)) {
        const AdaptiveState state = next_model.State();
        EXPECT_EQ(next_buffer.State(), state) << case_.ToString();
        EXPECT_NO_THROW(state.Validate(case_.options)) << case_.ToString();
        Go(next_buffer, next_model, events - 1);
      }
      case_.events.pop_back();
    }
  }

  AdaptiveCase case_;
};

TEST(AdaptiveOrderTest, AgreesWithTheModelInEverySmallRun) {
  const size_t events = testing::kThoroughness > 10 ? 9 : 5;
  for (uint32_t max_factor = 1; max_factor <= 3; ++max_factor) {
    for (uint64_t shuffle_buffer = 1; shuffle_buffer <= 3; ++shuffle_buffer) {
      for (uint64_t spacing = 0; spacing <= shuffle_buffer; ++spacing) {
        for (const uint64_t more_age : {0, 2, 1'000}) {
          SmallRuns({.max_factor = max_factor,
                     .shuffle_buffer = shuffle_buffer,
                     .spacing = spacing,
                     .max_age = std::max<uint64_t>(spacing, 1) + more_age,
                     .seed = spacing})
              .Check(events);
        }
      }
    }
  }
}

TEST(AdaptiveOrderTest, EchoesAreUniformOverWhatMayBeDrawn) {
  const int seeds = 1'000 * testing::kThoroughness;
  std::vector<int> counts(5);
  for (int seed = 0; seed < seeds; ++seed) {
    AdaptiveOrder order({.shuffle_buffer = 8, .spacing = 4, .seed = static_cast<uint64_t>(seed)});
    for (int i = 0; i < 8; ++i) order.Admit();
    ++counts.at(order.Echo().item);
  }
  double chi_square = 0;
  for (const int count : counts) {
    chi_square += (count - seeds / 5.0) * (count - seeds / 5.0) / (seeds / 5.0);
  }
  EXPECT_LT(chi_square, 30);  // 4 degrees of freedom: five in a million samples lie beyond
}

TEST(AdaptiveOrderTest, GivesTheSameDrawsInEveryVersionAndOnEveryMachine) {
  AdaptiveOrder order(
      {.max_factor = 3, .shuffle_buffer = 6, .spacing = 3, .seed = 2024, .point = 1});
  std::string sequence;
  for (int i = 0; i < 40; ++i) {
    const bool echo = i % 5 > 1 && order.CanEcho();
    sequence += static_cast<char>('a' + (echo ? order.Echo() : order.Admit()).item);
  }
  EXPECT_EQ(sequence, "abcabdeabdfgcfehicegjkfhilmihmnomnkpqlpj");
}

TEST(AdaptiveOrderTest, OfAFullPoolTheMostUsedLeavesAndOfSeveralTheOneDrawnLongestAgo) {
  AdaptiveOrder order({.shuffle_buffer = 2});
  order.Admit();
  order.Admit();
  const uint64_t repeated = order.Echo().item;
  order.Admit();  // takes the place of the one used twice
  const AdaptiveState state = order.State();
  for (const auto& resident : state.drawable) EXPECT_NE(resident.item, repeated);
  order.Admit();  // of two used once
  std::vector<uint64_t> items;
  for (const auto& resident : order.State().drawable) items.push_back(resident.item);
  EXPECT_THAT(items, ::testing::UnorderedElementsAre(2, 3));
}

TEST(AdaptiveBufferTest, UsesOfAnItemAreOneObjectThatIsLetGoWithTheLast) {
  AdaptiveBuffer<int> buffer({.max_factor = 3});
  auto item = std::make_shared<const int>(7);
  const std::weak_ptr<const int> watch = item;
  EXPECT_EQ(buffer.Admit(std::move(item)).item, watch.lock());
  EXPECT_EQ(buffer.Echo().item, watch.lock());
  EXPECT_EQ(watch.use_count(), 1);
  {
    const Use<int> last = buffer.Echo();
    EXPECT_TRUE(last.last);
    EXPECT_EQ(last.item, watch.lock());
    EXPECT_EQ(watch.use_count(), 1);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(AdaptiveBufferTest, WhatLeavesThePoolIsLetGoAtOnce) {
  AdaptiveBuffer<int> buffer({.max_factor = 3, .shuffle_buffer = 2, .max_age = 3});
  std::vector<std::weak_ptr<const int>> watches;
  const auto admit = [&] {
    auto item = std::make_shared<const int>(0);
    watches.push_back(item);
    buffer.Admit(std::move(item));
  };
  const auto pass = [&] {
    auto item = std::make_shared<const int>(0);
    watches.push_back(item);
    buffer.Pass(std::move(item));
  };
  for (int i = 0; i < 3; ++i) admit();
  EXPECT_TRUE(watches[0].expired());  // the pool was full
  pass();
  EXPECT_TRUE(watches[3].expired());  // it did not enter
  EXPECT_FALSE(watches[1].expired());
  pass();
  EXPECT_TRUE(watches[1].expired());  // too old
  EXPECT_FALSE(watches[2].expired());
}

TEST(AdaptiveBufferTest, AnItemThatComesLaterTakesItsPlace) {
  const AdaptiveOptions options{.shuffle_buffer = 1};
  AdaptiveOrder order(options);
  order.Admit();
  AdaptiveBuffer<int> buffer(options, order.State(), {nullptr});
  buffer.Put(0, std::make_shared<int>(5));
  EXPECT_EQ(*buffer.Echo().item, 5);
}

TEST(AdaptiveOptionsTest, ASettingOutOfRangeIsNamed) {
  const auto where = [](const AdaptiveOptions& options) -> std::string {
    try {
      const AdaptiveOrder order(options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.details().where;
    }
  };
  EXPECT_EQ(where({.max_factor = 0}), "echo.adaptive.max_factor");
  EXPECT_EQ(where({.max_factor = 1}), "");
  EXPECT_EQ(where({.max_factor = 1000}), "");
  EXPECT_EQ(where({.max_factor = 1001}), "echo.adaptive.max_factor");
  EXPECT_EQ(where({.shuffle_buffer = 0}), "echo.shuffle_buffer");
  EXPECT_EQ(where({.shuffle_buffer = (uint64_t{1} << 31) + 1}), "echo.shuffle_buffer");
  EXPECT_EQ(where({.shuffle_buffer = uint64_t{1} << 31, .spacing = 4}), "");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 5}), "echo.spacing");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 4, .max_age = 4}), "");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 4, .max_age = 3}), "echo.adaptive.max_age");
  EXPECT_EQ(where({.shuffle_buffer = 4, .max_age = 0}), "echo.adaptive.max_age");
}

}  // namespace
}  // namespace echopipe
