#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_codec.h>
#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJpegMagic = "\xff\xd8"sv;
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n"sv;
constexpr std::string_view kRiffMagic = "RIFF"sv;
constexpr std::string_view kWebpMagic = "WEBP"sv;  // behind that and a size
constexpr std::string_view kBmpMagic = "BM"sv;
constexpr const char* kFormats = "JPEG, PNG, WebP or BMP";

struct KnownFormat {
  std::string_view name;
  size_t offset;
  std::string_view magic;
};
constexpr std::array kOtherFormats{KnownFormat{"GIF", 0, "GIF8"sv},
                                   KnownFormat{"TIFF", 0, "II*\0"sv},
                                   KnownFormat{"TIFF", 0, "MM\0*"sv},
                                   KnownFormat{"AVIF", 4, "ftypavif"sv},
                                   KnownFormat{"HEIC", 4, "ftyphei"sv},
                                   KnownFormat{"HEIC", 4, "ftyphev"sv},
                                   KnownFormat{"HEIC", 4, "ftypmif1"sv},
                                   KnownFormat{"JPEG XL", 0, "\xff\x0a"sv},
                                   KnownFormat{"JPEG XL", 4, "JXL \r\n"sv},
                                   KnownFormat{"JPEG 2000", 4, "jP  \r\n"sv},
                                   KnownFormat{"JPEG 2000", 0, "\xff\x4f\xff\x51"sv}};

// The first bytes in quotes; what is not printable ASCII as \xNN.
std::string Printable(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : bytes.substr(0, 16)) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      text += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text + '"';
}

[[noreturn]] void ThrowUnknownFormat(std::string_view bytes) {
  for (const KnownFormat& format : kOtherFormats) {
    if (bytes.size() >= format.offset && bytes.substr(format.offset).starts_with(format.magic)) {
      ThrowImageError(ErrorCode::kUnsupported, std::string(format.name) + " is not read", {},
                      kFormats);
    }
  }
  ThrowImageError(ErrorCode::kUnsupported, "not an image that is read here (text?)",
                  Printable(bytes), kFormats);
}

// Also true for a beginning of the magic that the bytes end in; the format's reader will say so.
bool BeginsLike(std::string_view bytes, std::string_view magic) {
  return bytes.substr(0, magic.size()) == magic.substr(0, bytes.size());
}

bool BeginsLikeWebp(std::string_view bytes) {
  return bytes.starts_with(kRiffMagic) &&
         (bytes.size() < 8 || BeginsLike(bytes.substr(8), kWebpMagic));
}

ImageInfo::Format FormatOf(std::string_view bytes) {
  if (BeginsLike(bytes, kJpegMagic)) return ImageInfo::Format::kJpeg;
  if (BeginsLike(bytes, kPngMagic)) return ImageInfo::Format::kPng;
  if (BeginsLikeWebp(bytes)) return ImageInfo::Format::kWebp;
  if (bytes.starts_with(kBmpMagic)) return ImageInfo::Format::kBmp;
  ThrowUnknownFormat(bytes);
}

ImageInfo ReadStoredInfo(ImageInfo::Format format, std::span<const uint8_t> bytes) {
  switch (format) {
    case ImageInfo::Format::kJpeg:
      return ReadJpegInfo(bytes);
    case ImageInfo::Format::kPng:
      return ReadPngInfo(bytes);
    case ImageInfo::Format::kWebp:
      return ReadWebpInfo(bytes);
    case ImageInfo::Format::kBmp:
      break;
  }
  return ReadBmpInfo(bytes);
}

Tensor DecodeStored(std::span<const uint8_t> bytes, const ImageInfo& info,
                    const DecodeOptions& options, const PixelBox& box, BufferPool& pool,
                    bool* is_truncated) {
  switch (info.format) {
    case ImageInfo::Format::kJpeg:
      return DecodeJpeg(bytes, info, options, box, pool, is_truncated);
    case ImageInfo::Format::kPng:
      return DecodePng(bytes, info, options, box, pool);
    case ImageInfo::Format::kWebp:
      return DecodeWebp(bytes, info, options, box, pool);
    case ImageInfo::Format::kBmp:
      break;
  }
  return DecodeBmp(bytes, info, options, box, pool);
}

void CheckSize(std::span<const uint8_t> bytes, const DecodeOptions& options) {
  if (bytes.empty()) ThrowImageError(ErrorCode::kEmpty, "no bytes where an image should be");
  if (bytes.size() > options.max_bytes) {
    ThrowImageError(ErrorCode::kLimitExceeded, "the encoded image is larger than max_bytes",
                    std::to_string(bytes.size()), "at most " + std::to_string(options.max_bytes));
  }
}

void CheckPixels(const ImageInfo& info, const DecodeOptions& options) {
  const auto width = static_cast<uint64_t>(info.stored_width);
  const auto height = static_cast<uint64_t>(info.stored_height);
  if (width * height > options.max_pixels) {
    ThrowImageError(ErrorCode::kLimitExceeded, "the image has more pixels than max_pixels",
                    std::to_string(width) + " x " + std::to_string(height),
                    "at most " + std::to_string(options.max_pixels));
  }
}

