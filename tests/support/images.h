#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace echopipe::testing {

/// Pixels [height, width, channels] with 8 bits each.
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;

  uint8_t at(int x, int y, int c) const {
    return pixels[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) *
                      static_cast<size_t>(channels) +
                  static_cast<size_t>(c)];
  }
};

/// Slow waves with edges and a little noise, as in photos; the same for the same arguments.
Picture MakePicture(int width, int height, int channels, uint32_t seed = 1);

struct JpegOptions {
  enum class Color { kGray, kYcc, kRgb, kCmyk, kYcck };

  Color color = Color::kYcc;
  int quality = 90;
  int h_sampling = 1;  ///< of the first component; the others have 1
  int v_sampling = 1;
  bool progressive = false;
  bool one_bit_plane = false;  ///< progressive, gray: all bits of a band in one scan
  bool arithmetic = false;
  bool interleaved = true;   ///< else, if not progressive, one scan for each of three components
  int restart_interval = 0;  ///< MCUs between restart markers; 0 for none
  bool adobe_marker = true;  ///< CMYK and YCCK: with an Adobe marker (values are not inverted)
  std::string exif = {};     ///< a TIFF structure for APP1, if not empty
};

/// A JPEG of the picture, which has the channels that the colour wants (1, 3 or 4).
std::string MakeJpeg(const Picture& picture, const JpegOptions& options = {});
/// A JPEG of MakePicture().
std::string MakeJpeg(int width, int height, const JpegOptions& options = {});

struct PngOptions {
  int bit_depth = 8;
  int color_type = 2;  ///< as in IHDR: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
  bool interlaced = false;
  std::vector<uint8_t> palette = {};      ///< RGB triples
  std::vector<uint8_t> transparent = {};  ///< the payload of tRNS
  std::string chunks_before_pixels = {};  ///< whole chunks, see PngChunk()
};

/// A PNG of rows packed as PNG stores them (big-endian, from the high bits on).
std::string MakePng(int width, int height, const std::vector<uint8_t>& packed_rows,
                    const PngOptions& options = {});
/// A PNG of a picture with the channels of the colour type and 8 bits.
std::string MakePng(const Picture& picture, const PngOptions& options = {});

/// Length, type, payload, checksum.
std::string PngChunk(const std::string& type, const std::string& payload);

/// A TIFF structure with one entry: the orientation.
std::string MakeExif(int orientation, bool little_endian = true);

}  // namespace echopipe::testing
