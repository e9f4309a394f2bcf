#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over colours for every instruction set, chosen at run time; the results are the same bit
/// for bit on all of them. `in` and `out` do not overlap.
///
/// Source of the formulas: torchvision's functions for uint8 tensors, in float32 and in their order
/// of operations; a product and a sum are never fused.
namespace echopipe::internal {

/// out = in * factor + shift, cut to 0..255 and rounded down, for `count` values.
void ScaleAndShift(const uint8_t* in, size_t count, float factor, float shift, uint8_t* out);

/// The gray of a pixel is 0.2989 red + 0.587 green + 0.114 blue, rounded down.
///
/// Writes each pixel's gray in the place of its three values.
void MakeGray(const uint8_t* in, size_t pixels, uint8_t* out);
/// The sum of the grays of pixels of three channels.
uint64_t SumOfGrays(const uint8_t* in, size_t pixels);
/// out = in * factor + gray * (1 - factor), cut to 0..255 and rounded down.
void BlendWithGray(const uint8_t* in, size_t pixels, double factor, uint8_t* out);

/// Adds `turns`, in [-0.5, 0.5], to the hue of each pixel.
void TurnHue(const uint8_t* in, size_t pixels, double turns, uint8_t* out);

/// Three rows of a picture, `count` values each.
struct ThreeRows {
  const uint8_t* above;
  const uint8_t* row;
  const uint8_t* below;
  size_t count;
  size_t channels;
};

/// out = in * factor + soft * (1 - factor), cut to 0..255 and rounded down, for the row in the
/// middle; `soft` is the mean of a pixel, five times, and its eight neighbours. The first and the
/// last pixel are copied. Precondition: two pixels at least.
void SharpenRow(const ThreeRows& rows, double factor, uint8_t* out);

}  // namespace echopipe::internal
