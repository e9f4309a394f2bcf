#pragma once

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/tensor.h>

/// What the augmentations do to the values of pixels [H, W, C] uint8, at given parameters: the
/// functions of the same names in torchvision.transforms.v2.functional, as it has them for uint8
/// tensors. Inputs have passed CheckPixels() and are never written to.
namespace echopipe::internal {

/// x * factor. Precondition here and below: factor >= 0.
Tensor AdjustBrightness(const Tensor& pixels, double factor, BufferPool& pool);
/// Blends with the mean of the picture's gray; 0 leaves that alone.
Tensor AdjustContrast(const Tensor& pixels, double factor, BufferPool& pool);
/// Blends each pixel with its gray; 0 leaves that alone. One channel stays as it is.
Tensor AdjustSaturation(const Tensor& pixels, double factor, BufferPool& pool);
/// Turns the hue; 1 would be once around. One channel stays as it is. Precondition: |turns| <= 0.5.
Tensor AdjustHue(const Tensor& pixels, double turns, BufferPool& pool);
/// Blends each pixel with the mean of its neighbourhood, except at the edges; 0 leaves that alone.
Tensor AdjustSharpness(const Tensor& pixels, double factor, BufferPool& pool);

/// All channels become the picture's gray.
Tensor Grayscale(const Tensor& pixels, BufferPool& pool);

/// Keeps the highest bits of each value. Precondition: 1 <= bits <= 8.
Tensor Posterize(const Tensor& pixels, int bits, BufferPool& pool);
/// Inverts the values that are at least `threshold`.
Tensor Solarize(const Tensor& pixels, double threshold, BufferPool& pool);
Tensor Invert(const Tensor& pixels, BufferPool& pool);
/// Stretches each channel to 0..255.
Tensor Autocontrast(const Tensor& pixels, BufferPool& pool);
/// Makes each channel's histogram flat.
Tensor Equalize(const Tensor& pixels, BufferPool& pool);

}  // namespace echopipe::internal
