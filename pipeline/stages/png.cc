#include <array>
#include <csetjmp>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <png.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkFrame = 12;  // length, type and checksum
constexpr size_t kHeaderEnd = kSignatureBytes + kChunkFrame + 13;
constexpr png_uint_32 kMaxSide = 0x7fffffff;

// ---- The header, read without libpng ----

bool IsChunk(const uint8_t* chunk, std::string_view type) {
  return std::memcmp(chunk + 4, type.data(), 4) == 0;
}

int ChannelsOfColorType(int color_type) {
  switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
      return 1;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_PALETTE:
      return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4;
    default:
      ThrowImageError(ErrorCode::kCorrupt, "unknown PNG colour type", std::to_string(color_type));
  }
}

// The eXIf chunk before the pixels, or nothing.
std::span<const uint8_t> FindExif(std::span<const uint8_t> bytes) {
  auto rest = bytes.subspan(kHeaderEnd);
  while (rest.size() >= kChunkFrame && !IsChunk(rest.data(), "IDAT")) {
    const size_t length = BigEndian32(rest.data());
    if (length > rest.size() - kChunkFrame) break;
    if (IsChunk(rest.data(), "eXIf")) return rest.subspan(8, length);
    rest = rest.subspan(kChunkFrame + length);
  }
  return {};
}

// ---- The pixels, by libpng ----

// Where libpng reads, and its error, kept until the C code has been left by longjmp.
struct PngState {
  std::span<const uint8_t> rest;
  std::jmp_buf jump;
  ErrorCode code = ErrorCode::kCorrupt;
  std::array<char, 200> message{};
};

extern "C" {

[[noreturn]] void OnPngError(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message.data(), message, state->message.size() - 1);
  // libpng has no numbers for its errors.
  if (std::strcmp(message, "Out of memory") == 0) state->code = ErrorCode::kResourceExhausted;
  std::longjmp(state->jump, 1);
}

void IgnorePngWarning(png_structp, png_const_charp) {}

void ReadPngBytes(png_structp png, png_bytep to, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->rest.size()) {
    state->code = ErrorCode::kTruncated;
    png_error(png, "the data ends too early");
  }
  std::memcpy(to, state->rest.data(), count);
  state->rest = state->rest.subspan(count);
}

}  // extern "C"

