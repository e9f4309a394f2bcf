#pragma once

#include <cstdint>
#include <vector>

#include <echopipe/base/random.h>

namespace echopipe {

/// What a demo picture shows. Hue, shapes and stripes tell its class; the rest is random.
struct DemoPictureOptions {
  int label = 0;     ///< >= 0
  int width = 500;   ///< in pixels, >= 1
  int height = 375;  ///< in pixels, >= 1
};

/// Draws a picture with the statistics of a photo: smooth light, edges, texture and grain, each as
/// strong as the random numbers say. Pixels are [height, width, 3] uint8.
std::vector<uint8_t> DrawDemoPicture(const DemoPictureOptions& options, RandomStream random);

}  // namespace echopipe
