#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/erase.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(EraseTest, IsTorchvisions) {
  ExpectLikeTorchvision("erase", 0, [](const Tensor& pixels, const auto& parameters) {
    BufferPool pool;
    const auto integer = [&](size_t i) { return static_cast<int>(parameters.at(i)); };
    const PixelBox box = {
        .x = integer(1), .y = integer(0), .width = integer(3), .height = integer(2)};
    return Erase(pixels, box, {parameters.begin() + 4, parameters.end()}, pool);
  });
}

// What of a white picture was made black.
PixelBox BlackBox(const Tensor& pixels) {
  PixelBox box = {.x = 1 << 20, .y = 1 << 20};
  int right = 0;
  int bottom = 0;
  size_t i = 0;
  for (int y = 0; y < pixels.shape()[0]; ++y) {
    for (int x = 0; x < pixels.shape()[1]; ++x) {
      if (pixels.bytes()[i++] != 0) continue;
      box.x = std::min(box.x, x);
      box.y = std::min(box.y, y);
      right = std::max(right, x + 1);
      bottom = std::max(bottom, y + 1);
    }
  }
  if (right == 0) return {};
  box.width = right - box.x;
  box.height = bottom - box.y;
  return box;
}

Tensor White(int height, int width) {
  return Picture(height, width, 1, [](int, int, int) { return 255; });
}

TEST(RandomErasingTest, AreaRatioAndPlaceAreTorchvisions) {
  const auto stage = MakeStage(kRandomErasingStage, "probability: 1");
  const Tensor white = White(200, 200);
  std::vector<int> areas(4);
  std::vector<int> ratios(4);
  std::vector<int> places(4);
  for (uint64_t i = 0; i < 4000; ++i) {
    const PixelBox box = BlackBox(Apply(*stage, white, i));
    ASSERT_GT(box.width * box.height, 0);
    const double area = box.width * box.height / 40'000.0;
    const double ratio = static_cast<double>(box.height) / box.width;
    const auto part = [](double from_0_to_1) {
      return static_cast<size_t>(std::clamp(from_0_to_1 * 4, 0.0, 3.0));
    };
    ++areas[part((area - 0.02) / 0.31)];
    ++ratios[part(std::log(ratio / 0.3) / std::log(3.3 / 0.3))];
    ++places[part((box.y + 0.5) / (200 - box.height + 1))];
  }
  // The box's sides are whole, and what does not fit is drawn anew: that is rare.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(areas[i], 1000, 160);
    EXPECT_NEAR(ratios[i], 1000, 160);
    EXPECT_NEAR(places[i], 1000, 160);
  }
}

TEST(RandomErasingTest, TheRatioIsHeightOverWidth) {
  const auto stage =
      MakeStage(kRandomErasingStage,
                "probability: 1 min_ratio: 4 max_ratio: 4 min_scale: 0.04 max_scale: 0.04");
  const PixelBox box = BlackBox(Apply(*stage, White(100, 100)));
  EXPECT_EQ(box.height, 40);
  EXPECT_EQ(box.width, 10);
}

TEST(RandomErasingTest, ABoxThatNeverFitsLeavesThePictureAsItIs) {
  const auto stage = MakeStage(kRandomErasingStage, "probability: 1 min_scale: 1 max_scale: 1");
  const Tensor white = White(10, 10);
  EXPECT_EQ(Apply(*stage, white).buffer(), white.buffer());
}

TEST(RandomErasingTest, NoiseIsUniformAndAnewForEveryValue) {
  const auto stage = MakeStage(
      kRandomErasingStage,
      "probability: 1 fill: NOISE min_scale: 0.9 max_scale: 0.9 min_ratio: 1 max_ratio: 1");
  const Tensor noise = Apply(*stage, Picture(201, 201, 3, [](int, int, int) { return 0; }));
  std::vector<int> counts(16);
  for (const uint8_t value : noise.bytes()) {
    if (value != 0) ++counts[value / 16];
  }
  counts[0] = counts[0] * 16 / 15;  // of its values 0 is not counted
  EXPECT_LT(ChiSquareSigmas(counts), 6);
}

TEST(RandomErasingTest, WritesItsValueWithItsProbability) {
  const auto stage = MakeStage(kRandomErasingStage, "value: [1, 2, 3]");
  const Tensor white = Picture(20, 20, 3, [](int, int, int) { return 255; });
  int changes = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const std::vector<uint8_t> result = Bytes(Apply(*stage, white, i));
    const auto written = std::ranges::find(result, 1);
    if (written == result.end()) continue;
    ASSERT_EQ(written[1], 2);
    ASSERT_EQ(written[2], 3);
    ++changes;
  }
  EXPECT_NEAR(changes, 5000, 300);
}

TEST(RandomErasingTest, ThreeValuesForOneChannelAreAMismatch) {
  const auto stage = MakeStage(kRandomErasingStage, "value: [1, 2, 3] probability: 1");
  EXPECT_EQ(CodeOf([&] { Apply(*stage, Noise(8, 8, 1)); }), ErrorCode::kShapeMismatch);
}

TEST(RandomErasingTest, ValidationNamesTheField) {
  const auto message = [](const char* fields) {
    return InvalidMessage(kRandomErasingStage, fields);
  };
  EXPECT_EQ(message(""), "");
  EXPECT_THAT(message("min_scale: -0.1"), StartsWith("min_scale: "));
  EXPECT_THAT(message("max_scale: 0.01"), StartsWith("max_scale: "));
  EXPECT_THAT(message("max_scale: 1.01"), StartsWith("max_scale: "));
  EXPECT_THAT(message("min_ratio: 0"), StartsWith("min_ratio: "));
  EXPECT_THAT(message("max_ratio: nan"), StartsWith("max_ratio: "));
  EXPECT_THAT(message("value: 256"), StartsWith("value: "));
  EXPECT_THAT(message("value: [1, 2]"), HasSubstr("1, or 3"));
  EXPECT_THAT(message("value: 1 fill: NOISE"), StartsWith("value: "));
  EXPECT_THAT(message("fill: 7"), StartsWith("fill: "));
  EXPECT_THAT(message("probability: 7"), StartsWith("probability: "));
}

}  // namespace
}  // namespace echopipe::internal
