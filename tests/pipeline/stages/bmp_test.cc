#include <array>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {
namespace {

using ::testing::HasSubstr;

// One way to store pixels.
struct Variant {
  const char* name = "";
  int bits = 24;
  size_t header = 40;
  std::array<uint32_t, 3> masks = {};  // none: colours lie where the bits say
  size_t colors = 0;                   // of the palette; 0 for all that the bits can count
  bool is_top_down = false;

  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
};

std::vector<Variant> Variants() {
  return {
      {.name = "Palette1", .bits = 1},
      {.name = "Palette4", .bits = 4},
      {.name = "Palette8", .bits = 8},
      {.name = "Palette8Of10Colors", .bits = 8, .colors = 10},
      {.name = "OldPalette8", .bits = 8, .header = 12},
      {.name = "Old24", .header = 12},
      {.name = "Bits16", .bits = 16},
      {.name = "Bits24"},
      {.name = "Bits24TopDown", .is_top_down = true},
      {.name = "Bits32", .bits = 32},
      {.name = "Masks565", .bits = 16, .masks = {0xf800, 0x7e0, 0x1f}},
      {.name = "Masks32", .bits = 32, .masks = {0xff, 0xff00, 0xff0000}},
      {.name = "MasksOf10Bits", .bits = 32, .masks = {0x3ff00000, 0xffc00, 0x3ff}},
      {.name = "MasksInTheHeader",
       .bits = 32,
       .header = 108,
       .masks = {0xff000000, 0xff0000, 0xff}},
      {.name = "Header124", .header = 124},
  };
}

void Append(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) to += static_cast<char>(value & 0xff);
}

size_t ColorsOf(const Variant& variant) {
  if (variant.bits > 8) return 0;
  return variant.colors > 0 ? variant.colors : size_t{1} << variant.bits;
}

std::array<uint8_t, 3> PaletteColor(size_t i) {
  return {static_cast<uint8_t>(3 * i + 1), static_cast<uint8_t>(255 - i),
          static_cast<uint8_t>(7 * i)};
}

// All in front of the pixels.
std::string MakeHead(const Variant& variant, int width, int height, size_t pixel_bytes) {
  const bool is_old = variant.header == 12;
  const bool has_masks = variant.masks[0] != 0;
  std::string info;
  Append(info, variant.header, 4);
  Append(info, static_cast<uint64_t>(width), is_old ? 2 : 4);
  Append(info, static_cast<uint64_t>(variant.is_top_down ? -int64_t{height} : height),
         is_old ? 2 : 4);
  Append(info, 1, 2);
  Append(info, static_cast<uint64_t>(variant.bits), 2);
  if (!is_old) {
    Append(info, has_masks ? 3 : 0, 4);
    Append(info, 0, 12);
    Append(info, variant.colors, 4);
    Append(info, 0, 4);
    if (has_masks) {
      for (const uint32_t mask : variant.masks) Append(info, mask, 4);
    }
    info.resize(std::max(info.size(), variant.header));
  }
  for (size_t i = 0; i < ColorsOf(variant); ++i) {
    const std::array<uint8_t, 3> color = PaletteColor(i);
    for (size_t c = 0; c < 3; ++c) info += static_cast<char>(color[2 - c]);
    if (!is_old) info += '\0';
  }
  std::string head = "BM";
  Append(head, 14 + info.size() + pixel_bytes, 4);
  Append(head, 0, 4);
  Append(head, 14 + info.size(), 4);
  return head + info;
}

std::array<uint32_t, 3> MasksOf(const Variant& variant) {
  if (variant.masks[0] != 0) return variant.masks;
  if (variant.bits == 16) return {0x7c00, 0x3e0, 0x1f};
  return {0xff0000, 0xff00, 0xff};
}

// In the words of the format: the bits under the mask, as a share of all that fit there.
uint8_t Under(uint32_t mask, uint32_t pixel) {
  uint32_t value = 0;
  uint32_t most = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if ((mask >> bit & 1) == 0) continue;
    value = value << 1 | (pixel >> bit & 1);
    most = most << 1 | 1;
  }
  return static_cast<uint8_t>(255.0 * value / most + 0.5);
}

struct Sample {
  std::string bmp;
  std::vector<uint8_t> rgb;
};

// Of random pixels.
Sample MakeSample(const Variant& variant, int width, int height) {
  std::mt19937 random(static_cast<unsigned>(width * 1000 + height));
  std::vector<std::string> rows;
  std::vector<std::vector<uint8_t>> colors;
  for (int y = 0; y < height; ++y) {
    std::string row;
    std::vector<uint8_t> rgb;
    uint32_t packed = 0;
    for (int x = 0; x < width; ++x) {
      auto pixel = static_cast<uint32_t>(random());
      std::array<uint8_t, 3> color;
      if (variant.bits <= 8) {
        pixel %= static_cast<uint32_t>(ColorsOf(variant));
        color = PaletteColor(pixel);
        packed = packed << variant.bits | pixel;
        const int in_byte = 8 / variant.bits;
        if (x % in_byte == in_byte - 1) row += static_cast<char>(packed);
        if (x == width - 1 && x % in_byte != in_byte - 1) {
          row += static_cast<char>(packed << variant.bits * (in_byte - 1 - x % in_byte));
        }
      } else {
        Append(row, pixel, variant.bits / 8);
        for (size_t c = 0; c < 3; ++c) color[c] = Under(MasksOf(variant)[c], pixel);
      }
      rgb.insert(rgb.end(), color.begin(), color.end());
    }
    row.resize((row.size() + 3) / 4 * 4);
    rows.push_back(row);
    colors.push_back(rgb);
  }
  Sample sample{.bmp = MakeHead(variant, width, height, rows[0].size() * rows.size()), .rgb = {}};
  for (size_t y = 0; y < rows.size(); ++y) {
    sample.bmp += variant.is_top_down ? rows[y] : rows[rows.size() - 1 - y];
    sample.rgb.insert(sample.rgb.end(), colors[y].begin(), colors[y].end());
  }
  return sample;
}

