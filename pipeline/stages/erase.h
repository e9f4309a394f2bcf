#pragma once

#include <cstdint>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/random.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/tensor.h>

/// Copies of pixels [H, W, C] uint8 in which a box, which lies inside the picture, is written over.
namespace echopipe::internal {

/// Every pixel of the box gets the value: one for each channel, or one for all.
Tensor Erase(const Tensor& pixels, const PixelBox& box, const std::vector<uint8_t>& value,
             BufferPool& pool);

/// Every value in the box is drawn anew, uniform over 0..255.
Tensor EraseWithNoise(const Tensor& pixels, const PixelBox& box, RandomStream& random,
                      BufferPool& pool);

}  // namespace echopipe::internal
