#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_codec.h>
#include <echopipe/pipeline/tensor.h>
#include <echopipe/tests/support/images.h>

// What the tests of decoding share.
namespace echopipe::internal {

inline std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline Tensor Decode(std::string_view image, const DecodeOptions& options = {},
                     const std::optional<PixelBox>& box = std::nullopt) {
  BufferPool pool;
  return DecodeImage(Bytes(image), options, pool, box);
}

inline std::vector<uint8_t> Pixels(const Tensor& tensor) {
  return {tensor.bytes().begin(), tensor.bytes().end()};
}

inline const DecodeOptions kRgb{};
inline const DecodeOptions kGray{.color = DecodeOptions::Color::kGray};

/// The code of the error that decoding gives, or nothing if there are pixels.
inline std::optional<ErrorCode> DecodeError(std::string_view image,
                                            const DecodeOptions& options = {},
                                            const std::optional<PixelBox>& box = std::nullopt) {
  try {
    Decode(image, options, box);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// The pixels of a box cut from a picture [H, W, C].
inline std::vector<uint8_t> Cut(const Tensor& picture, const PixelBox& box) {
  const auto width = static_cast<size_t>(picture.shape()[1]);
  const auto channels = static_cast<size_t>(picture.shape()[2]);
  std::vector<uint8_t> pixels;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const uint8_t* row = picture.bytes().data() +
                         (static_cast<size_t>(y) * width + static_cast<size_t>(box.x)) * channels;
    pixels.insert(pixels.end(), row, row + static_cast<size_t>(box.width) * channels);
  }
  return pixels;
}

MATCHER_P(IsError, code, "is the error " + std::string(ToString(code))) {
  if (!arg.has_value()) {
    *result_listener << "no error";
    return false;
  }
  *result_listener << ToString(*arg);
  return *arg == code;
}

}  // namespace echopipe::internal