class BmpVariants : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(All, BmpVariants, ::testing::ValuesIn(Variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST_P(BmpVariants, PixelsAreExact) {
  for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {8, 8}, {33, 17}}) {
    const Sample sample = MakeSample(GetParam(), width, height);
    const Tensor pixels = Decode(sample.bmp);
    ASSERT_EQ(pixels.shape(), (Shape{height, width, 3}));
    ASSERT_EQ(Pixels(pixels), sample.rgb) << width << " x " << height;
  }
}

TEST_P(BmpVariants, GrayIsTheLumaAndABoxTheCutFromTheWhole) {
  const Sample sample = MakeSample(GetParam(), 33, 17);
  std::vector<uint8_t> luma(33 * 17);
  RgbToGray(sample.rgb.data(), luma.size(), luma.data());
  EXPECT_EQ(Pixels(Decode(sample.bmp, kGray)), luma);
  for (const DecodeOptions& options : {kRgb, kGray}) {
    const Tensor whole = Decode(sample.bmp, options);
    for (const PixelBox& box : {PixelBox{0, 0, 1, 1}, PixelBox{32, 16, 1, 1},
                                PixelBox{5, 3, 20, 11}, PixelBox{0, 7, 33, 2}}) {
      EXPECT_EQ(Pixels(Decode(sample.bmp, options, box)), Cut(whole, box));
    }
  }
}

TEST_P(BmpVariants, EachBeginningIsTruncated) {
  const Sample sample = MakeSample(GetParam(), 5, 3);
  for (size_t size = 2; size < sample.bmp.size(); ++size) {
    EXPECT_THAT(DecodeError(sample.bmp.substr(0, size)), IsError(ErrorCode::kTruncated)) << size;
  }
}

// Bytes of the header that are set, and what is said of it.
struct Damage {
  const char* name;
  size_t at;
  std::string bytes;
  ErrorCode code;
  const char* message;
};

class BmpDamages : public ::testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(
    All, BmpDamages,
    ::testing::Values(
        Damage{"Compressed", 30, {"\1", 1}, ErrorCode::kUnsupported, "compression 1"},
        Damage{"OtherHeader", 14, {"\x41\x42", 2}, ErrorCode::kUnsupported, "16961 bytes"},
        Damage{"NoColumns", 18, {"\0\0\0\0", 4}, ErrorCode::kCorrupt, "no pixels"},
        Damage{"NegativeWidth", 18, "\xff\xff\xff\xff", ErrorCode::kCorrupt, "no pixels"},
        Damage{"NoSuchHeight", 22, {"\0\0\0\x80", 4}, ErrorCode::kCorrupt, "height"},
        Damage{"Bits", 28, {"\7", 1}, ErrorCode::kCorrupt, "so many bits"},
        Damage{"MasksOf8Bits", 30, {"\3", 1}, ErrorCode::kCorrupt, "so many bits"},
        Damage{"PixelsInTheHeader", 10, {"\x10\0", 2}, ErrorCode::kCorrupt, "in front of"},
        Damage{"TooLarge", 18, {"\xff\xff\xff\x7f", 4}, ErrorCode::kLimitExceeded, "max_pixels"},
        Damage{"Index", 1078, "\xff", ErrorCode::kCorrupt, "no colour in the palette"}),
    [](const auto& damage) { return damage.param.name; });

TEST_P(BmpDamages, AreTold) {
  std::string bmp = MakeSample({.bits = 8, .colors = 255}, 1, 2).bmp;
  bmp.insert(54 + 4 * 255, 4, '\0');  // one place that is no colour
  bmp[10] += 4;
  bmp.replace(GetParam().at, GetParam().bytes.size(), GetParam().bytes);
  try {
    Decode(bmp);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GetParam().code);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

TEST(BmpTest, MasksWithGapsAreCorrupt) {
  for (const uint32_t mask : {0x5u, 0u}) {
    const Variant variant{.bits = 32, .masks = {0xff0000, 0xff00, mask}};
    std::string bmp = MakeHead(variant, 1, 1, 4) + "abcd";
    EXPECT_THAT(DecodeError(bmp), IsError(ErrorCode::kCorrupt));
  }
}

TEST(BmpTest, PixelsDoNotBeginInTheMasks) {
  std::string bmp = MakeHead({.bits = 32, .masks = {0xff0000, 0xff00, 0xff}}, 1, 1, 4);
  bmp[10] = 54;
  bmp.resize(58);
  EXPECT_THAT(DecodeError(bmp), IsError(ErrorCode::kCorrupt));
}

}  // namespace
}  // namespace echopipe::internal
