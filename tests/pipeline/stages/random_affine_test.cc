// What random_rotation and random_affine draw, and what they refuse.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Where the white pixels of a black picture are, in the mean, from its middle.
Place MiddleOfWhite(const Tensor& pixels) {
  Place sum;
  int count = 0;
  const int64_t width = pixels.shape()[1];
  for (int64_t i = 0; i < pixels.shape()[0] * width; ++i) {
    if (pixels.bytes()[static_cast<size_t>(i)] == 0) continue;
    const int64_t row = i / width;
    sum.x += static_cast<double>(i % width) - static_cast<double>(width - 1) / 2;
    sum.y += static_cast<double>(row) - static_cast<double>(pixels.shape()[0] - 1) / 2;
    ++count;
  }
  return count == 0 ? Place{} : Place{.x = sum.x / count, .y = sum.y / count};
}

// A block of white to the right of the middle.
Tensor BlockAtTheRight() {
  return Picture(101, 101, 1, [](int y, int x, int) {
    return std::abs(y - 50) <= 2 && std::abs(x - 90) <= 2 ? 255 : 0;
  });
}

// How often a drawn number fell into each of eight equal parts of [low, high].
template <class Measure>
std::vector<int> CountsOf(const Stage& stage, const Tensor& pixels, double low, double high,
                          const Measure& measure) {
  std::vector<int> counts(8);
  for (uint64_t i = 0; i < 4000; ++i) {
    const double part = (measure(Apply(stage, pixels, i)) - low) / (high - low) * 8;
    EXPECT_TRUE(part > -0.3 && part < 8.3) << part;
    ++counts[static_cast<size_t>(std::clamp(part, 0.0, 7.0))];
  }
  return counts;
}

void ExpectUniform(const std::vector<int>& counts) {
  // Whole pixels move a few per cent from one part to the next.
  for (const int count : counts) EXPECT_NEAR(count, 500, 170);
}

TEST(RandomRotationTest, TurnsCounterClockwiseByAUniformAngle) {
  const auto degrees = [](const Tensor& turned) {
    const Place place = MiddleOfWhite(turned);
    return std::atan2(-place.y, place.x) * 180 / M_PI;  // y points down
  };
  const auto counts = [&](const char* fields, double low, double high) {
    return CountsOf(*MakeStage(kRandomRotationStage, fields), BlockAtTheRight(), low, high,
                    degrees);
  };
  ExpectUniform(counts("degrees: 40", -40, 40));
  ExpectUniform(counts("degrees: [10, 90] interpolation: BILINEAR", 10, 90));
}

TEST(RandomAffineTest, TurnsClockwise) {
  const auto stage = MakeStage(kRandomAffineStage, "degrees: [30, 30]");
  EXPECT_GT(MiddleOfWhite(Apply(*stage, BlockAtTheRight())).y, 10);
}

TEST(RandomAffineTest, ShiftsByAUniformNumberOfWholePixels) {
  const Tensor dot =
      Picture(41, 81, 1, [](int y, int x, int) { return y == 20 && x == 40 ? 9 : 0; });
  const auto stage =
      MakeStage(kRandomAffineStage, "translate_x: 0.25 translate_y: 0.125 interpolation: BILINEAR");
  ExpectUniform(CountsOf(*stage, dot, -20.25, 20.25,
                         [](const Tensor& moved) { return MiddleOfWhite(moved).x; }));
  // Eleven whole numbers in eight parts.
  for (uint64_t i = 0; i < 1000; ++i) {
    const Tensor moved = Apply(*stage, dot, i);
    ASSERT_LE(std::abs(MiddleOfWhite(moved).y), 5);
    ASSERT_EQ(std::ranges::count(moved.bytes(), 9), 1) << "blurred by a broken shift";
  }
}

TEST(RandomAffineTest, ScalesByAUniformFactor) {
  const Tensor block = Picture(101, 101, 1, [](int y, int x, int) {
    return std::abs(y - 50) <= 20 && std::abs(x - 50) <= 20 ? 255 : 0;
  });
  const auto stage = MakeStage(kRandomAffineStage, "min_scale: 0.4 max_scale: 2");
  ExpectUniform(CountsOf(*stage, block, 0.4, 2, [](const Tensor& scaled) {
    return std::sqrt(static_cast<double>(std::ranges::count(scaled.bytes(), 255))) / 41;
  }));
}

TEST(RandomAffineTest, TwoShearsAreAlongXAndFourAlongBoth) {
  BufferPool pool;
  const Tensor pixels = Noise(20, 20, 3);
  const auto sheared = [&](const AffineParameters& parameters) {
    return Bytes(Affine(pixels, parameters, {.fill = {0}}, pool));
  };
  const auto applied = [&](const char* fields) {
    return Bytes(Apply(*MakeStage(kRandomAffineStage, fields), pixels));
  };
  EXPECT_EQ(applied("shear: [12, 12]"), sheared({.shear_x_degrees = 12}));
  EXPECT_EQ(applied("shear: [12, 12, -7, -7]"),
            sheared({.shear_x_degrees = 12, .shear_y_degrees = -7}));
  EXPECT_EQ(applied("shear: 0"), sheared({}));
  EXPECT_NE(applied("shear: 30"), sheared({}));
}

