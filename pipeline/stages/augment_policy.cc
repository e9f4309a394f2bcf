#include <cmath>
#include <numbers>
#include <string>

#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/pipeline/stages/augment_policy.h>
#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {
namespace {

// torch.linspace in float32: it counts from the nearer end.
float LinspaceAt(float start, float end, uint32_t i, uint32_t steps) {
  const float step = (end - start) / static_cast<float>(steps - 1);
  if (i < steps / 2) return start + step * static_cast<float>(i);
  return end - step * static_cast<float>(steps - 1 - i);
}

// Down from all eight bits, in float32, halves to even.
float BitsAt(uint32_t i, uint32_t bins, uint32_t least) {
  const double per_bit = static_cast<double>(bins - 1) / (8 - least);
  return std::nearbyint(8 - static_cast<float>(i) / static_cast<float>(per_bit));
}

// The most that the magnitude of an operation may be, for those that begin at 0.
double MostOf(PolicyStrength strength, PolicyOperation operation, const Shape& shape) {
  const bool wide = strength == PolicyStrength::kTrivialAugmentWide;
  switch (operation) {
    case PolicyOperation::kShearX:
    case PolicyOperation::kShearY:
      return wide ? 0.99 : 0.3;
    case PolicyOperation::kTranslateX:
      return wide ? 32.0 : 150.0 / 331.0 * static_cast<double>(shape[1]);
    case PolicyOperation::kTranslateY:
      return wide ? 32.0 : 150.0 / 331.0 * static_cast<double>(shape[0]);
    case PolicyOperation::kRotate:
      return wide ? 135.0 : 30.0;
    default:
      return wide ? 0.99 : 0.9;
  }
}

// `along_x` and `along_y` are tangents; the upper left corner stays.
Tensor Shear(const Tensor& pixels, double along_x, double along_y, const Sampling& sampling,
             BufferPool& pool) {
  const auto degrees = [](double tangent) { return std::atan(tangent) * 180 / std::numbers::pi; };
  const AffineParameters parameters = {
      .shear_x_degrees = degrees(along_x), .shear_y_degrees = degrees(along_y), .center = Place{}};
  return Affine(pixels, parameters, sampling, pool);
}

}  // namespace

bool HasSign(PolicyOperation operation) {
  return operation >= PolicyOperation::kShearX && operation <= PolicyOperation::kSharpness;
}

float MagnitudeOf(PolicyStrength strength, PolicyOperation operation, uint32_t bin, uint32_t bins,
                  const Shape& shape) {
  switch (operation) {
    case PolicyOperation::kIdentity:
    case PolicyOperation::kAutoContrast:
    case PolicyOperation::kEqualize:
      return 0;
    case PolicyOperation::kPosterize:
      return BitsAt(bin, bins, strength == PolicyStrength::kTrivialAugmentWide ? 2 : 4);
    case PolicyOperation::kSolarize:
      return LinspaceAt(1, 0, bin, bins);
    default:
      return LinspaceAt(0, static_cast<float>(MostOf(strength, operation, shape)), bin, bins);
  }
}

Tensor ApplyRandomOperation(const Tensor& pixels, PolicyStrength strength, uint32_t bin,
                            uint32_t bins, const Sampling& sampling, RandomStream& random,
                            BufferPool& pool) {
  const auto operation = static_cast<PolicyOperation>(random.Below(kPolicyOperations));
  double magnitude = MagnitudeOf(strength, operation, bin, bins, pixels.shape());
  if (HasSign(operation) && random.Bernoulli(0.5)) magnitude = -magnitude;
  return ApplyOperation(pixels, operation, magnitude, sampling, pool);
}

// Source: torchvision, _AutoAugmentBase._apply_image_or_video_transform.
Tensor ApplyOperation(const Tensor& pixels, PolicyOperation operation, double magnitude,
                      const Sampling& sampling, BufferPool& pool) {
  switch (operation) {
    case PolicyOperation::kIdentity:
      return pixels;
    case PolicyOperation::kShearX:
      return Shear(pixels, magnitude, 0, sampling, pool);
    case PolicyOperation::kShearY:
      return Shear(pixels, 0, magnitude, sampling, pool);
    case PolicyOperation::kTranslateX:
      return Affine(pixels, {.translate_x = std::trunc(magnitude)}, sampling, pool);
    case PolicyOperation::kTranslateY:
      return Affine(pixels, {.translate_y = std::trunc(magnitude)}, sampling, pool);
    case PolicyOperation::kRotate:
      return Rotate(pixels, {.degrees = magnitude}, sampling, pool);
    case PolicyOperation::kBrightness:
      return AdjustBrightness(pixels, 1 + magnitude, pool);
    case PolicyOperation::kColor:
      return AdjustSaturation(pixels, 1 + magnitude, pool);
    case PolicyOperation::kContrast:
      return AdjustContrast(pixels, 1 + magnitude, pool);
    case PolicyOperation::kSharpness:
      return AdjustSharpness(pixels, 1 + magnitude, pool);
    case PolicyOperation::kPosterize:
      return Posterize(pixels, static_cast<int>(magnitude), pool);
    case PolicyOperation::kSolarize:
      return Solarize(pixels, 255 * magnitude, pool);
    case PolicyOperation::kAutoContrast:
      return Autocontrast(pixels, pool);
    case PolicyOperation::kEqualize:
      return Equalize(pixels, pool);
  }
  return pixels;
}

void CheckMagnitudeBins(uint32_t bins) {
  constexpr uint32_t kMost = 1000;
  if (bins >= 2 && bins <= kMost) return;
  ThrowInvalidField("num_magnitude_bins", "out of range", std::to_string(bins),
                    "2.." + std::to_string(kMost));
}

}  // namespace echopipe::internal
