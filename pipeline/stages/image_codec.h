#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/tensor.h>

namespace echopipe::internal {

/// What is asked of a decoder, and what it will not go beyond.
struct DecodeOptions {
  enum class Color {
    kRgb,   ///< three channels
    kGray,  ///< one: ITU-R 601 luma, (19595 R + 38470 G + 7471 B + 32768) / 65536
  };

  Color color = Color::kRgb;
  /// Turn the picture as its EXIF orientation says.
  bool apply_orientation = true;
  uint64_t max_pixels = 100'000'000;         ///< width * height
  uint64_t max_bytes = uint64_t{256} << 20;  ///< of the encoded image
  uint64_t max_scans = 100;                  ///< of a JPEG
  bool accept_truncated = false;             ///< a JPEG's pixels as far as its data go
};

/// What an image's header says.
struct ImageInfo {
  enum class Format { kJpeg, kPng, kWebp, kBmp };

  Format format = Format::kJpeg;
  int stored_width = 0;
  int stored_height = 0;
  int width = 0;   ///< after the orientation was applied, if that was asked for
  int height = 0;  ///< likewise
  /// Of the stored pixels: 1 grey, 2 grey and alpha, 3 colour (or a palette), 4 CMYK or colour and
  /// alpha.
  int channels = 0;
  /// EXIF's 1..8; 1 if there is none, it makes no sense, or it is not to be applied.
  int orientation = 1;
};

/// Reads the header alone. The format is known by the bytes, never by a name.
///
/// Errors  kEmpty; kUnsupported for other formats and for variants that are not read; kTruncated,
/// kCorrupt; kLimitExceeded over max_bytes or max_pixels.
ImageInfo ReadImageInfo(std::span<const uint8_t> bytes, const DecodeOptions& options);

/// Decodes an image, or one box of it, to [H, W, C] uint8, C = 3 (RGB) or 1 (gray).
///
/// `box` counts in pixels after orientation and must lie inside the picture; the result is byte for
/// byte the cut from the full picture, but a JPEG decodes little more than what it needs.
///
/// JPEG   What libjpeg gives by default: accurate integer DCT, smooth ("fancy") upsampling, no
///        merged upsampling. Block smoothing, which guesses what missing scans might have held, is
///        off. Gray is the stored luma. CMYK and YCCK become R = round((255 - C)(255 - K) / 255)
///        and so on; with an Adobe marker they are stored inverted, without one they are not.
/// PNG    Palettes and few bits are expanded, 16 bits give their high byte, alpha and transparent
///        colours are dropped (as PIL's convert("RGB") does), gamma and profiles ignored. Of an
///        animation, the default picture.
/// WebP   Lossy or lossless, as libwebp gives it by default; alpha is dropped. No animations. A box
///        decodes the whole.
/// BMP    1, 4, 8, 16, 24 or 32 bits, with palettes and colour masks, not compressed; values of
/// less
///        than 8 bits are spread over 0 to 255; alpha is dropped.
/// EXIF   Orientation from a JPEG's APP1, a PNG's eXIf or a WebP's EXIF; what makes no sense is
///        ignored.
///
/// Errors  As ReadImageInfo(). kLimitExceeded also over max_scans. Whatever would leave pixels
///         unknown is an error: data that ends early (also a JPEG without its end marker) is
///         kTruncated; bad codes, lost restart markers, contradicting scans, wrong checksums are
///         kCorrupt. Stray bytes between segments or after the end, unknown versions and odd
///         Adobe or scan parameters do no harm and are passed over. A bad box is kInvalidArgument.
///         With a box, a corrupt place below it in a JPEG of one scan is not noticed; a
///         truncation is.
///
/// Truncated  With accept_truncated, a Huffman-coded JPEG that ends early (with or without an end
///            marker) has its pixels as far as they are known, and `*is_truncated` becomes true: of
///            one scan, the rest is gray, the block in which the data end partly so; of several,
///            what the missing ones would have refined is coarse. It must hold the first row of
///            blocks of its first scan, else it is kTruncated. A box is the cut from that picture
///            as ever, and an early end without its marker is noticed wherever the box lies.
///
/// Cost    Caps are checked before anything large is allocated. Rows go straight into the result
///         if no cut or conversion comes between.
Tensor DecodeImage(std::span<const uint8_t> bytes, const DecodeOptions& options, BufferPool& pool,
                   const std::optional<PixelBox>& box = std::nullopt, bool* is_truncated = nullptr);

}  // namespace echopipe::internal
