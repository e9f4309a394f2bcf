#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace echopipe {

struct DemoJpegOptions {
  int width = 0;
  int height = 0;
  int quality = 85;  ///< libjpeg's, in 1..100
};

/// Encodes [height, width, 3] uint8 pixels as a baseline JPEG.
std::string EncodeDemoJpeg(std::span<const uint8_t> pixels, const DemoJpegOptions& options);

}  // namespace echopipe
