#pragma once

#include <optional>

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/pipeline/tensor.h>

/// Turns, shifts, scales and shears of pixels [H, W, C] uint8: torchvision's functional.affine and
/// functional.rotate, as it has them for tensors. The fill has one value or C, or none. With
/// NEAREST, a place halfway between two pixels takes the one to the right or below.
namespace echopipe::internal {

struct AffineParameters {
  double degrees = 0;  ///< clockwise
  double translate_x = 0;
  double translate_y = 0;
  double scale = 1;  ///< > 0
  double shear_x_degrees = 0;
  double shear_y_degrees = 0;
  std::optional<Place> center = {};  ///< that of the picture, if not set
};

/// The size stays.
Tensor Affine(const Tensor& pixels, const AffineParameters& parameters, const Sampling& sampling,
              BufferPool& pool);

struct RotationParameters {
  double degrees = 0;   ///< counter-clockwise
  bool expand = false;  ///< the output is so large that all of the picture is in it
  std::optional<Place> center = {};
};

/// [H, W, C] of what Rotate() makes.
Shape RotatedShape(const Shape& shape, const RotationParameters& parameters);

Tensor Rotate(const Tensor& pixels, const RotationParameters& parameters, const Sampling& sampling,
              BufferPool& pool);

}  // namespace echopipe::internal
