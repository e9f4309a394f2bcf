#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <echopipe/tests/support/images.h>

namespace echopipe::testing {
namespace {

std::string BigEndian(uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

J_COLOR_SPACE StoredSpace(JpegOptions::Color color) {
  switch (color) {
    case JpegOptions::Color::kGray:
      return JCS_GRAYSCALE;
    case JpegOptions::Color::kYcc:
      return JCS_YCbCr;
    case JpegOptions::Color::kRgb:
      return JCS_RGB;
    case JpegOptions::Color::kCmyk:
      return JCS_CMYK;
    case JpegOptions::Color::kYcck:
      return JCS_YCCK;
  }
  return JCS_UNKNOWN;
}

int ChannelsOf(JpegOptions::Color color) {
  if (color == JpegOptions::Color::kGray) return 1;
  return color == JpegOptions::Color::kCmyk || color == JpegOptions::Color::kYcck ? 4 : 3;
}

constexpr std::array<jpeg_scan_info, 2> kOneBitPlane{{{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}}};
constexpr std::array<jpeg_scan_info, 3> kOneComponentEach{
    {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}}};

void SetScans(jpeg_compress_struct& encoder, std::span<const jpeg_scan_info> scans) {
  encoder.scan_info = scans.data();
  encoder.num_scans = static_cast<int>(scans.size());
}

void SetUp(jpeg_compress_struct& encoder, const Picture& picture, const JpegOptions& options) {
  encoder.image_width = static_cast<JDIMENSION>(picture.width);
  encoder.image_height = static_cast<JDIMENSION>(picture.height);
  encoder.input_components = picture.channels;
  encoder.in_color_space = picture.channels == 1   ? JCS_GRAYSCALE
                           : picture.channels == 3 ? JCS_RGB
                                                   : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_colorspace(&encoder, StoredSpace(options.color));
  jpeg_set_quality(&encoder, options.quality, TRUE);
  for (int i = 0; i < encoder.num_components; ++i) {
    const bool first = i == 0 || (i == 3 && options.color == JpegOptions::Color::kYcck);
    encoder.comp_info[i].h_samp_factor = first ? options.h_sampling : 1;
    encoder.comp_info[i].v_samp_factor = first ? options.v_sampling : 1;
  }
  encoder.arith_code = options.arithmetic ? TRUE : FALSE;
  encoder.restart_interval = static_cast<unsigned>(options.restart_interval);
  if (picture.channels == 4 && !options.adobe_marker) encoder.write_Adobe_marker = FALSE;
  if (options.progressive) jpeg_simple_progression(&encoder);
  if (options.one_bit_plane) SetScans(encoder, kOneBitPlane);
  if (!options.interleaved) SetScans(encoder, kOneComponentEach);
}

void WriteExif(jpeg_compress_struct& encoder, const std::string& exif) {
  if (exif.empty()) return;
  const std::string payload = std::string("Exif\0\0", 6) + exif;
  jpeg_write_marker(&encoder, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(payload.data()),
                    static_cast<unsigned>(payload.size()));
}

extern "C" void AppendPngBytes(png_structp png, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(bytes), count);
}

}  // namespace

Picture MakePicture(int width, int height, int channels, uint32_t seed) {
  Picture picture{width, height, channels, {}};
  picture.pixels.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) *
                         static_cast<size_t>(channels));
  uint32_t noise = seed * 2654435761u + 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        noise = noise * 1664525u + 1013904223u;
        const double wave = 90 * std::sin(0.11 * x + c + seed) * std::cos(0.07 * y - 2 * c);
        const int edge = (x / 13 + y / 9 + c) % 3 * 12;
        picture.pixels.push_back(static_cast<uint8_t>(110 + static_cast<int>(wave) + edge +
                                                      static_cast<int>(noise >> 29)));
      }
    }
  }
  return picture;
}

std::string MakeJpeg(const Picture& picture, const JpegOptions& options) {
  EXPECT_EQ(picture.channels, ChannelsOf(options.color));
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &bytes, &size);
  SetUp(encoder, picture, options);
  jpeg_start_compress(&encoder, TRUE);
  WriteExif(encoder, options.exif);
  const size_t stride = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.channels);
  while (encoder.next_scanline < encoder.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + encoder.next_scanline * stride);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&encoder);
  std::free(bytes);
  return jpeg;
}

std::string MakeJpeg(int width, int height, const JpegOptions& options) {
  return MakeJpeg(MakePicture(width, height, ChannelsOf(options.color)), options);
}

std::string PngChunk(const std::string& type, const std::string& payload) {
  const std::string body = type + payload;
  const auto checksum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return BigEndian(static_cast<uint32_t>(payload.size()), 4) + body +
         BigEndian(static_cast<uint32_t>(checksum), 4);
}

std::string MakePng(int width, int height, const std::vector<uint8_t>& packed_rows,
                    const PngOptions& options) {
  std::string png_bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &png_bytes, AppendPngBytes, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               options.bit_depth, options.color_type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, reinterpret_cast<const png_color*>(options.palette.data()),
                 static_cast<int>(options.palette.size() / 3));
  }
  png_write_info(png, info);
  const std::string transparent(options.transparent.begin(), options.transparent.end());
  if (!transparent.empty()) png_bytes += PngChunk("tRNS", transparent);
  png_bytes += options.chunks_before_pixels;
  const size_t stride = png_get_rowbytes(png, info);
  EXPECT_EQ(packed_rows.size(), stride * static_cast<size_t>(height));
  std::vector<png_bytep> rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back(const_cast<png_bytep>(packed_rows.data() + static_cast<size_t>(y) * stride));
  }
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return png_bytes;
}

std::string MakePng(const Picture& picture, const PngOptions& options) {
  return MakePng(picture.width, picture.height, picture.pixels, options);
}

std::string MakeExif(int orientation, bool little_endian) {
  const auto number = [little_endian](uint32_t value, int bytes) {
    const std::string big = BigEndian(value, bytes);
    return little_endian ? std::string(big.rbegin(), big.rend()) : big;
  };
  return std::string(little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(1, 2) +
         number(0x0112, 2) + number(3, 2) + number(1, 4) +
         number(static_cast<uint32_t>(orientation), 2) + number(0, 2) + number(0, 4);
}

}  // namespace echopipe::testing
