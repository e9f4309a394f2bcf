#pragma once

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/tensor.h>

namespace echopipe::internal {

/// The part of a Gaussian that is used, in pixels.
struct GaussianKernel {
  int width = 1;   ///< odd
  int height = 1;  ///< odd
  double sigma = 1;
};

/// Blurs pixels [H, W, C] uint8, H > kernel.height / 2 and W > kernel.width / 2, by a Gaussian; the
/// picture is mirrored at its edges (torchvision's gaussian_blur).
Tensor Blur(const Tensor& pixels, const GaussianKernel& kernel, BufferPool& pool);

}  // namespace echopipe::internal
