#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <jpeglib.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::internal {
namespace {

using namespace std::string_literals;
using echopipe::testing::JpegOptions;
using echopipe::testing::kNoTestData;
using echopipe::testing::MakeJpeg;
using echopipe::testing::MakePicture;
using echopipe::testing::Picture;
using echopipe::testing::ReadFile;
using echopipe::testing::TestData;
using Color = JpegOptions::Color;
namespace fs = std::filesystem;

// What a program of a few lines gets from libjpeg.
std::vector<uint8_t> PlainDecode(std::string_view jpeg, J_COLOR_SPACE color) {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, Bytes(jpeg).data(), jpeg.size());
  jpeg_read_header(&decoder, TRUE);
  decoder.out_color_space = color;
  jpeg_start_decompress(&decoder);
  const size_t stride =
      size_t{decoder.output_width} * static_cast<size_t>(decoder.output_components);
  std::vector<uint8_t> pixels(stride * decoder.output_height);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = pixels.data() + decoder.output_scanline * stride;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return pixels;
}

struct Variant {
  const char* name;
  JpegOptions options;

  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
};

std::vector<Variant> Variants() {
  return {
      {"Ycc444", {}},
      {"Ycc420", {.h_sampling = 2, .v_sampling = 2}},
      {"Ycc422", {.h_sampling = 2}},
      {"Ycc440", {.v_sampling = 2}},
      {"Ycc411", {.h_sampling = 4}},
      {"Ycc441", {.v_sampling = 4}},
      {"Ycc410", {.h_sampling = 4, .v_sampling = 2}},
      {"Gray", {.color = Color::kGray}},
      {"GraySampled", {.color = Color::kGray, .h_sampling = 2, .v_sampling = 2}},
      {"Rgb", {.color = Color::kRgb}},
      {"Restarts420", {.h_sampling = 2, .v_sampling = 2, .restart_interval = 3}},
      {"Restarts444", {.restart_interval = 1}},
      {"Progressive444", {.progressive = true}},
      {"Progressive420", {.h_sampling = 2, .v_sampling = 2, .progressive = true}},
      {"Progressive422", {.h_sampling = 2, .progressive = true}},
      {"Progressive440", {.v_sampling = 2, .progressive = true}},
      {"ProgressiveGray", {.color = Color::kGray, .progressive = true}},
      {"ScanEach420", {.h_sampling = 2, .v_sampling = 2, .interleaved = false}},
      {"ScanEach444", {.interleaved = false}},
      {"Arithmetic420", {.h_sampling = 2, .v_sampling = 2, .arithmetic = true}},
      {"ArithmeticProgressive", {.progressive = true, .arithmetic = true}},
      {"Cmyk", {.color = Color::kCmyk}},
      {"Ycck420", {.color = Color::kYcck, .h_sampling = 2, .v_sampling = 2}},
      {"LowQuality420", {.quality = 20, .h_sampling = 2, .v_sampling = 2}},
  };
}

class JpegVariants : public ::testing::TestWithParam<Variant> {
 protected:
  const JpegOptions& options() const { return GetParam().options; }
  bool inks() const { return options().color == Color::kCmyk || options().color == Color::kYcck; }
};
INSTANTIATE_TEST_SUITE_P(All, JpegVariants, ::testing::ValuesIn(Variants()),
                         [](const auto& variant) { return variant.param.name; });

const std::vector<std::pair<int, int>> kSizes{{1, 1},   {2, 3},   {7, 5},    {8, 8},   {16, 16},
                                              {17, 33}, {31, 15}, {97, 83},  {64, 48}, {160, 121},
                                              {3, 90},  {131, 2}, {200, 150}};

// RGB of stored CMYK with an Adobe marker, in floating point.
std::vector<uint8_t> RgbOfInks(const std::vector<uint8_t>& cmyk) {
  std::vector<uint8_t> rgb;
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      rgb.push_back(static_cast<uint8_t>(std::lround(cmyk[i + c] * cmyk[i + 3] / 255.0)));
    }
  }
  return rgb;
}

TEST_P(JpegVariants, WholePictureIsThatOfPlainLibjpeg) {
  for (const auto& [width, height] : kSizes) {
    const std::string jpeg = MakeJpeg(width, height, options());
    const Tensor rgb = Decode(jpeg, kRgb);
    ASSERT_EQ(rgb.shape(), (Shape{height, width, 3}));
    ASSERT_EQ(rgb.dtype(), DType::kUint8);
    ASSERT_EQ(Pixels(rgb),
              inks() ? RgbOfInks(PlainDecode(jpeg, JCS_CMYK)) : PlainDecode(jpeg, JCS_RGB))
        << width << " x " << height;
  }
}