// How an orientation takes upright pixels from stored ones: the axes are swapped, then each of the
// stored axes may be mirrored. Source: CIPA DC-008, section 4.6.4, "Orientation".
struct Turn {
  explicit Turn(int orientation)
      : swap_axes(orientation >= 5),
        mirror_x(orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8),
        mirror_y(orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {}

  PixelBox Stored(const PixelBox& upright, const ImageInfo& info) const {
    PixelBox box = upright;
    if (swap_axes) box = {upright.y, upright.x, upright.height, upright.width};
    if (mirror_x) box.x = info.stored_width - box.x - box.width;
    if (mirror_y) box.y = info.stored_height - box.y - box.height;
    return box;
  }

  bool swap_axes;
  bool mirror_x;
  bool mirror_y;
};

// Copies `columns` pixels of C bytes, each `step` bytes after the one before, to one row.
template <int C>
void GatherRow(const uint8_t* from, ptrdiff_t step, int64_t columns, uint8_t* to) {
  for (int64_t x = 0; x < columns; ++x) {
    std::memcpy(to + x * C, from + x * step, C);
  }
}

Tensor ToUpright(const Tensor& stored, const Turn& turn, BufferPool& pool) {
  const int64_t rows = stored.shape()[0];
  const int64_t columns = stored.shape()[1];
  const int64_t channels = stored.shape()[2];
  ptrdiff_t step_x = turn.mirror_x ? -channels : channels;
  ptrdiff_t step_y = turn.mirror_y ? -columns * channels : columns * channels;
  const uint8_t* from = stored.bytes().data() + (turn.mirror_x ? (columns - 1) * channels : 0) +
                        (turn.mirror_y ? (rows - 1) * columns * channels : 0);
  Shape shape = {rows, columns, channels};
  if (turn.swap_axes) {
    shape = {columns, rows, channels};
    std::swap(step_x, step_y);
  }
  TensorBuilder upright(DType::kUint8, shape, pool);
  const auto gather_row = channels == 1 ? GatherRow<1> : GatherRow<3>;
  for (int64_t y = 0; y < shape[0]; ++y) {
    gather_row(from + y * step_y, step_x, shape[1], upright.data() + y * shape[1] * channels);
  }
  return std::move(upright).Finish();
}

PixelBox CheckedBox(const PixelBox& box, const ImageInfo& info) {
  const bool inside = box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 &&
                      box.width <= info.width && box.x <= info.width - box.width &&
                      box.height <= info.height && box.y <= info.height - box.height;
  if (!inside) {
    ThrowImageError(ErrorCode::kInvalidArgument, "the box is empty or not inside the picture",
                    std::to_string(box.width) + " x " + std::to_string(box.height) + " at (" +
                        std::to_string(box.x) + ", " + std::to_string(box.y) + ")",
                    "inside " + std::to_string(info.width) + " x " + std::to_string(info.height));
  }
  return box;
}

}  // namespace

void ThrowImageError(ErrorCode code, std::string what, std::string got, std::string wanted) {
  throw Error(
      {.code = code, .what = std::move(what), .got = std::move(got), .wanted = std::move(wanted)});
}

void RgbToGray(const uint8_t* rgb, size_t pixels, uint8_t* gray) {
  for (size_t i = 0; i < pixels; ++i) {
    const uint32_t luma =
        19595u * rgb[3 * i] + 38470u * rgb[3 * i + 1] + 7471u * rgb[3 * i + 2] + 32768u;
    gray[i] = static_cast<uint8_t>(luma >> 16);
  }
}

uint8_t* WriteColor(const uint8_t* rgb, size_t pixels, DecodeOptions::Color color, uint8_t* out) {
  if (color == DecodeOptions::Color::kGray) {
    RgbToGray(rgb, pixels, out);
    return out + pixels;
  }
  std::memcpy(out, rgb, 3 * pixels);
  return out + 3 * pixels;
}

ImageInfo ReadImageInfo(std::span<const uint8_t> bytes, const DecodeOptions& options) {
  CheckSize(bytes, options);
  const auto format = FormatOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  ImageInfo info = ReadStoredInfo(format, bytes);
  CheckPixels(info, options);
  info.format = format;
  if (!options.apply_orientation) info.orientation = 1;
  const bool swap_axes = Turn(info.orientation).swap_axes;
  info.width = swap_axes ? info.stored_height : info.stored_width;
  info.height = swap_axes ? info.stored_width : info.stored_height;
  return info;
}

Tensor DecodeImage(std::span<const uint8_t> bytes, const DecodeOptions& options, BufferPool& pool,
                   const std::optional<PixelBox>& box, bool* is_truncated) {
  const ImageInfo info = ReadImageInfo(bytes, options);
  const PixelBox upright =
      box.has_value() ? CheckedBox(*box, info) : PixelBox{0, 0, info.width, info.height};
  const Turn turn(info.orientation);
  bool truncated = false;
  Tensor stored = DecodeStored(bytes, info, options, turn.Stored(upright, info), pool, &truncated);
  if (is_truncated != nullptr) *is_truncated = truncated;
  return info.orientation == 1 ? stored : ToUpright(stored, turn, pool);
}

}  // namespace echopipe::internal
