// Echo points behind one another, restored anywhere.

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/graph/epoch_echo.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe::internal {
namespace {

/// What comes out of a chain: the item, its uses at each point, and whether its epoch ends there.
struct Place {
  uint64_t item = 0;
  std::vector<uint64_t> uses = {};
  uint64_t stream_epoch = 0;
  bool ends_epoch = false;
  bool operator==(const Place&) const = default;
};

/// Echo points behind one another, pulled from the end, over epochs of some places.
class Chain {
 public:
  Chain(std::vector<EchoPoint> points, std::vector<uint64_t> epochs)
      : points_(std::move(points)), epochs_(std::move(epochs)) {
    for (const EchoPoint& point : points_) echoes_.emplace_back(point);
  }

  std::shared_ptr<const Place> Next() { return Pull(echoes_.size()); }

  /// Every echo point anew, from its state.
  void Restore() {
    for (size_t i = 0; i < points_.size(); ++i) {
      const EpochEchoState state = echoes_[i].State();
      EpochEcho<Place> again(points_[i], state, echoes_[i].Residents());
      EXPECT_TRUE(again.State().order == state.order);
      echoes_[i] = std::move(again);
    }
  }

 private:
  std::shared_ptr<const Place> Pull(size_t edge) {
    if (edge == 0) return NextOfSource();
    const auto drawn = echoes_[edge - 1].DrawFrom([&] { return Pull(edge - 1); });
    if (!drawn) return nullptr;
    Place place = *drawn->use.item;
    place.uses.push_back(drawn->use.use);
    place.stream_epoch = drawn->stream_epoch;
    place.ends_epoch = drawn->ends_epoch;
    return std::make_shared<const Place>(std::move(place));
  }

  std::shared_ptr<const Place> NextOfSource() {
    if (epoch_ == epochs_.size()) return nullptr;
    Place place{.item = given_++, .stream_epoch = epoch_};
    if (++in_epoch_ == epochs_[epoch_]) {
      place.ends_epoch = true;
      in_epoch_ = 0;
      ++epoch_;
    }
    return std::make_shared<const Place>(std::move(place));
  }

  std::vector<EchoPoint> points_;
  std::vector<uint64_t> epochs_;
  std::vector<EpochEcho<Place>> echoes_;
  uint64_t given_ = 0;
  uint64_t epoch_ = 0;
  uint64_t in_epoch_ = 0;
};

Chain MakeChain(uint64_t number) {
  RandomStream random({.low = number, .high = 0xc4a1});
  static constexpr std::array kFactors = {1., 1.15, 1.5, 2., 3.25};
  std::vector<EchoPoint> points;
  for (uint32_t i = 1 + random.Below(3); i > 0; --i) {
    EchoPoint point{.options = {.factor = kFactors[random.Below(kFactors.size())]}};
    point.options.shuffle_buffer = 1 + random.Below(12);
    point.options.grouped = random.Below(5) == 0;
    if (!point.options.grouped) {
      point.options.spacing = random.Below(static_cast<uint32_t>(point.options.shuffle_buffer) + 1);
    }
    point.options.seed = number;
    point.options.point = i;
    point.drain_each_epoch = random.Below(3) == 0;
    points.push_back(std::move(point));
  }
  std::vector<uint64_t> epochs;
  for (uint32_t i = 1 + random.Below(3); i > 0; --i) epochs.push_back(1 + random.Below(12));
  return {std::move(points), std::move(epochs)};
}

TEST(EpochEchoTest, AChainRestoredAnywhereGoesOnAlike) {
  for (uint64_t number = 0; number < uint64_t{1000} * testing::kThoroughness; ++number) {
    Chain through = MakeChain(number);
    Chain restored = MakeChain(number);
    RandomStream random({.low = number, .high = 0x7e57});
    uint64_t until_restore = random.Below(40);
    while (true) {
      const std::shared_ptr<const Place> expected = through.Next();
      const std::shared_ptr<const Place> got = restored.Next();
      ASSERT_EQ(expected == nullptr, got == nullptr) << number;
      if (!expected) break;
      ASSERT_TRUE(*expected == *got) << number;
      if (until_restore-- > 0) continue;
      restored.Restore();
      until_restore = random.Below(20);
    }
    ASSERT_FALSE(HasFailure()) << number;
  }
}

TEST(EpochEchoTest, AnEpochsEndWhereNoneCanBeIsRefused) {
  EchoPoint point{.options = {.factor = 2, .shuffle_buffer = 4}};
  EpochEcho<Place> echo(point);
  echo.Admit(std::make_shared<Place>(), true);
  EpochEchoState state = echo.State();
  ASSERT_THAT(state.epoch_borders, ::testing::ElementsAre(2));
  for (const std::vector<uint64_t>& borders :
       std::vector<std::vector<uint64_t>>{{0}, {3}, {2, 2}, {2, 1}}) {
    state.epoch_borders = borders;
    EXPECT_THROW(EpochEcho<Place>(point, state, echo.Residents()), Error);
  }
}

}  // namespace
}  // namespace echopipe::internal