TEST(RandomAffineTest, CenterAndFillAreThoseGiven) {
  BufferPool pool;
  const Tensor pixels = Noise(20, 20, 3);
  const Sampling sampling = {.interpolation = proto::BILINEAR, .fill = {9, 8, 7}};
  const std::string both = " center: [3, 4] fill: [9, 8, 7] interpolation: BILINEAR";
  const Place center = {.x = 3, .y = 4};
  EXPECT_EQ(Bytes(Apply(*MakeStage(kRandomAffineStage, "degrees: [20, 20]" + both), pixels)),
            Bytes(Affine(pixels, {.degrees = 20, .center = center}, sampling, pool)));
  EXPECT_EQ(Bytes(Apply(*MakeStage(kRandomRotationStage, "degrees: [20, 20]" + both), pixels)),
            Bytes(Rotate(pixels, {.degrees = 20, .center = center}, sampling, pool)));
}

TEST(RandomRotationTest, ExpandKeepsTheWholePicture) {
  const auto stage = MakeStage(kRandomRotationStage, "degrees: [45, 45] expand: true");
  const Tensor white = Picture(100, 100, 1, [](int, int, int) { return 255; });
  const Tensor turned = Apply(*stage, white);
  EXPECT_EQ(turned.shape(), Shape({142, 142, 1}));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(turned.bytes(), 255)), 10'000, 100);
}

TEST(RandomRotationTest, WhatWouldBecomeTooLargeIsRefusedBeforeItIsMade) {
  const auto stage = MakeStage(kRandomRotationStage, "degrees: [45, 45] expand: true");
  try {
    Apply(*stage, Picture(1, 65'500, 1, [](int, int, int) { return 1; }));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
    EXPECT_THAT(error.what(), AllOf(StartsWith("image: "), HasSubstr("[46317, 46318, 1]")));
  }
}

TEST(RandomAffineTest, ThreeFillsForOneChannelAreAMismatch) {
  for (const StageType* type : {&kRandomAffineStage, &kRandomRotationStage}) {
    const auto stage = MakeStage(*type, "degrees: 3 fill: [1, 2, 3]");
    EXPECT_EQ(CodeOf([&] { Apply(*stage, Noise(8, 8, 1)); }), ErrorCode::kShapeMismatch);
  }
}

TEST(RandomAffineTest, ValidationNamesTheField) {
  for (const StageType* type : {&kRandomAffineStage, &kRandomRotationStage}) {
    const auto message = [&](const std::string& fields) { return InvalidMessage(*type, fields); };
    EXPECT_EQ(message("degrees: 10"), "");
    EXPECT_THAT(message("degrees: -1"), StartsWith("degrees: "));
    EXPECT_THAT(message("degrees: [5, 4]"), StartsWith("degrees: "));
    EXPECT_THAT(message("degrees: [-361, 4]"), StartsWith("degrees: "));
    EXPECT_THAT(message("degrees: nan"), StartsWith("degrees: "));
    EXPECT_THAT(message("degrees: 1 interpolation: BICUBIC"),
                AllOf(StartsWith("interpolation: "), HasSubstr("BICUBIC")));
    EXPECT_THAT(message("degrees: 1 interpolation: 9"), StartsWith("interpolation: "));
    EXPECT_THAT(message("degrees: 1 center: 3"), StartsWith("center: "));
    EXPECT_THAT(message("degrees: 1 center: [3, inf]"), StartsWith("center: "));
    EXPECT_THAT(message("degrees: 1 fill: [3, 4]"), StartsWith("fill: "));
    EXPECT_THAT(message("degrees: 1 fill: 256"), StartsWith("fill: "));
  }
  EXPECT_THAT(InvalidMessage(kRandomRotationStage, ""), StartsWith("degrees: "));
  const auto message = [](const char* fields) {
    return InvalidMessage(kRandomAffineStage, fields);
  };
  EXPECT_EQ(message(""), "");
  EXPECT_THAT(message("translate_x: 1.1"), StartsWith("translate_x: "));
  EXPECT_THAT(message("translate_y: -0.1"), StartsWith("translate_y: "));
  EXPECT_THAT(message("min_scale: 0"), StartsWith("min_scale: "));
  EXPECT_THAT(message("min_scale: 2"), StartsWith("max_scale: "));
  EXPECT_THAT(message("shear: 90"), StartsWith("shear: "));
  EXPECT_THAT(message("shear: [1, 2, 3]"), StartsWith("shear: "));
  EXPECT_THAT(message("shear: [1, 2, 3, 2]"), StartsWith("shear: "));
  EXPECT_THAT(message("shear: [1, 2, 3, 4, 5]"), StartsWith("shear: "));
}

}  // namespace
}  // namespace echopipe::internal
