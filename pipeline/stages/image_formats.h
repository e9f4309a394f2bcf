#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_codec.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/tensor.h>

// The formats behind image_codec.h. Sizes and boxes here are those of the stored pixels.
namespace echopipe::internal {

/// The stored size, channels and orientation; the rest of ImageInfo is left for the caller.
ImageInfo ReadJpegInfo(std::span<const uint8_t> bytes);
ImageInfo ReadPngInfo(std::span<const uint8_t> bytes);
ImageInfo ReadWebpInfo(std::span<const uint8_t> bytes);
ImageInfo ReadBmpInfo(std::span<const uint8_t> bytes);

/// One box of the stored pixels. Preconditions: `info` was read from `bytes` and is within the
/// caps; the box lies inside. `is_truncated` becomes true where truncated data are accepted.
Tensor DecodeJpeg(std::span<const uint8_t> bytes, const ImageInfo& info,
                  const DecodeOptions& options, const PixelBox& box, BufferPool& pool,
                  bool* is_truncated);
Tensor DecodePng(std::span<const uint8_t> bytes, const ImageInfo& info,
                 const DecodeOptions& options, const PixelBox& box, BufferPool& pool);
Tensor DecodeWebp(std::span<const uint8_t> bytes, const ImageInfo& info,
                  const DecodeOptions& options, const PixelBox& box, BufferPool& pool);
Tensor DecodeBmp(std::span<const uint8_t> bytes, const ImageInfo& info,
                 const DecodeOptions& options, const PixelBox& box, BufferPool& pool);

/// The orientation in a TIFF structure as EXIF uses it: 1..8, or 1 if there is none to be found.
int ExifOrientation(std::span<const uint8_t> tiff);

/// RGB pixels to luma, as DecodeOptions says. `gray` may be `rgb`.
void RgbToGray(const uint8_t* rgb, size_t pixels, uint8_t* gray);
/// RGB pixels in the colour that is wanted; gives the end of what was written.
uint8_t* WriteColor(const uint8_t* rgb, size_t pixels, DecodeOptions::Color color, uint8_t* out);

inline int ChannelsOf(DecodeOptions::Color color) {
  return color == DecodeOptions::Color::kGray ? 1 : 3;
}

inline uint32_t BigEndian16(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 8 | bytes[1];
}

inline uint32_t BigEndian32(const uint8_t* bytes) {
  return BigEndian16(bytes) << 16 | BigEndian16(bytes + 2);
}

inline uint32_t LittleEndian16(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[1]) << 8 | bytes[0];
}

inline uint32_t LittleEndian32(const uint8_t* bytes) {
  return LittleEndian16(bytes + 2) << 16 | LittleEndian16(bytes);
}

[[noreturn]] void ThrowImageError(ErrorCode code, std::string what, std::string got = {},
                                  std::string wanted = {});

}  // namespace echopipe::internal
