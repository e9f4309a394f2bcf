#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::StartsWith;

std::unique_ptr<Stage> Jitter(const std::string& fields) {
  return MakeStage(kColorJitterStage, fields);
}

// How often the factors fell into each of eight equal parts of [low, high].
std::vector<int> BrightnessFactors(const std::string& fields, double low, double high) {
  const auto stage = Jitter(fields);
  const Tensor pixel = Picture(1, 1, 1, [](int, int, int) { return 100; });
  std::vector<int> counts(8);
  for (uint64_t i = 0; i < 8000; ++i) {
    // A result of k is a factor in [k, k + 1) / 100.
    const double factor = (Bytes(Apply(*stage, pixel, i))[0] + 0.5) / 100;
    const double part = (factor - low) / (high - low) * 8;
    EXPECT_TRUE(part >= 0 && part < 8) << factor;
    ++counts[static_cast<size_t>(part)];
  }
  return counts;
}

TEST(ColorJitterTest, FactorsAreUniformAroundOneOrBetweenTheValuesGiven) {
  EXPECT_LT(ChiSquareSigmas(BrightnessFactors("brightness: 0.4", 0.6, 1.4)), 6);
  EXPECT_LT(ChiSquareSigmas(BrightnessFactors("brightness: [0.5, 2.1]", 0.5, 2.1)), 6);
  // 1 - 1.56 is below what a factor may be.
  EXPECT_LT(ChiSquareSigmas(BrightnessFactors("brightness: 1.4", 0, 2.4)), 6);
}

TEST(ColorJitterTest, TheFourChangesComeInEveryOrder) {
  // With fixed factors the order alone is random.
  const auto stage =
      Jitter("brightness: [1.5, 1.5] contrast: [0.4, 0.4] saturation: [1.9, 1.9] hue: [0.2, 0.2]");
  const Tensor pixels = Noise(9, 9, 3);
  std::set<std::string> results;
  for (uint64_t i = 0; i < 1000; ++i) {
    const std::vector<uint8_t> result = Bytes(Apply(*stage, pixels, i));
    results.insert(std::string(result.begin(), result.end()));
  }
  // Of the 24 orders some may give the same.
  EXPECT_LE(results.size(), 24U);
  EXPECT_GE(results.size(), 20U);
}

TEST(ColorJitterTest, EachFieldChangesWhatItIsCalledAfter) {
  BufferPool pool;
  const Tensor pixels = Noise(9, 9, 3);
  EXPECT_EQ(Bytes(Apply(*Jitter("brightness: [0.3, 0.3]"), pixels)),
            Bytes(AdjustBrightness(pixels, 0.3, pool)));
  EXPECT_EQ(Bytes(Apply(*Jitter("contrast: [0.3, 0.3]"), pixels)),
            Bytes(AdjustContrast(pixels, 0.3, pool)));
  EXPECT_EQ(Bytes(Apply(*Jitter("saturation: [0.3, 0.3]"), pixels)),
            Bytes(AdjustSaturation(pixels, 0.3, pool)));
  EXPECT_EQ(Bytes(Apply(*Jitter("hue: [0.3, 0.3]"), pixels)), Bytes(AdjustHue(pixels, 0.3, pool)));
}

TEST(ColorJitterTest, NothingIsCopiedWhereNothingChanges) {
  const Tensor pixels = Noise(3, 3, 3);
  for (const char* fields : {"", "brightness: 0 contrast: 0 saturation: [1, 1] hue: 0",
                             "brightness: 0.5 probability: 0"}) {
    EXPECT_EQ(Apply(*Jitter(fields), pixels).buffer(), pixels.buffer()) << fields;
  }
}

TEST(ColorJitterTest, ValidationNamesTheField) {
  const auto message = [](const char* fields) { return InvalidMessage(kColorJitterStage, fields); };
  EXPECT_EQ(message(""), "");
  EXPECT_THAT(message("brightness: -0.1"), StartsWith("brightness: "));
  EXPECT_THAT(message("brightness: nan"), StartsWith("brightness: "));
  EXPECT_THAT(message("contrast: [2, 1]"), StartsWith("contrast: "));
  EXPECT_THAT(message("contrast: [-1, 1]"), StartsWith("contrast: "));
  EXPECT_THAT(message("saturation: [1, 2, 3]"), StartsWith("saturation: "));
  EXPECT_THAT(message("saturation: inf"), StartsWith("saturation: "));
  EXPECT_THAT(message("hue: 0.6"), StartsWith("hue: "));
  EXPECT_THAT(message("hue: [-0.6, 0]"), StartsWith("hue: "));
  EXPECT_THAT(message("probability: 2"), StartsWith("probability: "));
}

}  // namespace
}  // namespace echopipe::internal
