#pragma once

#include <cstdint>

#include <echopipe/base/buffer.h>
#include <echopipe/base/random.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/pipeline/tensor.h>

/// What rand_augment and trivial_augment_wide choose from.
namespace echopipe::internal {

enum class PolicyOperation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr uint32_t kPolicyOperations = 14;

/// True if the magnitude may be turned into its negative.
bool HasSign(PolicyOperation operation);

/// How strong the operations of a policy are.
enum class PolicyStrength { kRandAugment, kTrivialAugmentWide };

/// The magnitude of bin `bin` of `bins` for a picture of this size, as torchvision's
/// _AUGMENTATION_SPACE has it in float32 (where torch fuses a product and a sum, up to the last
/// bit); 0 for an operation without one. Precondition: bin < bins, bins >= 2.
float MagnitudeOf(PolicyStrength strength, PolicyOperation operation, uint32_t bin, uint32_t bins,
                  const Shape& shape);

/// One of the operations with the magnitude of `bin`; which, and the sign, are drawn.
Tensor ApplyRandomOperation(const Tensor& pixels, PolicyStrength strength, uint32_t bin,
                            uint32_t bins, const Sampling& sampling, RandomStream& random,
                            BufferPool& pool);

/// Does the operation to pixels [H, W, C] uint8. Precondition: the magnitude is one of
/// MagnitudeOf(), or its negative.
Tensor ApplyOperation(const Tensor& pixels, PolicyOperation operation, double magnitude,
                      const Sampling& sampling, BufferPool& pool);

/// Throws kInvalidArgument for the field num_magnitude_bins.
void CheckMagnitudeBins(uint32_t bins);

}  // namespace echopipe::internal