TEST_P(JpegVariants, GrayIsTheLumaOfPlainLibjpeg) {
  for (const auto& [width, height] : kSizes) {
    const std::string jpeg = MakeJpeg(width, height, options());
    std::vector<uint8_t> luma(static_cast<size_t>(width) * static_cast<size_t>(height));
    if (inks()) {
      RgbToGray(Pixels(Decode(jpeg, kRgb)).data(), luma.size(), luma.data());
    } else {
      luma = PlainDecode(jpeg, JCS_GRAYSCALE);
    }
    const Tensor gray = Decode(jpeg, kGray);
    ASSERT_EQ(gray.shape(), (Shape{height, width, 1}));
    ASSERT_EQ(Pixels(gray), luma) << width << " x " << height;
  }
}

PixelBox RandomBox(int width, int height, std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  PixelBox box;
  box.width = 1 + below(width);
  box.height = 1 + below(height);
  box.x = below(width - box.width + 1);
  box.y = below(height - box.height + 1);
  return box;
}

void ExpectBoxIsExact(std::string_view jpeg, const DecodeOptions& options, const Tensor& whole,
                      const PixelBox& box) {
  ASSERT_EQ(Pixels(Decode(jpeg, options, box)), Cut(whole, box))
      << box.width << " x " << box.height << " at (" << box.x << ", " << box.y << ") of "
      << whole.shape().ToString();
}

