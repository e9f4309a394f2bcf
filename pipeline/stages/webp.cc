#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <webp/decode.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

// A RIFF file: a header, then chunks of a name, a size and a payload of that size, padded to two.
constexpr size_t kRiffHeader = 12;
constexpr size_t kChunkHeader = 8;

[[noreturn]] void ThrowStatus(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      ThrowImageError(ErrorCode::kTruncated, "WebP: the data ends too early");
    case VP8_STATUS_OUT_OF_MEMORY:
      ThrowImageError(ErrorCode::kResourceExhausted, "WebP: out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      ThrowImageError(ErrorCode::kUnsupported, "WebP: a feature that is not read");
    default:
      ThrowImageError(ErrorCode::kCorrupt, "WebP: the data is corrupt");
  }
}

// The EXIF chunk, wherever it is, or nothing.
std::span<const uint8_t> FindExif(std::span<const uint8_t> bytes) {
  constexpr char kName[] = {'E', 'x', 'i', 'f', 0, 0};  // some writers put it in front, as in JPEG
  auto rest = bytes.subspan(kRiffHeader);
  while (rest.size() >= kChunkHeader) {
    const size_t length = LittleEndian32(rest.data() + 4);
    if (length > rest.size() - kChunkHeader) break;
    auto payload = rest.subspan(kChunkHeader, length);
    if (std::memcmp(rest.data(), "EXIF", 4) == 0) {
      const bool is_named =
          payload.size() >= sizeof(kName) && std::memcmp(payload.data(), kName, sizeof(kName)) == 0;
      return is_named ? payload.subspan(sizeof(kName)) : payload;
    }
    rest = rest.subspan(std::min(rest.size(), kChunkHeader + length + length % 2));
  }
  return {};
}

void DecodeRgb(std::span<const uint8_t> bytes, const ImageInfo& info, std::span<uint8_t> rgb) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    ThrowImageError(ErrorCode::kInternal, "WebP: the library is of another version");
  }
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = rgb.data();
  config.output.u.RGBA.stride = 3 * info.stored_width;
  config.output.u.RGBA.size = rgb.size();
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) ThrowStatus(status);
}

}  // namespace

ImageInfo ReadWebpInfo(std::span<const uint8_t> bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) ThrowStatus(status);
  if (features.has_animation != 0) {
    ThrowImageError(ErrorCode::kUnsupported, "animated WebP is not read");
  }
  return {.stored_width = features.width,
          .stored_height = features.height,
          .channels = features.has_alpha != 0 ? 4 : 3,
          .orientation = ExifOrientation(FindExif(bytes))};
}

Tensor DecodeWebp(std::span<const uint8_t> bytes, const ImageInfo& info,
                  const DecodeOptions& options, const PixelBox& box, BufferPool& pool) {
  TensorBuilder out(DType::kUint8, {box.height, box.width, ChannelsOf(options.color)}, pool);
  const auto width = static_cast<size_t>(info.stored_width);
  const size_t size = 3 * width * static_cast<size_t>(info.stored_height);
  const bool is_whole = box.width == info.stored_width && box.height == info.stored_height;
  if (is_whole && options.color == DecodeOptions::Color::kRgb) {
    DecodeRgb(bytes, info, {out.data(), size});
    return std::move(out).Finish();
  }
  const auto picture = pool.Allocate(size);
  DecodeRgb(bytes, info, {picture->data(), size});
  const auto columns = static_cast<size_t>(box.width);
  uint8_t* to = out.data();
  for (int y = box.y; y < box.y + box.height; ++y) {
    const uint8_t* from =
        picture->data() + 3 * (static_cast<size_t>(y) * width + static_cast<size_t>(box.x));
    to = WriteColor(from, columns, options.color, to);
  }
  return std::move(out).Finish();
}

}  // namespace echopipe::internal
