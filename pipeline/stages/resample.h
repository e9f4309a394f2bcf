#pragma once

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/tensor.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Throws kInvalidArgument for the field antialias if it is set for an interpolation other than
/// BILINEAR and BICUBIC.
void CheckAntialias(bool antialias, proto::Interpolation interpolation);

/// The box of the pixels, which lies inside the picture, resized to height x width; the same as if
/// it had been cut out before. A picture that shrinks is averaged over all that falls together.
///
/// Source: Pillow, Image.resize (for 8 bits: first along x, rounded to 0..255, then along y), which
/// this is bit for bit. torchvision with antialias=True is within one of it. The interpolation is
/// BILINEAR or BICUBIC.
Tensor ResizeAntialiased(const Tensor& pixels, const PixelBox& box, int height, int width,
                         proto::Interpolation interpolation, BufferPool& pool);

}  // namespace echopipe::internal
