#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/pipeline/stages/blur.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// In large pictures a sum close to a half may be rounded to the other side.
TEST(BlurTest, IsTorchvisions) {
  ExpectLikeTorchvision("gaussian_blur", 0, [](const Tensor& pixels, const auto& parameters) {
    BufferPool pool;
    return Blur(pixels,
                {.width = static_cast<int>(parameters.at(0)),
                 .height = static_cast<int>(parameters.at(1)),
                 .sigma = parameters.at(2)},
                pool);
  });
}

TEST(BlurTest, EveryInstructionSetGivesTheSameValues) {
  const auto many_outputs = [] {
    BufferPool pool;
    std::vector<uint8_t> all;
    for (int width = 4; width <= 100; ++width) {
      for (const int channels : {1, 3}) {
        const GaussianKernel kernel = {.width = 7, .height = 5, .sigma = 0.3 + width * 0.02};
        const Tensor blurred = Blur(Noise(5, width, channels), kernel, pool);
        all.insert(all.end(), blurred.bytes().begin(), blurred.bytes().end());
      }
    }
    return all;
  };
  const std::vector<uint8_t> best = many_outputs();
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(many_outputs(), best) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(BlurTest, WhatIsFlatStaysFlat) {
  BufferPool pool;
  const Tensor white = Picture(20, 20, 3, [](int, int, int) { return 255; });
  for (const double sigma : {0.001, 0.1, 0.7, 2.0, 1000.0}) {
    const GaussianKernel kernel = {.width = 31, .height = 9, .sigma = sigma};
    EXPECT_EQ(Bytes(Blur(white, kernel, pool)), Bytes(white)) << sigma;
  }
}

// One white pixel shows how wide the kernel was: its value is 255 * w^2 for the middle weight w.
TEST(GaussianBlurTest, TheDeviationIsUniformBetweenItsBounds) {
  const Tensor dot = Picture(9, 9, 1, [](int y, int x, int) { return y == 4 && x == 4 ? 255 : 0; });
  const auto stage = MakeStage(kGaussianBlurStage, "kernel_size: 9 min_sigma: 0.5 max_sigma: 1");
  const auto middle = [&](double sigma) {
    double sum = 0;
    for (int x = -4; x <= 4; ++x) sum += std::exp(-0.5 * x * x / sigma / sigma);
    return 255 / (sum * sum);
  };
  std::vector<int> counts(4);
  for (uint64_t i = 0; i < 4000; ++i) {
    const int value = Bytes(Apply(*stage, dot, i))[40];
    size_t part = 0;
    while (part < 3 && value < middle(0.5 + 0.125 * static_cast<double>(part + 1))) ++part;
    ++counts[part];
  }
  // Whole values give a quarter up to 1.5% too much or too little.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 250);
}

TEST(GaussianBlurTest, OneSizeIsForBothAxesAndTwoAreWidthAndHeight) {
  const Tensor dot = Picture(5, 5, 1, [](int y, int x, int) { return y == 2 && x == 2 ? 255 : 0; });
  const auto shape_of = [&](const std::string& sizes) {
    const auto stage = MakeStage(kGaussianBlurStage, sizes + " min_sigma: 1 max_sigma: 1");
    const std::vector<uint8_t> result = Bytes(Apply(*stage, dot));
    return std::vector<bool>{result[11] > 0, result[7] > 0};  // left of the dot, above it
  };
  EXPECT_THAT(shape_of("kernel_size: 3"), ElementsAre(true, true));
  EXPECT_THAT(shape_of("kernel_size: [3, 1]"), ElementsAre(true, false));
  EXPECT_THAT(shape_of("kernel_size: [1, 3]"), ElementsAre(false, true));
}

TEST(GaussianBlurTest, APictureTooSmallToBeMirroredIsNamedWithBothSizes) {
  const auto stage = MakeStage(kGaussianBlurStage, "kernel_size: [7, 5]");
  Apply(*stage, Noise(3, 4, 3));
  for (const Tensor& pixels : {Noise(2, 4, 3), Noise(3, 3, 3), Noise(1, 1, 1)}) {
    try {
      Apply(*stage, pixels);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
      EXPECT_THAT(error.what(), AllOf(StartsWith("image: "), HasSubstr(pixels.shape().ToString()),
                                      HasSubstr("at least [3, 4]")));
    }
  }
}

TEST(GaussianBlurTest, ValidationNamesTheField) {
  const auto message = [](const char* fields) {
    return InvalidMessage(kGaussianBlurStage, fields);
  };
  EXPECT_EQ(message("kernel_size: 255"), "");
  EXPECT_THAT(message(""), StartsWith("kernel_size: "));
  EXPECT_THAT(message("kernel_size: 4"), StartsWith("kernel_size: "));
  EXPECT_THAT(message("kernel_size: [3, 0]"), StartsWith("kernel_size: "));
  EXPECT_THAT(message("kernel_size: [3, 5, 7]"), StartsWith("kernel_size: "));
  EXPECT_THAT(message("kernel_size: 257"), StartsWith("kernel_size: "));
  EXPECT_THAT(message("kernel_size: 3 min_sigma: 0"), StartsWith("min_sigma: "));
  EXPECT_THAT(message("kernel_size: 3 max_sigma: 0.05"), StartsWith("max_sigma: "));
  EXPECT_THAT(message("kernel_size: 3 max_sigma: nan"), StartsWith("max_sigma: "));
  EXPECT_THAT(message("kernel_size: 3 probability: -1"), StartsWith("probability: "));
}

}  // namespace
}  // namespace echopipe::internal
