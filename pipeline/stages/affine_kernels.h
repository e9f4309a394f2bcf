#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over a row of places, for every instruction set, chosen at run time; the results are the
/// same bit for bit on all of them.
namespace echopipe::internal {

/// Places in a picture, in pixels from the middle of its first one: the i-th is x + dx * (first +
/// i) to the right and y + dy * (first + i) down.
struct PlacesOnALine {
  double x;
  double y;
  double dx;
  double dy;
  double first;
  size_t count;
};

/// The bilinear values of [H, W, channels] at the places, each rounded to the nearest (halves to
/// even). Precondition: channels is 1 or 3; every place is in [0, W - 2) and [0, H - 1).
void SampleBilinear(const uint8_t* pixels, size_t width, size_t channels,
                    const PlacesOnALine& places, uint8_t* out);

}  // namespace echopipe::internal
