#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const CropStage& AsCrop(const Stage& stage) { return dynamic_cast<const CropStage&>(stage); }

PixelBox BoxOf(const Stage& stage, int height, int width, uint64_t i = 0) {
  BufferPool pool;
  return AsCrop(stage).Box(height, width, {.pool = pool, .random_key = Key(i)});
}

std::string SizeFields(int height, int width) {
  return "height: " + std::to_string(height) + " width: " + std::to_string(width) + " ";
}

TEST(ChiSquareTest, SeesAPlantedBiasAndPassesFairCounts) {
  RandomStream random(Key(1));
  std::vector<int> fair(50);
  std::vector<int> biased(50);
  for (int i = 0; i < 50'000; ++i) {
    ++fair[random.Below(50)];
    // One cell in ten is drawn a fifth more often.
    const uint32_t cell = random.Below(50);
    ++biased[random.Bernoulli(0.02) ? cell / 10 * 10 : cell];
  }
  EXPECT_LT(ChiSquareSigmas(fair), 6);
  EXPECT_GT(ChiSquareSigmas(biased), 6);
}

// Center crop.

TEST(CenterCropTest, OffsetsAreHalfTheRestWithHalvesRoundedToEven) {
  for (int size = 1; size <= 40; ++size) {
    for (int wanted = 1; wanted <= size; ++wanted) {
      const auto stage = MakeStage(kCenterCropStage, SizeFields(wanted, 1));
      const int expected = static_cast<int>(std::nearbyint((size - wanted) / 2.0));
      EXPECT_EQ(BoxOf(*stage, size, 1).y, expected) << size << " " << wanted;
    }
  }
  const auto stage = MakeStage(kCenterCropStage, SizeFields(224, 224));
  EXPECT_EQ(BoxOf(*stage, 375, 500), (PixelBox{.x = 138, .y = 76, .width = 224, .height = 224}));
}

TEST(CenterCropTest, ASmallerPictureIsPaddedWithTheOddRowBehind) {
  const Tensor pixels = Picture(1, 3, 1, [](int, int x, int) { return x + 1; });
  const auto stage = MakeStage(kCenterCropStage, SizeFields(4, 2));
  // Of the three columns, the rest of one is rounded to even: the crop begins at 0.
  EXPECT_THAT(Bytes(Apply(*stage, pixels)), ElementsAre(0, 0, 1, 2, 0, 0, 0, 0));
  const auto wide = MakeStage(kCenterCropStage, SizeFields(1, 6));
  EXPECT_THAT(Bytes(Apply(*wide, pixels)), ElementsAre(0, 1, 2, 3, 0, 0));
}

TEST(CenterCropTest, APictureOfThatSizeIsNotCopied) {
  const Tensor pixels = Noise(5, 4, 3);
  EXPECT_EQ(Apply(*MakeStage(kCenterCropStage, SizeFields(5, 4)), pixels).buffer(),
            pixels.buffer());
}

// Random crop.

TEST(RandomCropTest, EveryPlaceIsEquallyLikely) {
  const auto stage = MakeStage(kRandomCropStage, SizeFields(3, 4));
  std::vector<int> counts(5 * 7);
  for (uint64_t i = 0; i < 35'000; ++i) {
    const PixelBox box = BoxOf(*stage, 7, 10, i);
    ++counts[static_cast<size_t>(box.y * 7 + box.x)];
  }
  EXPECT_LT(ChiSquareSigmas(counts), 6);
}

TEST(RandomCropTest, PaddingIsBlackAndEveryPlaceInItIsEquallyLikely) {
  // 1 + 2 * 2 rows and 2 + 2 * 2 columns hold 4 x 4 places for a crop of 2 x 3.
  const Tensor pixels = Picture(1, 2, 3, [](int, int x, int c) { return 1 + 3 * x + c; });
  const auto stage = MakeStage(kRandomCropStage, SizeFields(2, 3) + "padding: 2");
  EXPECT_EQ(dynamic_cast<const CropStage*>(stage.get()), nullptr);
  std::vector<std::vector<uint8_t>> places;
  for (int y = -2; y < 2; ++y) {
    for (int x = -2; x < 2; ++x) {
      places.push_back(Bytes(CutOut(pixels, {.x = x, .y = y, .width = 3, .height = 2})));
    }
  }
  int black = 0;
  constexpr int kExamples = 16'000;
  for (int i = 0; i < kExamples; ++i) {
    const std::vector<uint8_t> got = Bytes(Apply(*stage, pixels, static_cast<uint64_t>(i)));
    ASSERT_NE(std::ranges::find(places, got), places.end());
    if (std::ranges::count(got, 0) == std::ssize(got)) ++black;
  }
  const auto black_places =
      std::ranges::count(places, std::vector<uint8_t>(places.front().size(), 0));
  ASSERT_EQ(black_places, 8);
  EXPECT_NEAR(black, kExamples / 2, 6 * std::sqrt(kExamples / 4.0));
}