TEST_P(JpegVariants, BoxIsByteForByteTheCutFromTheWhole) {
  std::mt19937 random(1);
  for (const auto& [width, height] : kSizes) {
    const std::string jpeg = MakeJpeg(width, height, options());
    for (const DecodeOptions& color : {kRgb, kGray}) {
      const Tensor whole = Decode(jpeg, color);
      for (int i = 0; i < 200; ++i) {
        ExpectBoxIsExact(jpeg, color, whole, RandomBox(width, height, random));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(JpegVariants, EverySmallBoxIsExact) {
  const std::string jpeg = MakeJpeg(53, 41, options());
  const Tensor whole = Decode(jpeg, kRgb);
  for (int y = 0; y + 2 <= 41; ++y) {
    for (int x = 0; x + 3 <= 53; ++x) {
      ExpectBoxIsExact(jpeg, kRgb, whole, {x, y, 3, 2});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(JpegTest, BoxesOfPhotosAreExact) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  std::mt19937 random(2);
  int photos = 0;
  for (const auto& entry : fs::recursive_directory_iterator(TestData() / "photos")) {
    if (!entry.is_regular_file()) continue;
    const std::string jpeg = ReadFile(entry.path());
    const Tensor whole = Decode(jpeg);
    const int height = static_cast<int>(whole.shape()[0]);
    const int width = static_cast<int>(whole.shape()[1]);
    for (int i = 0; i < 4; ++i) {
      ExpectBoxIsExact(jpeg, kRgb, whole, RandomBox(width, height, random));
      ASSERT_FALSE(HasFatalFailure()) << entry.path();
    }
    ++photos;
  }
  EXPECT_GT(photos, 0);
}

TEST(JpegTest, PixelsAreNearThoseEncoded) {
  const Picture picture = MakePicture(64, 48, 3);
  const Tensor pixels = Decode(MakeJpeg(picture, {.quality = 100}));
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    EXPECT_NEAR(pixels.bytes()[i], picture.pixels[i], 3);
  }
}

// ---- CMYK ----

Picture Flat(std::vector<uint8_t> values) {
  const int channels = static_cast<int>(values.size());
  Picture picture{16, 16, channels, {}};
  for (int i = 0; i < 16 * 16; ++i) {
    picture.pixels.insert(picture.pixels.end(), values.begin(), values.end());
  }
  return picture;
}

std::vector<uint8_t> FirstPixel(const Tensor& pixels) {
  const auto bytes = pixels.bytes().first(static_cast<size_t>(pixels.shape()[2]));
  return {bytes.begin(), bytes.end()};
}

TEST(JpegTest, CmykWithAnAdobeMarkerIsStoredInverted) {
  // Stored 200 100 50 128: R = 200 * 128 / 255 = 100.4, G = 50.2, B = 25.1.
  const Picture inks = Flat({200, 100, 50, 128});
  const std::string jpeg = MakeJpeg(inks, {.color = Color::kCmyk, .quality = 100});
  EXPECT_THAT(FirstPixel(Decode(jpeg)), ::testing::ElementsAre(100, 50, 25));
  EXPECT_THAT(FirstPixel(Decode(jpeg, kGray)), ::testing::ElementsAre(62));
}

TEST(JpegTest, CmykWithoutAnAdobeMarkerIsPlain) {
  // R = (255 - 200)(255 - 128) / 255 = 27.4, G = 77.2, B = 102.1.
  const Picture inks = Flat({200, 100, 50, 128});
  const std::string jpeg =
      MakeJpeg(inks, {.color = Color::kCmyk, .quality = 100, .adobe_marker = false});
  EXPECT_THAT(FirstPixel(Decode(jpeg)), ::testing::ElementsAre(27, 77, 102));
}

TEST(JpegTest, YcckIsConvertedByWayOfCmyk) {
  // Gray inks survive the conversion to YCCK exactly: 90 * 200 / 255 = 70.6.
  const Picture inks = Flat({90, 90, 90, 200});
  const std::string jpeg = MakeJpeg(inks, {.color = Color::kYcck, .quality = 100});
  EXPECT_THAT(FirstPixel(Decode(jpeg)), ::testing::ElementsAre(71, 71, 71));
}

TEST(JpegTest, CmykIsRoundedExactlyForAllPairsOfValues) {
  for (const bool adobe : {true, false}) {
    for (int black = 0; black < 256; black += 15) {
      for (int ink = 0; ink < 256; ink += 5) {
        const auto k = static_cast<uint8_t>(black);
        const auto c = static_cast<uint8_t>(ink);
        const std::string jpeg = MakeJpeg(
            Flat({c, c, c, k}), {.color = Color::kCmyk, .quality = 100, .adobe_marker = adobe});
        const int light = adobe ? ink * black : (255 - ink) * (255 - black);
        ASSERT_EQ(FirstPixel(Decode(jpeg))[0], (2 * light + 255) / 510) << ink << ", " << black;
      }
    }
  }
}

// ---- Damage ----

// A place in the middle of the first scan's data.
size_t MiddleOfData(const std::string& jpeg) {
  const size_t scan = jpeg.find("\xff\xda");
  return (scan + jpeg.size()) / 2;
}

TEST(JpegTest, EarlyEndMarkerIsTruncated) {
  const std::string jpeg = MakeJpeg(64, 64);
  const std::string cut = jpeg.substr(0, MiddleOfData(jpeg)) + "\xff\xd9";
  EXPECT_THAT(DecodeError(cut), IsError(ErrorCode::kTruncated));
}

TEST(JpegTest, StrangeMarkerInsideTheDataIsCorrupt) {
  std::string jpeg = MakeJpeg(64, 64);
  jpeg.replace(MiddleOfData(jpeg), 2, "\xff\xc4");
  EXPECT_THAT(DecodeError(jpeg), IsError(ErrorCode::kCorrupt));
}

TEST(JpegTest, BadHuffmanCodeIsCorrupt) {
  std::string jpeg = MakeJpeg(64, 64);
  std::string ones;
  for (int i = 0; i < 8; ++i) ones += "\xff\0"s;  // no code is all ones
  jpeg.replace(MiddleOfData(jpeg), ones.size(), ones);
  EXPECT_THAT(DecodeError(jpeg), IsError(ErrorCode::kCorrupt));
}

TEST(JpegTest, LostRestartMarkerIsCorrupt) {
  std::string jpeg = MakeJpeg(64, 64, {.restart_interval = 2});
  const size_t marker = jpeg.find("\xff\xd2", jpeg.find("\xff\xda"));
  ASSERT_NE(marker, std::string::npos);
  jpeg[marker + 1] = '\xd5';
  EXPECT_THAT(DecodeError(jpeg), IsError(ErrorCode::kCorrupt));
}

TEST(JpegTest, StrayBytesBetweenSegmentsDoNoHarm) {
  const std::string jpeg = MakeJpeg(64, 64, {.restart_interval = 16});
  std::string in_header = jpeg;
  in_header.insert(in_header.find("\xff\xdb"), "\x01\x02\x03");
  std::string before_end = jpeg;
  before_end.insert(before_end.size() - 2, std::string(3, '\0'));
  std::string before_restart = jpeg;
  before_restart.insert(before_restart.find("\xff\xd0", before_restart.find("\xff\xda")),
                        std::string(3, '\0'));
  for (const std::string& stray : {in_header, before_end, before_restart}) {
    EXPECT_EQ(Pixels(Decode(stray)), Pixels(Decode(jpeg)));
  }
}

TEST(JpegTest, UnknownJfifVersionDoesNoHarm) {
  std::string jpeg = MakeJpeg(16, 16);
  jpeg[jpeg.find("JFIF") + 5] = 9;
  EXPECT_EQ(DecodeError(jpeg), std::nullopt);
}

TEST(JpegTest, EndMarkerOfAThumbnailIsNotTheEnd) {
  const std::string thumbnail = MakeJpeg(8, 8);
  const std::string jpeg = MakeJpeg(64, 64, {.exif = thumbnail});
  EXPECT_EQ(DecodeError(jpeg), std::nullopt);
  const std::string cut = jpeg.substr(0, jpeg.size() - 2);
  EXPECT_THAT(DecodeError(cut), IsError(ErrorCode::kTruncated));
  EXPECT_THAT(DecodeError(cut, kRgb, PixelBox{0, 0, 8, 8}), IsError(ErrorCode::kTruncated));
}

TEST(JpegTest, VariantsThatAreNotReadAreUnsupported) {
  const std::string jpeg = MakeJpeg(16, 16);
  const size_t frame = jpeg.find("\xff\xc0");
  const auto with = [&](size_t offset, char byte) {
    std::string changed = jpeg;
    changed[frame + offset] = byte;
    return changed;
  };
  EXPECT_THAT(DecodeError(with(1, '\xc3')), IsError(ErrorCode::kUnsupported));  // lossless
  EXPECT_THAT(DecodeError(with(1, '\xc5')), IsError(ErrorCode::kUnsupported));  // hierarchical
  EXPECT_THAT(DecodeError(with(4, 12)), IsError(ErrorCode::kUnsupported));      // 12 bits
  EXPECT_THAT(DecodeError(with(9, 2)), IsError(ErrorCode::kUnsupported));       // 2 components
  EXPECT_THAT(DecodeError(with(6, 0)), IsError(ErrorCode::kUnsupported));       // height to follow
  EXPECT_THAT(DecodeError(with(8, 0)), IsError(ErrorCode::kCorrupt));           // width 0
}

TEST(JpegTest, SecondFrameHeaderIsCorrupt) {
  const std::string jpeg = MakeJpeg(16, 16);
  const size_t frame = jpeg.find("\xff\xc0");
  std::string doubled = jpeg;
  doubled.insert(frame, jpeg.substr(frame, 19));
  EXPECT_THAT(DecodeError(doubled), IsError(ErrorCode::kCorrupt));
}

// ---- Truncated, and accepted ----

struct Partial {
  Tensor pixels;
  bool truncated = false;
};

Partial DecodePartial(std::string_view jpeg, DecodeOptions options = {},
                      const std::optional<PixelBox>& box = std::nullopt) {
  options.accept_truncated = true;
  BufferPool pool;
  Partial partial;
  partial.pixels = DecodeImage(Bytes(jpeg), options, pool, box, &partial.truncated);
  return partial;
}

std::optional<ErrorCode> PartialError(std::string_view jpeg, DecodeOptions options = {},
                                      const std::optional<PixelBox>& box = std::nullopt) {
  options.accept_truncated = true;
  return DecodeError(jpeg, options, box);
}

// Of the pixels, the rows [first, last).
std::vector<uint8_t> Rows(const Tensor& pixels, int first, int last) {
  return Cut(pixels, {0, first, static_cast<int>(pixels.shape()[1]), last - first});
}

// Cuts of the data behind the header, from none of them to all but a byte.
std::vector<std::string> Cuts(const std::string& jpeg, size_t count) {
  const size_t begin = jpeg.find("\xff\xda") + 14;
  std::vector<std::string> cuts;
  for (size_t i = 0; i <= count; ++i) {
    cuts.push_back(jpeg.substr(0, begin + (jpeg.size() - 1 - begin) * i / count));
  }
  return cuts;
}

TEST_P(JpegVariants, BoxOfATruncatedPictureIsTheCutFromAllThatThereIs) {
  std::mt19937 random(3);
  const std::string jpeg = MakeJpeg(97, 83, options());
  int accepted = 0;
  for (const std::string& cut : Cuts(jpeg, 80)) {
    std::optional<Partial> whole;
    if (!PartialError(cut)) whole = DecodePartial(cut);
    accepted += whole ? 1 : 0;
    for (int i = 0; i < 12; ++i) {
      const PixelBox box = RandomBox(97, 83, random);
      if (!whole) {
        ASSERT_THAT(PartialError(cut, kRgb, box), IsError(*PartialError(cut)));
      } else {
        const Partial part = DecodePartial(cut, kRgb, box);
        ASSERT_EQ(Pixels(part.pixels), Cut(whole->pixels, box)) << cut.size();
        ASSERT_TRUE(part.truncated);
      }
    }
  }
  // Arithmetic coding never runs out of data: these cuts, but those that lack the marker alone.
  if (options().arithmetic) return;
  EXPECT_GT(accepted, 30);
}

TEST_P(JpegVariants, WholePicturesAreNotTakenForTruncatedOnes) {
  for (const auto& [width, height] : kSizes) {
    const std::string jpeg = MakeJpeg(width, height, options());
    const Partial partial = DecodePartial(jpeg + "stray bytes");
    ASSERT_FALSE(partial.truncated) << width << " x " << height;
    ASSERT_EQ(Pixels(partial.pixels), Pixels(Decode(jpeg)));
  }
}

TEST(JpegTest, WhatCameOfATruncatedPictureIsAsInTheWholeAndTheRestIsGray) {
  const std::string jpeg = MakeJpeg(64, 160, {.h_sampling = 2, .v_sampling = 2});
  const Tensor whole = Decode(jpeg);
  const Partial partial = DecodePartial(jpeg.substr(0, MiddleOfData(jpeg)));
  EXPECT_TRUE(partial.truncated);
  EXPECT_EQ(Rows(partial.pixels, 0, 47), Rows(whole, 0, 47));
  EXPECT_THAT(Rows(partial.pixels, 144, 160), ::testing::Each(128));
}

TEST(JpegTest, OnlyTheEndMarkerMissingLosesNoPixelButIsTruncated) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = MakeJpeg(64, 8, {.progressive = progressive});
    const Partial partial = DecodePartial(jpeg.substr(0, jpeg.size() - 2));
    EXPECT_TRUE(partial.truncated);
    EXPECT_EQ(Pixels(partial.pixels), Pixels(Decode(jpeg)));
  }
}

TEST(JpegTest, FirstRowOfBlocksIsTheLeastOfATruncatedPicture) {
  const std::string jpeg = MakeJpeg(64, 32, {.restart_interval = 8});  // a row
  const size_t first = jpeg.find("\xff\xd0", jpeg.find("\xff\xda"));
  EXPECT_THAT(PartialError(jpeg.substr(0, first - 1)), IsError(ErrorCode::kTruncated));
  const Partial partial = DecodePartial(jpeg.substr(0, first));
  EXPECT_TRUE(partial.truncated);
  EXPECT_EQ(Rows(partial.pixels, 0, 8), Rows(Decode(jpeg), 0, 8));
  // The first block behind the data is made of no bits, the rest of nothing.
  EXPECT_THAT(Cut(partial.pixels, {8, 8, 56, 24}), ::testing::Each(128));
}

// A file that was cut off has no end marker. Data that end in front of theirs are damaged.
TEST(JpegTest, WhatEndsEarlyBeforeItsEndMarkerIsNotAccepted) {
  const std::string jpeg = MakeJpeg(64, 64);
  const std::string cut = jpeg.substr(0, MiddleOfData(jpeg));
  EXPECT_TRUE(DecodePartial(cut).truncated);
  EXPECT_THAT(PartialError(cut + "\xff\xd9"), IsError(ErrorCode::kTruncated));
}

TEST(JpegTest, CutBetweenScansOrInASegmentThereGivesTheScansBefore) {
  const std::string jpeg = MakeJpeg(64, 64, {.progressive = true});
  const size_t second = jpeg.find("\xff\xda", jpeg.find("\xff\xda") + 1);
  const size_t tables = jpeg.find("\xff\xc4", jpeg.find("\xff\xda"));
  ASSERT_LT(tables, second);
  const std::vector<uint8_t> coarse = Pixels(DecodePartial(jpeg.substr(0, tables)).pixels);
  EXPECT_NE(coarse, Pixels(Decode(jpeg)));
  for (size_t at = tables; at <= second + 9; ++at) {
    const Partial partial = DecodePartial(jpeg.substr(0, at));
    ASSERT_TRUE(partial.truncated);
    ASSERT_EQ(Pixels(partial.pixels), coarse) << at - tables << " bytes into the segments";
  }
}

TEST(JpegTest, HeaderMustBeThereWhateverIsAccepted) {
  const std::string jpeg = MakeJpeg(16, 16);
  for (size_t size = 2; size < jpeg.find("\xff\xda") + 14; ++size) {
    ASSERT_THAT(PartialError(jpeg.substr(0, size)), IsError(ErrorCode::kTruncated)) << size;
  }
}

TEST(JpegTest, CorruptDataStayAnErrorWhereTruncatedOnesAreAccepted) {
  const std::string jpeg = MakeJpeg(64, 64);
  std::string marker = jpeg;
  marker.replace(MiddleOfData(jpeg), 2, "\xff\xc4");
  std::string code = jpeg;
  std::string ones;
  for (int i = 0; i < 8; ++i) ones += "\xff\0"s;
  code.replace(MiddleOfData(jpeg), ones.size(), ones);
  for (const std::string& corrupt : {marker, code, code.substr(0, code.size() - 20)}) {
    EXPECT_THAT(PartialError(corrupt), IsError(ErrorCode::kCorrupt));
  }
}

TEST(JpegTest, ArithmeticCodingIsNotAcceptedTruncatedAsItsDataNeverEnd) {
  const std::string jpeg = MakeJpeg(64, 64, {.arithmetic = true});
  EXPECT_THAT(PartialError(jpeg.substr(0, jpeg.size() - 2)), IsError(ErrorCode::kTruncated));
}

TEST(JpegTest, CutsOfPhotosGiveTheSamePixelsByBoxes) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  std::mt19937 random(4);
  int cuts = 0;
  for (const auto& entry : fs::recursive_directory_iterator(TestData() / "photos")) {
    if (!entry.is_regular_file()) continue;
    const std::string jpeg = ReadFile(entry.path());
    const std::string cut = jpeg.substr(0, jpeg.size() / 4 + random() % (jpeg.size() * 3 / 4));
    if (PartialError(cut)) continue;  // in a large header
    const Partial whole = DecodePartial(cut);
    for (int i = 0; i < 2; ++i) {
      const PixelBox box = RandomBox(static_cast<int>(whole.pixels.shape()[1]),
                                     static_cast<int>(whole.pixels.shape()[0]), random);
      const Partial part = DecodePartial(cut, kRgb, box);
      ASSERT_TRUE(part.truncated) << entry.path();
      ASSERT_EQ(Pixels(part.pixels), Cut(whole.pixels, box)) << entry.path() << " " << cut.size();
    }
    ++cuts;
  }
  EXPECT_GT(cuts, 100);
}

// ---- Scans ----

// The file with its last scan `times` more, all of them the same and each of them sound.
std::string RepeatLastScan(const std::string& jpeg, int times) {
  const size_t scan = jpeg.rfind("\xff\xda");
  const std::string data = jpeg.substr(scan, jpeg.size() - 2 - scan);
  std::string repeated = jpeg.substr(0, jpeg.size() - 2);
  for (int i = 0; i < times; ++i) repeated += data;
  return repeated + "\xff\xd9";
}

const JpegOptions kTwoScans{.color = Color::kGray, .one_bit_plane = true};

TEST(JpegTest, ScansUpToTheCapPassAndOneMoreDoesNot) {
  const std::string jpeg = MakeJpeg(64, 64, kTwoScans);
  EXPECT_EQ(Pixels(Decode(RepeatLastScan(jpeg, 98))), Pixels(Decode(jpeg)));
  EXPECT_THAT(DecodeError(RepeatLastScan(jpeg, 99)), IsError(ErrorCode::kLimitExceeded));
  EXPECT_EQ(DecodeError(jpeg, {.max_scans = 2}), std::nullopt);
  EXPECT_THAT(DecodeError(jpeg, {.max_scans = 1}), IsError(ErrorCode::kLimitExceeded));
}

TEST(JpegTest, ScanBombStopsAtTheCapAndNotAtItsEnd) {
  std::string bomb = RepeatLastScan(MakeJpeg(64, 64, kTwoScans), 5'000);
  bomb.insert(bomb.size() - 2, "\xff\xda\0\2"s);  // would be kCorrupt, if it were reached
  BufferPool pool;
  try {
    DecodeImage(Bytes(bomb), DecodeOptions{}, pool);
    ADD_FAILURE() << "decoded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("max_scans (100)"));
  }
  EXPECT_EQ(pool.peak_bytes_in_use(), 0);
}

}  // namespace
}  // namespace echopipe::internal
