#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

// Source: Microsoft, "Bitmap Storage" and BITMAPV5HEADER.
constexpr size_t kFileHeader = 14;
constexpr size_t kCoreHeader = 12;  // OS/2's
constexpr size_t kInfoHeader = 40;  // later ones begin alike
constexpr size_t kLongestHeader = 124;
constexpr size_t kMasksAt = kFileHeader + kInfoHeader;  // in the header or behind it

struct BmpHeader {
  int width = 0;
  int height = 0;
  bool is_top_down = false;
  uint32_t bits = 0;  // of a pixel
  uint32_t compression = 0;
  uint64_t pixels_at = 0;
  size_t palette_at = 0;
  size_t palette_entry = 4;  // bytes: blue, green, red and one of no use
  size_t palette_entries = 0;

  bool has_masks() const { return compression == 3; }
  uint64_t row_bytes() const {
    return (uint64_t{bits} * static_cast<uint64_t>(width) + 31) / 32 * 4;
  }
};

[[noreturn]] void ThrowEndsInHeader() {
  ThrowImageError(ErrorCode::kTruncated, "the BMP ends in its header");
}

void ReadCoreHeader(const uint8_t* at, BmpHeader& header) {
  header.width = static_cast<int>(LittleEndian16(at + 4));
  header.height = static_cast<int>(LittleEndian16(at + 6));
  header.bits = LittleEndian16(at + 10);
  header.palette_entry = 3;
}

void ReadInfoHeader(const uint8_t* at, BmpHeader& header) {
  const auto width = static_cast<int32_t>(LittleEndian32(at + 4));
  const auto height = static_cast<int32_t>(LittleEndian32(at + 8));
  if (height == std::numeric_limits<int32_t>::min()) {
    ThrowImageError(ErrorCode::kCorrupt, "the BMP's height cannot be meant");
  }
  header.width = width;
  header.height = std::abs(height);
  header.is_top_down = height < 0;
  header.bits = LittleEndian16(at + 14);
  header.compression = LittleEndian32(at + 16);
  header.palette_entries = LittleEndian32(at + 32);
}

void CheckVariant(const BmpHeader& header) {
  constexpr std::array<uint32_t, 6> kBits = {1, 4, 8, 16, 24, 32};
  if (header.width < 1 || header.height < 1) {
    ThrowImageError(ErrorCode::kCorrupt, "the BMP has no pixels",
                    std::to_string(header.width) + " x " + std::to_string(header.height));
  }
  if (header.compression != 0 && !header.has_masks()) {
    ThrowImageError(ErrorCode::kUnsupported, "compressed BMP is not read",
                    "compression " + std::to_string(header.compression));
  }
  bool is_known = false;
  for (const uint32_t bits : kBits) is_known |= header.bits == bits;
  if (!is_known || (header.has_masks() && header.bits != 16 && header.bits != 32)) {
    ThrowImageError(ErrorCode::kCorrupt, "a BMP's pixels cannot have so many bits",
                    std::to_string(header.bits), "1, 4, 8, 16, 24 or 32");
  }
}

BmpHeader ReadHeader(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFileHeader + kCoreHeader) ThrowEndsInHeader();
  const uint8_t* at = bytes.data() + kFileHeader;
  const size_t size = LittleEndian32(at);
  const bool is_core = size == kCoreHeader;
  if (!is_core && (size < kInfoHeader || size > kLongestHeader)) {
    ThrowImageError(ErrorCode::kUnsupported, "a BMP header of this size is not read (is it a BMP?)",
                    std::to_string(size) + " bytes", "12, or 40 to 124");
  }
  if (bytes.size() < kFileHeader + size) ThrowEndsInHeader();
  BmpHeader header;
  is_core ? ReadCoreHeader(at, header) : ReadInfoHeader(at, header);
  CheckVariant(header);
  header.pixels_at = LittleEndian32(bytes.data() + 10);
  // Masks are part of the longer headers and stand behind a short one.
  header.palette_at = std::max(kFileHeader + size, header.has_masks() ? kMasksAt + 12 : 0);
  const size_t most_entries = header.bits <= 8 ? size_t{1} << header.bits : 0;
  if (header.palette_entries == 0 || header.palette_entries > most_entries) {
    header.palette_entries = most_entries;
  }
  return header;
}

// One colour's bits in a pixel, and their value as 0 to 255, rounded to the nearest.
class Channel {
 public:
  explicit Channel(uint32_t mask)
      : shift_(std::countr_zero(mask)), most_(uint64_t{mask} >> shift_), mask_(mask) {
    if (mask == 0 || !std::has_single_bit(most_ + 1)) {
      ThrowImageError(ErrorCode::kCorrupt, "a BMP's colour mask has gaps or is empty");
    }
  }
  uint8_t Of(uint32_t pixel) const {
    const uint64_t value = (pixel & mask_) >> shift_;
    return static_cast<uint8_t>((value * 255 + most_ / 2) / most_);
  }

