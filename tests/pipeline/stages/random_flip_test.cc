#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(RandomFlipTest, ExchangesLeftAndRightAndKeepsTheChannels) {
  const auto stage = MakeStage(kRandomFlipStage, "probability: 1");
  const Tensor pixels = Picture(2, 2, 3, [](int y, int x, int c) { return 100 * y + 10 * x + c; });
  EXPECT_THAT(Bytes(Apply(*stage, pixels)),
              ElementsAre(10, 11, 12, 0, 1, 2, 110, 111, 112, 100, 101, 102));
}

TEST(RandomFlipTest, EveryWidthIsMirroredOnEveryInstructionSet) {
  BufferPool pool;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (int width = 1; width <= 100; ++width) {
      for (const int channels : {1, 3}) {
        const Tensor pixels = Noise(3, width, channels);
        const auto from = [&](int y, int x, int c) {
          const int i = (y * width + width - 1 - x) * channels + c;
          return int{pixels.bytes()[static_cast<size_t>(i)]};
        };
        ASSERT_EQ(Bytes(Mirror(pixels, pool)), Bytes(Picture(3, width, channels, from)))
            << hwy::TargetName(target) << ", width " << width;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

int FlipsOf(const Stage& stage, int examples) {
  const Tensor pixels = Picture(1, 2, 1, [](int, int x, int) { return x; });
  int flips = 0;
  for (int i = 0; i < examples; ++i) {
    if (Bytes(Apply(stage, pixels, static_cast<uint64_t>(i)))[0] == 1) ++flips;
  }
  return flips;
}

TEST(RandomFlipTest, FlipsWithItsProbability) {
  constexpr int kExamples = 10'000;
  const auto flips = [](const char* fields) {
    return FlipsOf(*MakeStage(kRandomFlipStage, fields), kExamples);
  };
  EXPECT_EQ(flips("probability: 0"), 0);
  EXPECT_EQ(flips("probability: 1"), kExamples);
  // Six standard deviations are 300 and 260.
  EXPECT_NEAR(flips(""), 5000, 300);
  EXPECT_NEAR(flips("probability: 0.25"), 2500, 260);
}

TEST(RandomFlipTest, AnExampleThatIsNotFlippedIsNotCopied) {
  const auto stage = MakeStage(kRandomFlipStage, "probability: 0");
  const Tensor pixels = Noise(3, 3, 3);
  EXPECT_EQ(Apply(*stage, pixels).buffer(), pixels.buffer());
}

TEST(RandomFlipTest, ValidationNamesTheField) {
  for (const char* fields : {"probability: -0.1", "probability: 1.1", "probability: nan"}) {
    EXPECT_THAT(InvalidMessage(kRandomFlipStage, fields), StartsWith("probability: "));
  }
}

}  // namespace
}  // namespace echopipe::internal