// One libpng reader. As with libjpeg, no frame that a longjmp crosses holds anything with a
// destructor.
class PngReader {
 public:
  PngReader(std::span<const uint8_t> bytes, const DecodeOptions& options) : options_(options) {
    state_.rest = bytes;
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  void ReadHeader(const ImageInfo& info) {
    Guard([this] {
      png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, OnPngError, IgnorePngWarning);
      if (png_ == nullptr) return;
      info_ = png_create_info_struct(png_);
      if (info_ == nullptr) return;
      png_set_read_fn(png_, &state_, ReadPngBytes);
      SetLimits();
      png_read_info(png_, info_);
      SetConversions();
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    if (info_ == nullptr) ThrowImageError(ErrorCode::kResourceExhausted, "PNG: out of memory");
    width_ = static_cast<size_t>(info.stored_width);
    height_ = info.stored_height;
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    channels_ = row_bytes / width_;
    if (row_bytes != width_ * (converts_to_gray() ? 3 : wanted_channels())) {
      ThrowImageError(ErrorCode::kInternal, "PNG: unexpected size of a row");
    }
  }

  void ReadBox(const PixelBox& box, BufferPool& pool, uint8_t* out) {
    const bool whole = static_cast<size_t>(box.width) == width_ && box.height == height_;
    const size_t row_bytes = width_ * channels_;
    if (whole && !converts_to_gray()) {
      ReadImage(out, row_bytes);
    } else if (passes_ > 1) {
      const auto pixels = pool.Allocate(row_bytes * static_cast<size_t>(height_));
      ReadImage(pixels->data(), row_bytes);
      for (int y = 0; y < box.height; ++y) {
        WriteRow(pixels->data() + static_cast<size_t>(box.y + y) * row_bytes, box, y, out);
      }
    } else {
      const auto row = pool.Allocate(row_bytes);
      for (int y = 0; y < height_; ++y) {
        Guard([this, to = row->data()] { png_read_row(png_, to, nullptr); });
        if (y >= box.y && y < box.y + box.height) WriteRow(row->data(), box, y - box.y, out);
      }
    }
    Guard([this] { png_read_end(png_, nullptr); });
  }

 private:
  template <class Calls>
  void Guard(Calls calls) {
    static_assert(std::is_trivially_destructible_v<Calls>);
    if (setjmp(state_.jump) != 0) {
      ThrowImageError(state_.code, std::string("PNG: ") + state_.message.data());
    }
    calls();
  }

  size_t wanted_channels() const { return static_cast<size_t>(ChannelsOf(options_.color)); }
  bool is_color() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0; }
  bool converts_to_gray() const {
    return options_.color == DecodeOptions::Color::kGray && is_color();
  }

  // Pixels are capped before. Chunks that make no pixels are checked but neither kept nor inflated.
  void SetLimits() {
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    png_set_chunk_malloc_max(png_, png_alloc_size_t{1} << 20);
    png_set_chunk_cache_max(png_, 16);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  }

  void SetConversions() {
    const int color_type = png_get_color_type(png_, info_);
    if (color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color_type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if (!is_color() && options_.color == DecodeOptions::Color::kRgb) png_set_gray_to_rgb(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
  }

  void ReadImage(uint8_t* to, size_t stride) {
    Guard([this, to, stride] {
      for (int pass = 0; pass < passes_; ++pass) {
        for (int y = 0; y < height_; ++y) {
          png_read_row(png_, to + static_cast<size_t>(y) * stride, nullptr);
        }
      }
    });
  }

  // Writes the box's part of a row as the row y of `out`.
  void WriteRow(const uint8_t* row, const PixelBox& box, int y, uint8_t* out) const {
    const auto pixels = static_cast<size_t>(box.width);
    const uint8_t* from = row + static_cast<size_t>(box.x) * channels_;
    uint8_t* to = out + static_cast<size_t>(y) * pixels * wanted_channels();
    if (converts_to_gray()) {
      RgbToGray(from, pixels, to);
    } else {
      std::memcpy(to, from, pixels * channels_);
    }
  }

  const DecodeOptions& options_;
  PngState state_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  size_t width_ = 0;
  int height_ = 0;
  size_t channels_ = 0;  // of the rows that libpng gives
};

}  // namespace

ImageInfo ReadPngInfo(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderEnd) {
    ThrowImageError(ErrorCode::kTruncated, "the PNG ends in its header");
  }
  const uint8_t* header = bytes.data() + kSignatureBytes;
  const uint32_t width = BigEndian32(header + 8);
  const uint32_t height = BigEndian32(header + 12);
  if (BigEndian32(header) != 13 || !IsChunk(header, "IHDR") || width == 0 || height == 0 ||
      width > kMaxSide || height > kMaxSide) {
    ThrowImageError(ErrorCode::kCorrupt, "the PNG's header makes no sense");
  }
  ImageInfo info;
  info.stored_width = static_cast<int>(width);
  info.stored_height = static_cast<int>(height);
  info.channels = ChannelsOfColorType(header[17]);
  info.orientation = ExifOrientation(FindExif(bytes));
  return info;
}

Tensor DecodePng(std::span<const uint8_t> bytes, const ImageInfo& info,
                 const DecodeOptions& options, const PixelBox& box, BufferPool& pool) {
  PngReader reader(bytes, options);
  reader.ReadHeader(info);
  TensorBuilder out(DType::kUint8, {box.height, box.width, ChannelsOf(options.color)}, pool);
  reader.ReadBox(box, pool, out.data());
  return std::move(out).Finish();
}

}  // namespace echopipe::internal