TEST(RandomCropTest, AWholePictureHasOnePlace) {
  const Tensor pixels = Noise(6, 5, 1);
  EXPECT_EQ(Apply(*MakeStage(kRandomCropStage, SizeFields(6, 5)), pixels).buffer(),
            pixels.buffer());
}

TEST(RandomCropTest, ACropLargerThanThePaddedPictureIsAMismatch) {
  for (const std::string& size : {SizeFields(8, 3), SizeFields(3, 8)}) {
    const auto stage = MakeStage(kRandomCropStage, size + "padding: 1");
    EXPECT_EQ(CodeOf([&] { Apply(*stage, Noise(5, 5, 3)); }), ErrorCode::kShapeMismatch);
  }
  const auto fits = MakeStage(kRandomCropStage, SizeFields(7, 7) + "padding: 1");
  EXPECT_EQ(Apply(*fits, Noise(5, 5, 3)).shape(), Shape({7, 7, 3}));
  const auto unpadded = MakeStage(kRandomCropStage, SizeFields(6, 5));
  EXPECT_EQ(CodeOf([&] { BoxOf(*unpadded, 5, 5); }), ErrorCode::kShapeMismatch);
}

// Random resized crop.

TEST(RandomResizedCropTest, AreaIsUniformOverItsRange) {
  const auto stage =
      MakeStage(kRandomResizedCropStage,
                SizeFields(1, 1) + "min_scale: 0.1 max_scale: 0.5 min_ratio: 1 max_ratio: 1");
  std::vector<int> counts(20);
  for (uint64_t i = 0; i < 20'000; ++i) {
    const PixelBox box = BoxOf(*stage, 20'000, 20'000, i);
    const double area = double{1} * box.width * box.height / 4e8;
    ASSERT_GE(area, 0.0999);
    ASSERT_LE(area, 0.5001);
    ++counts[std::min<size_t>(static_cast<size_t>(std::max(0.0, (area - 0.1) / 0.02)), 19)];
  }
  EXPECT_LT(ChiSquareSigmas(counts), 6);
}

TEST(RandomResizedCropTest, TheRatiosLogarithmIsUniformOverItsRange) {
  const auto stage =
      MakeStage(kRandomResizedCropStage,
                SizeFields(1, 1) + "min_scale: 0.1 max_scale: 0.1 min_ratio: 0.5 max_ratio: 4");
  std::vector<int> counts(20);
  for (uint64_t i = 0; i < 20'000; ++i) {
    const PixelBox box = BoxOf(*stage, 20'000, 20'000, i);
    const double place = std::log2(double{1} * box.width / box.height) + 1;
    ASSERT_GE(place, -0.001);
    ASSERT_LE(place, 3.001);
    ++counts[static_cast<size_t>(std::clamp(place / 3 * 20, 0.0, 19.0))];
  }
  EXPECT_LT(ChiSquareSigmas(counts), 6);
}

TEST(RandomResizedCropTest, EveryPlaceIsEquallyLikely) {
  // 0.25 of 8 x 12 with ratio 1.5 is 4 x 6.
  const auto stage =
      MakeStage(kRandomResizedCropStage,
                SizeFields(1, 1) + "min_scale: 0.25 max_scale: 0.25 min_ratio: 1.5 max_ratio: 1.5");
  std::vector<int> counts(5 * 7);
  for (uint64_t i = 0; i < 35'000; ++i) {
    const PixelBox box = BoxOf(*stage, 8, 12, i);
    ASSERT_EQ(box.height, 4);
    ASSERT_EQ(box.width, 6);
    ++counts[static_cast<size_t>(box.y * 7 + box.x)];
  }
  EXPECT_LT(ChiSquareSigmas(counts), 6);
}

TEST(RandomResizedCropTest, DefaultsAreThoseOfTorchvision) {
  const auto defaults = MakeStage(kRandomResizedCropStage, SizeFields(7, 9));
  const auto spelled =
      MakeStage(kRandomResizedCropStage, SizeFields(7, 9) +
                                             "min_scale: 0.08 max_scale: 1 min_ratio: 0.75 "
                                             "max_ratio: 1.3333333333333333");
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(BoxOf(*defaults, 375, 500, i), BoxOf(*spelled, 375, 500, i));
  }
}

