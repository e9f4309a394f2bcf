#pragma once

#include <string_view>

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/tensor.h>
#include <echopipe/proto/pipeline.pb.h>

/// What the stages do to pixels [H, W, C] uint8. Inputs have passed CheckPixels() and are never
/// written to; everything runs on the calling thread.
namespace echopipe::internal {

/// The longest side that Resize() makes, in pixels.
inline constexpr int kMaxResizedSide = 65'535;
/// The largest value of a stage's height, width or shorter_side.
inline constexpr uint32_t kMaxSpecSide = 16'384;

/// Throws kInvalidArgument unless 1 <= value <= kMaxSpecSide.
void CheckSpecSide(std::string_view field, uint32_t value);
/// Throws kInvalidArgument unless it is one of the known values.
void CheckInterpolation(proto::Interpolation interpolation);

/// All of the picture.
PixelBox WholeOf(const Tensor& pixels);

/// The pixels of the box, black where it reaches over the picture's edges. The whole picture is
/// returned as it is, without a copy.
Tensor Crop(const Tensor& pixels, const PixelBox& box, BufferPool& pool);

/// The box, which lies inside the picture, resized to height x width (each at most
/// kMaxResizedSide); the same as if it had been cut out before. An output of 98,304 pixels or more
/// is made along one axis after the other and rounded to 0..255 in between (as Pillow does).
Tensor Resize(const Tensor& pixels, const PixelBox& box, int height, int width,
              proto::Interpolation interpolation, BufferPool& pool);

/// Left and right exchanged.
Tensor Mirror(const Tensor& pixels, BufferPool& pool);

}  // namespace echopipe::internal
