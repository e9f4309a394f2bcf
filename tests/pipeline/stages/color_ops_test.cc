#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using Parameters = std::vector<double>;

// An operation with one number.
template <class Operation>
auto WithOneNumber(Operation operation) {
  return [operation](const Tensor& pixels, const Parameters& parameters) {
    BufferPool pool;
    return operation(pixels, parameters.at(0), pool);
  };
}

auto WithoutNumbers(Tensor (*operation)(const Tensor&, BufferPool&)) {
  return [operation](const Tensor& pixels, const Parameters&) {
    BufferPool pool;
    return operation(pixels, pool);
  };
}

// contrast, saturation and sharpness round down sums of products, which torch fuses where the
// machine can: in large pictures a few values may be off by one (docs/augmentations.md).
TEST(ColorOpsTest, EachIsTorchvisions) {
  ExpectLikeTorchvision("brightness", 0, WithOneNumber(&AdjustBrightness));
  ExpectLikeTorchvision("contrast", 0, WithOneNumber(&AdjustContrast));
  ExpectLikeTorchvision("saturation", 0, WithOneNumber(&AdjustSaturation));
  ExpectLikeTorchvision("hue", 0, WithOneNumber(&AdjustHue));
  ExpectLikeTorchvision("sharpness", 0, WithOneNumber(&AdjustSharpness));
  ExpectLikeTorchvision("grayscale", 0, WithoutNumbers(&Grayscale));
  ExpectLikeTorchvision("posterize", 0, WithOneNumber(&Posterize));
  ExpectLikeTorchvision("solarize", 0, WithOneNumber(&Solarize));
  ExpectLikeTorchvision("invert", 0, WithoutNumbers(&Invert));
  ExpectLikeTorchvision("autocontrast", 0, WithoutNumbers(&Autocontrast));
  ExpectLikeTorchvision("equalize", 0, WithoutNumbers(&Equalize));
}

// What the vector loops make of every width.
std::vector<uint8_t> ManyOutputs() {
  BufferPool pool;
  std::vector<uint8_t> all;
  const auto append = [&all](const Tensor& tensor) {
    all.insert(all.end(), tensor.bytes().begin(), tensor.bytes().end());
  };
  for (int width = 1; width <= 150; ++width) {
    for (const int channels : {1, 3}) {
      const Tensor pixels = Noise(4, width, channels);
      append(AdjustBrightness(pixels, 1.3, pool));
      append(AdjustContrast(pixels, 0.3, pool));
      append(AdjustSaturation(pixels, 1.7, pool));
      append(AdjustHue(pixels, 0.1 - width * 0.003, pool));
      append(AdjustSharpness(pixels, 2.3, pool));
      append(AdjustSharpness(pixels, 0.4, pool));
      append(Grayscale(pixels, pool));
    }
  }
  return all;
}

TEST(ColorOpsTest, EveryInstructionSetGivesTheSameValues) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GE(targets.size(), 2U);
  const std::vector<uint8_t> best = ManyOutputs();
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(ManyOutputs(), best) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(ColorOpsTest, APixelsColourDependsOnThatPixelAlone) {
  BufferPool pool;
  const Tensor pixels = Noise(1, 200, 3);
  const auto one = [&](int x) { return CutOut(pixels, {.x = x, .width = 1, .height = 1}); };
  for (int x = 0; x < 200; ++x) {
    const PixelBox box = {.x = x, .width = 1, .height = 1};
    ASSERT_EQ(Bytes(CutOut(AdjustSaturation(pixels, 0.7, pool), box)),
              Bytes(AdjustSaturation(one(x), 0.7, pool)));
    ASSERT_EQ(Bytes(CutOut(AdjustHue(pixels, 0.3, pool), box)),
              Bytes(AdjustHue(one(x), 0.3, pool)));
    ASSERT_EQ(Bytes(CutOut(Grayscale(pixels, pool), box)), Bytes(Grayscale(one(x), pool)));
  }
}

TEST(ColorOpsTest, AWholeTurnOfTheHueInTwoHalvesComesBack) {
  BufferPool pool;
  const Tensor pixels = Noise(30, 40, 3);
  const Tensor back = AdjustHue(AdjustHue(pixels, 0.5, pool), -0.5, pool);
  for (size_t i = 0; i < pixels.bytes().size(); ++i) {
    ASSERT_NEAR(pixels.bytes()[i], back.bytes()[i], 3);
  }
}

}  // namespace
}  // namespace echopipe::internal