// torchvision's get_params, line by line, drawing in its order; nothing if ten tries failed.
std::optional<PixelBox> ReferenceBox(int height, int width, uint64_t i) {
  RandomStream random(Key(i));
  const double log_low = std::log(3.0 / 4.0);
  const double log_high = std::log(4.0 / 3.0);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = height * width * (0.08 + (1.0 - 0.08) * random.Uniform());
    const double aspect_ratio = std::exp(log_low + (log_high - log_low) * random.Uniform());
    const int w = static_cast<int>(std::lrint(std::sqrt(target_area * aspect_ratio)));
    const int h = static_cast<int>(std::lrint(std::sqrt(target_area / aspect_ratio)));
    if (0 < w && w <= width && 0 < h && h <= height) {
      const int top = static_cast<int>(random.Below(static_cast<uint32_t>(height - h + 1)));
      const int left = static_cast<int>(random.Below(static_cast<uint32_t>(width - w + 1)));
      return PixelBox{.x = left, .y = top, .width = w, .height = h};
    }
  }
  return {};
}

TEST(RandomResizedCropTest, TriesTenTimesAsTorchvisionDoes) {
  const auto stage = MakeStage(kRandomResizedCropStage, SizeFields(7, 9));
  int fallbacks = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    const int height = 1 + static_cast<int>(i % 50);
    const int width = 1 + static_cast<int>(i / 50);
    const std::optional<PixelBox> expected = ReferenceBox(height, width, i);
    if (expected) {
      EXPECT_EQ(BoxOf(*stage, height, width, i), *expected);
    } else {
      ++fallbacks;
    }
  }
  EXPECT_GT(fallbacks, 0);
  EXPECT_LT(fallbacks, 1500);
}

TEST(RandomResizedCropTest, WhereNoBoxFitsItIsTheLargestInTheMiddleOfAnAllowedRatio) {
  const auto whole = [](const std::string& ratios) {
    return MakeStage(kRandomResizedCropStage,
                     SizeFields(1, 1) + "min_scale: 1 max_scale: 1 " + ratios);
  };
  const auto square = whole("min_ratio: 1 max_ratio: 1");
  EXPECT_EQ(BoxOf(*square, 10, 101), (PixelBox{.x = 45, .y = 0, .width = 10, .height = 10}));
  EXPECT_EQ(BoxOf(*square, 101, 10), (PixelBox{.x = 0, .y = 45, .width = 10, .height = 10}));
  const auto wide = whole("min_ratio: 2 max_ratio: 3");
  EXPECT_EQ(BoxOf(*wide, 7, 100), (PixelBox{.x = 39, .y = 0, .width = 21, .height = 7}));
  // 5 / 2 is rounded to even.
  EXPECT_EQ(BoxOf(*wide, 100, 5), (PixelBox{.x = 0, .y = 49, .width = 5, .height = 2}));
}

TEST(RandomResizedCropTest, ExtremeShapesStillGiveAtLeastOnePixel) {
  const auto flat =
      MakeStage(kRandomResizedCropStage, SizeFields(3, 3) + "min_ratio: 900 max_ratio: 1000");
  EXPECT_EQ(BoxOf(*flat, 500, 1).height, 1);
  const auto defaults = MakeStage(kRandomResizedCropStage, SizeFields(3, 3));
  EXPECT_EQ(BoxOf(*defaults, 1, 1'000'000),
            (PixelBox{.x = 499'999, .y = 0, .width = 1, .height = 1}));
}

TEST(CropValidationTest, MessagesNameTheField) {
  for (const StageType* type : {&kCenterCropStage, &kRandomCropStage, &kRandomResizedCropStage}) {
    EXPECT_THAT(InvalidMessage(*type, "width: 3"), StartsWith("height: "));
    EXPECT_THAT(InvalidMessage(*type, "height: 3"), StartsWith("width: "));
    EXPECT_THAT(InvalidMessage(*type, "height: 3 width: 16385"), StartsWith("width: "));
    EXPECT_EQ(InvalidMessage(*type, "height: 1 width: 16384"), "");
  }
  EXPECT_THAT(InvalidMessage(kRandomCropStage, "height: 3 width: 3 padding: 16385"),
              StartsWith("padding: "));
  const auto invalid = [](const std::string& fields) {
    return InvalidMessage(kRandomResizedCropStage, "height: 3 width: 3 " + fields);
  };
  EXPECT_THAT(invalid("min_scale: 0"), StartsWith("min_scale: "));
  EXPECT_THAT(invalid("min_scale: nan"), StartsWith("min_scale: "));
  EXPECT_THAT(invalid("max_scale: 1.5"), StartsWith("max_scale: "));
  EXPECT_THAT(invalid("max_scale: 0.05"), HasSubstr("at least min_scale"));
  EXPECT_THAT(invalid("min_ratio: 0"), StartsWith("min_ratio: "));
  EXPECT_THAT(invalid("min_ratio: 2 max_ratio: 1"), StartsWith("max_ratio: "));
  EXPECT_THAT(invalid("max_ratio: inf"), StartsWith("max_ratio: "));
  EXPECT_THAT(invalid("interpolation: 4"), StartsWith("interpolation: "));
}

}  // namespace
}  // namespace echopipe::internal
