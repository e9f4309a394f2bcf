// Images of all formats: as they are, and PNGs with their checksums mended too, since no fuzzer
// guesses these.
//
// Parses: pipeline/stages/image_codec.cc pipeline/stages/jpeg.cc pipeline/stages/png.cc
// Parses: pipeline/stages/webp.cc pipeline/stages/bmp.cc pipeline/stages/exif.cc

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <zlib.h>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_codec.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::BufferPool;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::Shape;
using echopipe::Tensor;
using echopipe::internal::DecodeImage;
using echopipe::internal::DecodeOptions;
using echopipe::internal::ImageInfo;
using echopipe::internal::PixelBox;
using echopipe::internal::ReadImageInfo;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

uint32_t BigEndian(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// A chunk: length, type, payload, and the checksum of these two.
std::string WithRightChecksums(std::string png) {
  constexpr size_t kFrame = 12;
  for (size_t at = kPngMagic.size(); png.size() - at >= kFrame;) {
    const size_t length = BigEndian(png, at);
    if (length > png.size() - at - kFrame) break;
    const auto* type = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    const auto checksum = static_cast<uint32_t>(crc32(0, type, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) {
      png[at + length + 8 + i] = static_cast<char>(checksum >> (24 - 8 * i));
    }
    at += kFrame + length;
  }
  return png;
}

// ---- What must hold for any image

std::optional<Tensor> Decode(std::string_view image, const DecodeOptions& options, BufferPool& pool,
                             const std::optional<PixelBox>& box = std::nullopt) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(image.data());
  try {
    return DecodeImage({bytes, image.size()}, options, pool, box);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kEmpty || error.code() == ErrorCode::kUnsupported ||
            error.code() == ErrorCode::kTruncated || error.code() == ErrorCode::kCorrupt ||
            error.code() == ErrorCode::kLimitExceeded);
    return std::nullopt;
  }
}

ImageInfo InfoOf(std::string_view image, const DecodeOptions& options) {
  return ReadImageInfo({reinterpret_cast<const uint8_t*>(image.data()), image.size()}, options);
}

bool IsCutFrom(const Tensor& whole, const PixelBox& box, const Tensor& part) {
  const auto channels = static_cast<size_t>(whole.shape()[2]);
  const auto row = static_cast<size_t>(whole.shape()[1]) * channels;
  const auto part_row = static_cast<size_t>(box.width) * channels;
  for (int y = 0; y < box.height; ++y) {
    const uint8_t* from = whole.bytes().data() + static_cast<size_t>(box.y + y) * row +
                          static_cast<size_t>(box.x) * channels;
    if (std::memcmp(from, part.bytes().data() + static_cast<size_t>(y) * part_row, part_row) != 0) {
      return false;
    }
  }
  return true;
}

// Some box that does not fill the picture, if it has more than a pixel.
PixelBox InsideOf(const ImageInfo& info) {
  return {info.width / 3, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2};
}

void CheckImage(std::string_view image, const DecodeOptions& options) {
  BufferPool pool;
  const std::optional<Tensor> whole = Decode(image, options, pool);
  if (!whole) return;
  const ImageInfo info = InfoOf(image, options);
  const int64_t channels = options.color == DecodeOptions::Color::kGray ? 1 : 3;
  Require(whole->shape() == Shape{info.height, info.width, channels});
  const PixelBox box = InsideOf(info);
  const std::optional<Tensor> part = Decode(image, options, pool, box);
  Require(part && part->shape() == Shape{box.height, box.width, channels});
  Require(IsCutFrom(*whole, box, *part));
}

void CheckImage(std::string_view image) {
  DecodeOptions options{.max_pixels = 1 << 14, .max_bytes = 1 << 16, .max_scans = 10};
  CheckImage(image, options);
  options.color = DecodeOptions::Color::kGray;
  options.apply_orientation = false;
  options.max_scans = 6;
  CheckImage(image, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view image = FuzzInput(data, size).TakeRest();
  CheckImage(image);
  if (image.starts_with(kPngMagic)) CheckImage(WithRightChecksums(std::string(image)));
  return 0;
}
