#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using Parameters = std::vector<double>;

// A center of -1, -1 is that of the picture; behind it comes the fill.
std::optional<Place> CenterAt(const Parameters& parameters, size_t i) {
  if (parameters.at(i) == -1) return {};
  return Place{.x = parameters.at(i), .y = parameters.at(i + 1)};
}

std::vector<double> FillFrom(const Parameters& parameters, size_t i) {
  return {parameters.begin() + static_cast<std::ptrdiff_t>(i), parameters.end()};
}

auto AffineBy(proto::Interpolation interpolation) {
  return [interpolation](const Tensor& pixels, const Parameters& p) {
    BufferPool pool;
    const AffineParameters parameters = {.degrees = p.at(0),
                                         .translate_x = p.at(1),
                                         .translate_y = p.at(2),
                                         .scale = p.at(3),
                                         .shear_x_degrees = p.at(4),
                                         .shear_y_degrees = p.at(5),
                                         .center = CenterAt(p, 6)};
    return Affine(pixels, parameters, {interpolation, FillFrom(p, 8)}, pool);
  };
}

// torch computes places and weights in float32: a value close to a half may be rounded otherwise.
TEST(AffineTest, IsTorchvisionsAndInBilinearWithinOne) {
  ExpectLikeTorchvision("affine nearest", 0, AffineBy(proto::NEAREST));
  ExpectLikeTorchvision("affine bilinear", 1, AffineBy(proto::BILINEAR));
}

auto RotateBy(proto::Interpolation interpolation) {
  return [interpolation](const Tensor& pixels, const Parameters& p) {
    BufferPool pool;
    const RotationParameters parameters = {
        .degrees = p.at(0), .expand = p.at(1) != 0, .center = CenterAt(p, 2)};
    const Tensor result = Rotate(pixels, parameters, {interpolation, FillFrom(p, 4)}, pool);
    EXPECT_EQ(result.shape(), RotatedShape(pixels.shape(), parameters));
    return result;
  };
}

TEST(RotateTest, IsTorchvisionsAndInBilinearWithinOne) {
  ExpectLikeTorchvision("rotate nearest", 0, RotateBy(proto::NEAREST));
  ExpectLikeTorchvision("rotate bilinear", 1, RotateBy(proto::BILINEAR));
}

TEST(RotateTest, FourQuartersAreTheWhole) {
  BufferPool pool;
  for (const auto interpolation : {proto::NEAREST, proto::BILINEAR}) {
    const Sampling sampling = {.interpolation = interpolation};
    const Tensor pixels = Noise(17, 30, 3);
    Tensor turned = pixels;
    for (int i = 0; i < 4; ++i) {
      turned = Rotate(turned, {.degrees = 90, .expand = true}, sampling, pool);
      EXPECT_EQ(turned.shape(), i % 2 == 0 ? Shape({30, 17, 3}) : Shape({17, 30, 3}));
    }
    EXPECT_EQ(Bytes(turned), Bytes(pixels));
  }
}

TEST(RotateTest, EveryInstructionSetGivesTheSameValues) {
  const auto many_outputs = [] {
    BufferPool pool;
    std::vector<uint8_t> all;
    for (int width = 1; width <= 40; ++width) {
      for (const int channels : {1, 3}) {
        const Sampling sampling = {.interpolation = proto::BILINEAR, .fill = {100}};
        const Tensor turned =
            Rotate(Noise(30, width, channels), {.degrees = 9.1 * width}, sampling, pool);
        all.insert(all.end(), turned.bytes().begin(), turned.bytes().end());
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

TEST(AffineTest, ExtremeMapsReadNothingOutside) {
  BufferPool pool;
  RandomStream random(Key(11));
  for (int i = 0; i < 2000; ++i) {
    const Tensor pixels = Noise(static_cast<int>(random.Between(1, 9)),
                                static_cast<int>(random.Between(1, 9)), i % 2 == 0 ? 1 : 3);
    const AffineParameters parameters = {
        .degrees = random.Uniform(-360, 360),
        .translate_x = random.Uniform(-20, 20),
        .translate_y = random.Uniform(-20, 20),
        .scale = i % 3 == 0 ? 1e-3 : random.Uniform(1e-3, 20),
        .shear_x_degrees = i % 5 == 0 ? 89.0 : random.Uniform(-89, 89),
        .shear_y_degrees = i % 7 == 0 ? -89.0 : random.Uniform(-89, 89),
        .center = Place{.x = random.Uniform(-1e7, 1e7), .y = random.Uniform(-10, 10)}};
    const auto interpolation = i % 4 < 2 ? proto::NEAREST : proto::BILINEAR;
    const Tensor result = Affine(pixels, parameters, {.interpolation = interpolation}, pool);
    ASSERT_EQ(result.shape(), pixels.shape());
  }
}

}  // namespace
}  // namespace echopipe::internal
