#include <functional>
#include <ostream>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {
namespace {

using namespace std::string_literals;
using echopipe::testing::MakePicture;
using echopipe::testing::MakePng;
using echopipe::testing::Picture;
using echopipe::testing::PngChunk;
using echopipe::testing::PngOptions;
using ::testing::ElementsAre;

// One way to store pixels.
struct Variant {
  const char* name;
  PngOptions options;
  int samples;  // stored for each pixel

  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
};

std::vector<uint8_t> Palette(size_t colors) {
  std::vector<uint8_t> palette;
  for (size_t i = 0; i < colors; ++i) {
    palette.push_back(static_cast<uint8_t>(3 * i + 1));
    palette.push_back(static_cast<uint8_t>(255 - i));
    palette.push_back(static_cast<uint8_t>(7 * i));
  }
  return palette;
}

std::vector<Variant> Variants() {
  return {
      {"Gray1", {.bit_depth = 1, .color_type = 0}, 1},
      {"Gray2", {.bit_depth = 2, .color_type = 0}, 1},
      {"Gray4", {.bit_depth = 4, .color_type = 0}, 1},
      {"Gray8", {.bit_depth = 8, .color_type = 0}, 1},
      {"Gray16", {.bit_depth = 16, .color_type = 0}, 1},
      {"GrayTransparent4", {.bit_depth = 4, .color_type = 0, .transparent = {0, 3}}, 1},
      {"GrayTransparent8", {.bit_depth = 8, .color_type = 0, .transparent = {0, 3}}, 1},
      {"GrayAlpha8", {.bit_depth = 8, .color_type = 4}, 2},
      {"GrayAlpha16", {.bit_depth = 16, .color_type = 4}, 2},
      {"Rgb8", {.bit_depth = 8, .color_type = 2}, 3},
      {"Rgb16", {.bit_depth = 16, .color_type = 2}, 3},
      {"RgbTransparent8", {.bit_depth = 8, .color_type = 2, .transparent = {0, 1, 0, 2, 0, 3}}, 3},
      {"Rgba8", {.bit_depth = 8, .color_type = 6}, 4},
      {"Rgba16", {.bit_depth = 16, .color_type = 6}, 4},
      {"Palette1", {.bit_depth = 1, .color_type = 3, .palette = Palette(2)}, 1},
      {"Palette2", {.bit_depth = 2, .color_type = 3, .palette = Palette(4)}, 1},
      {"Palette4", {.bit_depth = 4, .color_type = 3, .palette = Palette(16)}, 1},
      {"Palette8", {.bit_depth = 8, .color_type = 3, .palette = Palette(256)}, 1},
      {"PaletteTransparent8",
       {.bit_depth = 8, .color_type = 3, .palette = Palette(256), .transparent = {0, 9, 128}},
       1},
  };
}

// A PNG of random samples, and the pixels they stand for.
struct Sample {
  std::string png;
  std::vector<uint8_t> rgb;
};

std::vector<uint8_t> ToRgb(const Variant& variant, const std::vector<uint32_t>& samples) {
  const int depth = variant.options.bit_depth;
  const auto eight_bits = [depth](uint32_t sample) {
    return static_cast<uint8_t>(depth == 16 ? sample >> 8 : sample * 255 / ((1u << depth) - 1));
  };
  switch (variant.options.color_type) {
    case 0:
    case 4:
      return std::vector<uint8_t>(3, eight_bits(samples[0]));
    case 3: {
      const uint8_t* color = variant.options.palette.data() + 3 * samples[0];
      return {color, color + 3};
    }
    default:
      return {eight_bits(samples[0]), eight_bits(samples[1]), eight_bits(samples[2])};
  }
}

void PackRow(const std::vector<uint32_t>& samples, int depth, std::vector<uint8_t>& packed) {
  uint32_t bits = 0;
  int filled = 0;
  for (const uint32_t sample : samples) {
    for (int bit = depth - 1; bit >= 0; --bit) {
      bits = bits << 1 | (sample >> bit & 1);
      if (++filled % 8 == 0) packed.push_back(static_cast<uint8_t>(bits));
    }
  }
  if (filled % 8 != 0) packed.push_back(static_cast<uint8_t>(bits << (8 - filled % 8)));
}

Sample MakeSample(const Variant& variant, int width, int height, bool interlaced) {
  std::mt19937 random(static_cast<unsigned>(width * 1000 + height));
  Sample sample;
  std::vector<uint8_t> packed;
  for (int y = 0; y < height; ++y) {
    std::vector<uint32_t> row;
    for (int x = 0; x < width; ++x) {
      std::vector<uint32_t> pixel;
      for (int s = 0; s < variant.samples; ++s) {
        pixel.push_back(static_cast<uint32_t>(random()) & ((1u << variant.options.bit_depth) - 1));
      }
      const std::vector<uint8_t> rgb = ToRgb(variant, pixel);
      sample.rgb.insert(sample.rgb.end(), rgb.begin(), rgb.end());
      row.insert(row.end(), pixel.begin(), pixel.end());
    }
    PackRow(row, variant.options.bit_depth, packed);
  }
  PngOptions options = variant.options;
  options.interlaced = interlaced;
  sample.png = MakePng(width, height, packed, options);
  return sample;
}

class PngVariants : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(All, PngVariants, ::testing::ValuesIn(Variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST_P(PngVariants, PixelsAreExact) {
  for (const bool interlaced : {false, true}) {
    for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {8, 8}, {33, 17}, {64, 40}}) {
      const Sample sample = MakeSample(GetParam(), width, height, interlaced);
      const Tensor pixels = Decode(sample.png, kRgb);
      ASSERT_EQ(pixels.shape(), (Shape{height, width, 3}));
      ASSERT_EQ(Pixels(pixels), sample.rgb) << width << " x " << height << ", " << interlaced;
    }
  }
}

TEST_P(PngVariants, GrayIsTheLumaOfThePixels) {
  for (const bool interlaced : {false, true}) {
    const Sample sample = MakeSample(GetParam(), 33, 17, interlaced);
    std::vector<uint8_t> luma(33 * 17);
    RgbToGray(sample.rgb.data(), luma.size(), luma.data());
    const Tensor pixels = Decode(sample.png, kGray);
    ASSERT_EQ(pixels.shape(), (Shape{17, 33, 1}));
    EXPECT_EQ(Pixels(pixels), luma);
  }
}

TEST_P(PngVariants, BoxIsTheCutFromTheWhole) {
  for (const bool interlaced : {false, true}) {
    const Sample sample = MakeSample(GetParam(), 33, 17, interlaced);
    for (const DecodeOptions& options : {kRgb, kGray}) {
      const Tensor whole = Decode(sample.png, options);
      for (const PixelBox& box :
           {PixelBox{0, 0, 33, 17}, PixelBox{0, 0, 1, 1}, PixelBox{32, 16, 1, 1},
            PixelBox{5, 3, 20, 11}, PixelBox{0, 7, 33, 2}, PixelBox{9, 0, 2, 17}}) {
        EXPECT_EQ(Pixels(Decode(sample.png, options, box)), Cut(whole, box));
      }
    }
  }
}

TEST(PngTest, OfAnAnimationTheDefaultPictureIsDecoded) {
  const Picture picture = MakePicture(8, 8, 3);
  std::string png =
      MakePng(picture, {.chunks_before_pixels = PngChunk("acTL", "\0\0\0\2\0\0\0\0"s) +
                                                PngChunk("fcTL", std::string(26, '\0'))});
  png.insert(png.size() - 12, PngChunk("fdAT", "another picture"));
  EXPECT_EQ(Pixels(Decode(png)), picture.pixels);
}

TEST(PngTest, GammaAndProfilesChangeNothing) {
  const Picture picture = MakePicture(8, 8, 3);
  const std::string png =
      MakePng(picture, {.chunks_before_pixels = PngChunk("gAMA", "\0\0\x27\x10"s) +
                                                PngChunk("iCCP", "x\0\0no profile"s)});
  EXPECT_EQ(Pixels(Decode(png)), picture.pixels);
}

TEST(PngTest, LargeTextsArePassedOver) {
  const Picture picture = MakePicture(8, 8, 3);
  const std::string png = MakePng(
      picture,
      {.chunks_before_pixels = PngChunk("tEXt", "Comment\0"s + std::string(3'000'000, 'x'))});
  EXPECT_EQ(Pixels(Decode(png)), picture.pixels);
}

TEST(PngTest, WrongChecksumOfAnyChunkIsCorrupt) {
  const std::string png =
      MakePng(MakePicture(8, 8, 1), {.color_type = 3,
                                     .palette = Palette(256),
                                     .transparent = {1, 2},
                                     .chunks_before_pixels = PngChunk("tEXt", "Comment\0hello"s)});
  size_t at = 8;
  while (at < png.size()) {
    const size_t length = BigEndian32(Bytes(png).data() + at);
    std::string damaged = png;
    damaged[at + 8 + length] = static_cast<char>(damaged[at + 8 + length] ^ 1);
    EXPECT_THAT(DecodeError(damaged), IsError(ErrorCode::kCorrupt)) << png.substr(at + 4, 4);
    at += 12 + length;
  }
}

// The PNG with its IDAT chunk's payload put in place by `change`, the checksum right.
std::string WithData(const std::string& png, const std::function<void(std::string&)>& change) {
  const size_t chunk = png.find("IDAT") - 4;
  const size_t length = BigEndian32(Bytes(png).data() + chunk);
  std::string data = png.substr(chunk + 8, length);
  change(data);
  return png.substr(0, chunk) + PngChunk("IDAT", data) + png.substr(chunk + 12 + length);
}

TEST(PngTest, BrokenOrMissingPixelDataIsCorrupt) {
  const std::string png = MakePng(MakePicture(40, 30, 3));
  EXPECT_THAT(DecodeError(WithData(png, [](std::string& data) { data.resize(data.size() / 2); })),
              IsError(ErrorCode::kCorrupt));
  EXPECT_THAT(DecodeError(WithData(png, [](std::string& data) { data[0] = '\xff'; })),
              IsError(ErrorCode::kCorrupt));
}

TEST(PngTest, DamageBelowTheBoxIsNoticed) {
  std::string png = MakePng(MakePicture(40, 30, 3));
  png[png.size() - 14] = static_cast<char>(png[png.size() - 14] ^ 1);  // in the IDAT's checksum
  EXPECT_THAT(DecodeError(png, kRgb, PixelBox{0, 0, 4, 4}), IsError(ErrorCode::kCorrupt));
}

TEST(PngTest, HeaderWithoutSenseIsCorrupt) {
  const std::string png = MakePng(MakePicture(8, 8, 3));
  const auto with = [&](size_t place, const std::string& bytes) {
    std::string header = png.substr(16, 13);
    header.replace(place, bytes.size(), bytes);
    return png.substr(0, 8) + PngChunk("IHDR", header) + png.substr(33);
  };
  EXPECT_THAT(DecodeError(with(0, "\0\0\0\0"s)), IsError(ErrorCode::kCorrupt));
  EXPECT_THAT(DecodeError(with(4, "\0\0\0\0"s)), IsError(ErrorCode::kCorrupt));
  EXPECT_THAT(DecodeError(with(0, "\x80\0\0\1"s)), IsError(ErrorCode::kCorrupt));
  EXPECT_THAT(DecodeError(with(8, "\3")), IsError(ErrorCode::kCorrupt));   // bits
  EXPECT_THAT(DecodeError(with(9, "\5")), IsError(ErrorCode::kCorrupt));   // colour type
  EXPECT_THAT(DecodeError(with(12, "\2")), IsError(ErrorCode::kCorrupt));  // interlacing
}

}  // namespace
}  // namespace echopipe::internal