 private:
  int shift_;
  uint64_t most_;
  uint32_t mask_;
};

// Rows of any variant become RGB.
class BmpRows {
 public:
  BmpRows(std::span<const uint8_t> bytes, const BmpHeader& header)
      : header_(header), bytes_(bytes) {
    const uint64_t end =
        header.pixels_at + header.row_bytes() * static_cast<uint64_t>(header.height);
    if (bytes.size() < end) {
      ThrowImageError(ErrorCode::kTruncated, "the BMP ends in its pixels",
                      std::to_string(bytes.size()) + " bytes", std::to_string(end));
    }
    const size_t palette_end = header.palette_at + header.palette_entries * header.palette_entry;
    if (header.pixels_at < palette_end) {
      ThrowImageError(ErrorCode::kCorrupt, "the BMP's pixels begin in front of its header's end",
                      std::to_string(header.pixels_at), "at least " + std::to_string(palette_end));
    }
    if (header.has_masks()) {
      for (size_t i = 0; i < 3; ++i) {
        channels_[i] = Channel(LittleEndian32(bytes.data() + kMasksAt + 4 * i));
      }
    } else if (header.bits == 16) {
      channels_ = {Channel(0x7c00), Channel(0x3e0), Channel(0x1f)};
    }
  }

  /// `y` counts from the top.
  void Read(int y, int first, int count, uint8_t* rgb) const {
    const int row = header_.is_top_down ? y : header_.height - 1 - y;
    const uint8_t* from =
        bytes_.data() + header_.pixels_at + header_.row_bytes() * static_cast<uint64_t>(row);
    for (int x = first; x < first + count; ++x, rgb += 3)
      ReadPixel(from, static_cast<size_t>(x), rgb);
  }

 private:
  void ReadPixel(const uint8_t* row, size_t x, uint8_t* rgb) const {
    const bool is_plain = !header_.has_masks() && header_.bits >= 24;
    if (is_plain) {
      const uint8_t* pixel = row + x * (header_.bits / 8);
      for (size_t i = 0; i < 3; ++i) rgb[i] = pixel[2 - i];
    } else if (header_.bits >= 16) {
      const uint32_t pixel =
          header_.bits == 16 ? LittleEndian16(row + 2 * x) : LittleEndian32(row + 4 * x);
      for (size_t i = 0; i < 3; ++i) rgb[i] = channels_[i].Of(pixel);
    } else {
      ReadFromPalette(row, x, rgb);
    }
  }

  void ReadFromPalette(const uint8_t* row, size_t x, uint8_t* rgb) const {
    const size_t in_byte = 8 / header_.bits;  // pixels, from the high bits on
    const size_t shift = (in_byte - 1 - x % in_byte) * header_.bits;
    const size_t index = row[x / in_byte] >> shift & ((1u << header_.bits) - 1);
    if (index >= header_.palette_entries) {
      ThrowImageError(ErrorCode::kCorrupt, "a BMP's pixel has no colour in the palette",
                      std::to_string(index),
                      "less than " + std::to_string(header_.palette_entries));
    }
    const uint8_t* entry = bytes_.data() + header_.palette_at + index * header_.palette_entry;
    for (size_t i = 0; i < 3; ++i) rgb[i] = entry[2 - i];
  }

  const BmpHeader& header_;
  std::span<const uint8_t> bytes_;
  std::array<Channel, 3> channels_{Channel(0xff0000), Channel(0xff00), Channel(0xff)};
};

}  // namespace

ImageInfo ReadBmpInfo(std::span<const uint8_t> bytes) {
  const BmpHeader header = ReadHeader(bytes);
  return {.stored_width = header.width, .stored_height = header.height, .channels = 3};
}

Tensor DecodeBmp(std::span<const uint8_t> bytes, const ImageInfo&, const DecodeOptions& options,
                 const PixelBox& box, BufferPool& pool) {
  const BmpHeader header = ReadHeader(bytes);
  const BmpRows rows(bytes, header);
  TensorBuilder out(DType::kUint8, {box.height, box.width, ChannelsOf(options.color)}, pool);
  const auto columns = static_cast<size_t>(box.width);
  const auto row = pool.Allocate(3 * columns);
  uint8_t* to = out.data();
  for (int y = box.y; y < box.y + box.height; ++y) {
    rows.Read(y, box.x, box.width, row->data());
    to = WriteColor(row->data(), columns, options.color, to);
  }
  return std::move(out).Finish();
}

}  // namespace echopipe::internal
