// Whose data a place gets on an edge where bad ones are replaced.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/graph/stand_ins.h>

namespace echopipe::internal {
namespace {

/// A place named by its ordinal: good, bad or filtered out.
struct Place {
  enum class Kind { kGood, kBad, kFilteredOut };

  Identity identity = {};
  Kind kind = Kind::kGood;
  bool ends_epoch = false;
  uint64_t stream_epoch = 0;
  std::optional<uint64_t> data_of = {};  ///< an ordinal
};

bool IsGood(const Place& place) { return place.kind == Place::Kind::kGood; }
bool IsBad(const Place& place) { return place.kind == Place::Kind::kBad; }
std::shared_ptr<Place> StandIn(const Place& place, const Place& good, size_t /*edge*/) {
  auto item = std::make_shared<Place>(place);
  item->kind = Place::Kind::kGood;
  item->data_of = good.identity.ordinal;
  return item;
}
void Overtake(Place& item, const Place& held) { item.stream_epoch = held.stream_epoch; }

/// "3", "3<5" with the data of 5, "3-" a tombstone; "|" behind an epoch's last.
std::string Describe(const Place& place) {
  std::string text = std::to_string(place.identity.ordinal);
  if (place.data_of) text += "<" + std::to_string(*place.data_of);
  if (!IsGood(place)) text += "-";
  return place.ends_epoch ? text + "|" : text;
}

/// Of a word for each item: g(ood), b(ad), f(iltered out), e: a good echo, x: a bad one; "|" behind
/// an epoch's last. Ordinals count from 0.
std::vector<std::shared_ptr<Place>> PlacesOf(const std::string& kinds) {
  std::vector<std::shared_ptr<Place>> places;
  uint64_t epoch = 0;
  for (const char kind : kinds) {
    if (kind == '|') {
      places.back()->ends_epoch = true;
      ++epoch;
      continue;
    }
    auto place = std::make_shared<Place>();
    place->identity.ordinal = places.size();
    place->identity.use[0] = kind == 'e' || kind == 'x' ? 1 : 0;
    place->kind = kind == 'b' || kind == 'x' ? Place::Kind::kBad
                  : kind == 'f'              ? Place::Kind::kFilteredOut
                                             : Place::Kind::kGood;
    place->stream_epoch = epoch;
    places.push_back(std::move(place));
  }
  return places;
}

constexpr StandInRule kReplace{.replaces = true};
constexpr StandInRule kBehindAdaptive{.replaces = true, .edge = 1, .adaptive_echo = 0};

using Order = StandIns<Place>;

void TakeAll(Order& order, std::vector<std::shared_ptr<Place>>& taken) {
  while (order.HasNext()) taken.push_back(order.Next());
}

std::vector<std::shared_ptr<Place>> ItemsThrough(const std::string& kinds, StandInRule rule) {
  Order order(rule);
  std::vector<std::shared_ptr<Place>> taken;
  for (std::shared_ptr<Place>& place : PlacesOf(kinds)) {
    order.Put(std::move(place));
    TakeAll(order, taken);
  }
  order.Close();
  TakeAll(order, taken);
  return taken;
}

std::string Through(const std::string& kinds, StandInRule rule = kReplace) {
  std::string text;
  for (const auto& place : ItemsThrough(kinds, rule)) {
    text += (text.empty() ? "" : " ") + Describe(*place);
  }
  return text;
}

TEST(StandInsTest, TheNextGoodOneTakesABadOnesPlaceAndFollowsInItsOwn) {
  EXPECT_EQ(Through("gbg"), "0 1<2 2");
  EXPECT_EQ(Through("bg"), "0<1 1");
}

TEST(StandInsTest, SeveralInARowAreFilledByTheSameOne) {
  EXPECT_EQ(Through("gbbbgbg"), "0 1<4 2<4 3<4 4 5<6 6");
}

TEST(StandInsTest, WhatWasFilteredOutKeepsItsPlaceAndIsNotReplaced) {
  EXPECT_EQ(Through("gfg"), "0 1- 2");
  EXPECT_EQ(Through("bfbg"), "0<3 1- 2<3 3");
}

TEST(StandInsTest, AnEpochsLastPlaceKeepsItsMarkAndMayBeFilledFromTheNext) {
  EXPECT_EQ(Through("gb|bg|"), "0 1<3| 2<3 3|");
  EXPECT_EQ(Through("gf|bg|"), "0 1-| 2<3 3|");
}

TEST(StandInsTest, AtTheEndPlacesThatNoGoodOneFollowsGoOnAsTheyAre) {
  EXPECT_EQ(Through("gbfb|"), "0 1- 2- 3-|");
  EXPECT_EQ(Through("g|gb"), "0| 1 2-");
}

TEST(StandInsTest, AnEpochWithoutAGoodOneLetsAllHeldGo) {
  EXPECT_EQ(Through("bb|"), "0- 1-|");
  EXPECT_EQ(Through("gb|bb|g|"), "0 1-| 2- 3-| 4|");
  EXPECT_EQ(Through("gb|fb|gb|g|"), "0 1-| 2- 3-| 4 5<6| 6|");
  EXPECT_EQ(Through("ff|bg|"), "0- 1-| 2<3 3|");
  EXPECT_EQ(Through("g|bb|g|"), "0| 1- 2-| 3|");
}

TEST(StandInsTest, TheyGoAtThatEpochsEndAndNotLater) {
  Order order(kReplace);
  std::vector<std::shared_ptr<Place>> places = PlacesOf("bb|");
  order.Put(places[0]);
  EXPECT_FALSE(order.HasNext());
  order.Put(places[1]);
  EXPECT_TRUE(order.HasNext());
}

TEST(StandInsTest, WithoutThePolicyEverythingPasses) {
  EXPECT_EQ(Through("gbfbg|", {}), "0 1- 2- 3- 4|");
}

TEST(StandInsTest, ItTellsWhatIsHeldBack) {
  Order order(kReplace);
  std::vector<bool> held;
  std::vector<std::shared_ptr<Place>> taken;
  for (auto& place : PlacesOf("gfbfg")) {
    held.push_back(order.Put(std::move(place)));
    TakeAll(order, taken);
  }
  EXPECT_THAT(held, ::testing::ElementsAre(false, false, true, true, false));
}

TEST(StandInsTest, EchoesOfAnAdaptivePointOvertakeAndStandInForNobody) {
  EXPECT_EQ(Through("gbeegg", kBehindAdaptive), "0 2 3 1<4 4 5");
  EXPECT_EQ(Through("gbxg", kBehindAdaptive), "0 2- 1<3 3");
  // Nor do they make a good epoch.
  EXPECT_EQ(Through("beb|g|", kBehindAdaptive), "1 0- 2-| 3|");
  // Behind another echo point they are as all others.
  EXPECT_EQ(Through("gbeg", {.replaces = true, .edge = 2, .adaptive_echo = 0}), "0 1<2 2 3");
}

TEST(StandInsTest, AnOvertakerIsOfTheEpochWhoseEndItComesBefore) {
  const auto items = ItemsThrough("gb|eg|", kBehindAdaptive);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(Describe(*items[1]), "2");
  EXPECT_EQ(items[1]->stream_epoch, 0u);
  EXPECT_EQ(items[3]->stream_epoch, 1u);
}

std::string AnyKinds(RandomStream& random) {
  std::string kinds;
  for (uint32_t i = 1 + random.Below(30); i > 0; --i) {
    static constexpr std::string_view kKinds = "ggggbbbfex";
    kinds += kKinds[random.Below(kKinds.size())];
    if (random.Below(6) == 0) kinds += '|';
  }
  return kinds;
}

TEST(StandInsTest, EveryPlaceComesOnceAndWithoutEchoesTheRestIsTheSame) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random({.low = seed, .high = 0x57a4d});
    const std::string kinds = AnyKinds(random);
    SCOPED_TRACE(kinds);
    std::vector<std::string> rest;
    uint64_t echoes = 0;
    uint64_t expected = 0;
    for (const auto& item : ItemsThrough(kinds, kBehindAdaptive)) {
      if (item->identity.use[0] > 0) {
        ++echoes;
        continue;
      }
      // In order, each of them.
      while (PlacesOf(kinds)[expected]->identity.use[0] > 0) ++expected;
      ASSERT_EQ(item->identity.ordinal, expected++);
      rest.push_back(Describe(*item));
    }
    ASSERT_EQ(echoes + rest.size(), PlacesOf(kinds).size());
    // Those of the original names, from an order in which the echoes are not.
    std::vector<std::shared_ptr<Place>> fresh;
    for (auto& place : PlacesOf(kinds)) {
      if (place->identity.use[0] == 0) fresh.push_back(std::move(place));
    }
    // An echo that ends an epoch is none of an adaptive point's.
    bool echo_ends_epoch = false;
    for (const auto& place : PlacesOf(kinds)) {
      echo_ends_epoch |= place->ends_epoch && place->identity.use[0] > 0;
    }
    if (echo_ends_epoch) continue;
    Order order(kBehindAdaptive);
    std::vector<std::shared_ptr<Place>> taken;
    for (auto& place : fresh) {
      order.Put(std::move(place));
      TakeAll(order, taken);
    }
    order.Close();
    TakeAll(order, taken);
    std::vector<std::string> without;
    for (const auto& item : taken) without.push_back(Describe(*item));
    ASSERT_EQ(rest, without);
  }
}

// As the shadow does it: pulled, and made anew from its state at any time.
TEST(StandInsTest, RestoredAnywhereItGoesOnAlike) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random({.low = seed, .high = 0x2e57});
    const std::string kinds = AnyKinds(random);
    SCOPED_TRACE(kinds);
    const std::vector<std::shared_ptr<Place>> wanted = ItemsThrough(kinds, kBehindAdaptive);
    const std::vector<std::shared_ptr<Place>> places = PlacesOf(kinds);
    Order order(kBehindAdaptive);
    std::shared_ptr<Place> first;
    size_t next = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      while (!order.HasNext()) {
        if (first) {
          order.Put(std::exchange(first, nullptr));
        } else if (next < places.size()) {
          order.Put(places[next++]);
        } else {
          order.Close();
          ASSERT_TRUE(order.HasNext());
        }
      }
      ASSERT_EQ(Describe(*order.Next()), Describe(*wanted[i]));
      if (random.Below(3) > 0) continue;
      const StandInsState<Place> state = order.State();
      std::vector<std::shared_ptr<Place>> held;
      for (const auto& place : state.held) held.push_back(std::make_shared<Place>(*place));
      if (state.good) first = std::make_shared<Place>(*state.good);
      order = Order(kBehindAdaptive, held, state.released, state.epoch_has_good);
    }
  }
}

}  // namespace
}  // namespace echopipe::internal
