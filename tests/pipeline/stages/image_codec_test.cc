#include <array>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {
namespace {

using namespace std::string_literals;
using echopipe::testing::JpegOptions;
using echopipe::testing::MakeExif;
using echopipe::testing::MakeJpeg;
using echopipe::testing::MakePicture;
using echopipe::testing::MakePng;
using echopipe::testing::Picture;
using echopipe::testing::PngChunk;
using ::testing::HasSubstr;

std::string DecodeMessage(std::string_view bytes) {
  try {
    Decode(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ImageCodecTest, NoBytesAreTheErrorEmpty) {
  EXPECT_THAT(DecodeError(""), IsError(ErrorCode::kEmpty));
}

TEST(ImageCodecTest, TextIsUnsupportedAndShownWithoutItsControlBytes) {
  EXPECT_THAT(DecodeError("<html>"), IsError(ErrorCode::kUnsupported));
  const std::string message = DecodeMessage("<h1>\"\x1b[31m\n\xc3\xa4 and so much more text");
  EXPECT_THAT(message, HasSubstr("text?"));
  EXPECT_THAT(message, HasSubstr(R"("<h1>\x22\x1b[31m\x0a\xc3\xa4 an")"));
}

TEST(ImageCodecTest, OtherFormatsAreNamed) {
  const std::array<std::pair<std::string, std::string>, 8> cases{{
      {"GIF89a......", "GIF is not read"},
      {"RIFF\0\1\0\0WAVEfmt "s, "not an image"},
      {"II*\0...."s, "TIFF is not read"},
      {"MM\0*...."s, "TIFF is not read"},
      {"\0\0\0\x18"
       "ftypheic"s,
       "HEIC is not read"},
      {"\0\0\0\x18"
       "ftypavif"s,
       "AVIF is not read"},
      {"\xff\x0a......", "JPEG XL is not read"},
      {"\0\0\0\x0cjP  \r\n"s, "JPEG 2000 is not read"},
  }};
  for (const auto& [bytes, message] : cases) {
    EXPECT_THAT(DecodeError(bytes), IsError(ErrorCode::kUnsupported));
    EXPECT_THAT(DecodeMessage(bytes), HasSubstr(message));
  }
}

TEST(ImageCodecTest, HeaderTellsFormatSizesAndChannels) {
  const ImageInfo jpeg =
      ReadImageInfo(Bytes(MakeJpeg(30, 20, {.exif = MakeExif(6)})), DecodeOptions{});
  EXPECT_EQ(jpeg.format, ImageInfo::Format::kJpeg);
  EXPECT_EQ(jpeg.stored_width, 30);
  EXPECT_EQ(jpeg.stored_height, 20);
  EXPECT_EQ(jpeg.width, 20);
  EXPECT_EQ(jpeg.height, 30);
  EXPECT_EQ(jpeg.channels, 3);
  EXPECT_EQ(jpeg.orientation, 6);

  const ImageInfo png =
      ReadImageInfo(Bytes(MakePng(MakePicture(5, 9, 4), {.color_type = 6})), DecodeOptions{});
  EXPECT_EQ(png.format, ImageInfo::Format::kPng);
  EXPECT_EQ(png.width, 5);
  EXPECT_EQ(png.height, 9);
  EXPECT_EQ(png.channels, 4);
}

TEST(ImageCodecTest, OrientationIsNotAppliedIfNotAskedFor) {
  const std::string jpeg = MakeJpeg(30, 20, {.exif = MakeExif(6)});
  const DecodeOptions as_stored{.apply_orientation = false};
  EXPECT_EQ(ReadImageInfo(Bytes(jpeg), as_stored).width, 30);
  EXPECT_EQ(Pixels(Decode(jpeg, as_stored)), Pixels(Decode(MakeJpeg(30, 20))));
}

// Where the upright pixel (x, y) is stored, from the words of the EXIF standard: which edges of
// the stored picture the upright picture's first row and first column are.
std::pair<int, int> StoredPlace(int orientation, int x, int y, int width, int height) {
  const int right = width - 1;
  const int bottom = height - 1;
  switch (orientation) {
    case 2:  // row 0 is the top, column 0 the right side
      return {right - x, y};
    case 3:  // bottom, right
      return {right - x, bottom - y};
    case 4:  // bottom, left
      return {x, bottom - y};
    case 5:  // the stored row 0 is the left side, column 0 the top
      return {y, x};
    case 6:  // the stored row 0 is the right side, column 0 the top
      return {y, bottom - x};
    case 7:  // right side, bottom
      return {right - y, bottom - x};
    case 8:  // left side, bottom
      return {right - y, x};
    default:
      return {x, y};
  }
}

class Orientations : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Orientations, ::testing::Range(1, 9));

TEST_P(Orientations, PngPixelsGoWhereTheStandardSays) {
  const Picture stored = MakePicture(7, 4, 3);
  const std::string png =
      MakePng(stored, {.chunks_before_pixels = PngChunk("eXIf", MakeExif(GetParam()))});
  const Tensor upright = Decode(png);
  const bool swapped = GetParam() >= 5;
  ASSERT_EQ(upright.shape(), (swapped ? Shape{7, 4, 3} : Shape{4, 7, 3}));
  const int width = swapped ? 4 : 7;
  for (int y = 0; y < (swapped ? 7 : 4); ++y) {
    for (int x = 0; x < width; ++x) {
      const auto [stored_x, stored_y] = StoredPlace(GetParam(), x, y, 7, 4);
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(upright.bytes()[static_cast<size_t>((y * width + x) * 3 + c)],
                  stored.at(stored_x, stored_y, c));
      }
    }
  }
}

TEST_P(Orientations, JpegBoxesAreCutFromTheUprightPicture) {
  const std::string jpeg =
      MakeJpeg(61, 43, {.h_sampling = 2, .v_sampling = 2, .exif = MakeExif(GetParam(), false)});
  for (const DecodeOptions& options : {kRgb, kGray}) {
    const Tensor whole = Decode(jpeg, options);
    const int height = static_cast<int>(whole.shape()[0]);
    const int width = static_cast<int>(whole.shape()[1]);
    for (int x = 0; x + 5 < width; x += 7) {
      for (int y = 0; y + 4 < height; y += 9) {
        const PixelBox box{x, y, (width - x + 2) / 2, (height - y + 1) / 2};
        ASSERT_EQ(Pixels(Decode(jpeg, options, box)), Cut(whole, box)) << x << ", " << y;
      }
    }
  }
}

TEST(ImageCodecTest, BoxOutsideThePictureIsInvalid) {
  const std::string png = MakePng(MakePicture(6, 4, 3));
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const PixelBox& box :
       {PixelBox{0, 0, 0, 4}, PixelBox{0, 0, 6, 0}, PixelBox{-1, 0, 2, 2}, PixelBox{0, -1, 2, 2},
        PixelBox{0, 0, 7, 4}, PixelBox{0, 0, 6, 5}, PixelBox{5, 0, 2, 1}, PixelBox{0, 3, 1, 2},
        PixelBox{kMost, 0, 1, 1}, PixelBox{0, kMost, 1, kMost}, PixelBox{1, 0, kMost, 1}}) {
    EXPECT_THAT(DecodeError(png, kRgb, box), IsError(ErrorCode::kInvalidArgument));
  }
  EXPECT_EQ(DecodeError(png, kRgb, PixelBox{5, 3, 1, 1}), std::nullopt);
}

TEST(ImageCodecTest, BytesAndPixelsUpToTheCapsPassAndOneMoreDoesNot) {
  for (const std::string& image : {MakeJpeg(40, 30), MakePng(MakePicture(40, 30, 3))}) {
    EXPECT_EQ(DecodeError(image, {.max_pixels = 1200}), std::nullopt);
    EXPECT_THAT(DecodeError(image, {.max_pixels = 1199}), IsError(ErrorCode::kLimitExceeded));
    EXPECT_EQ(DecodeError(image, {.max_bytes = image.size()}), std::nullopt);
    EXPECT_THAT(DecodeError(image, {.max_bytes = image.size() - 1}),
                IsError(ErrorCode::kLimitExceeded));
  }
}

TEST(ImageCodecTest, HugeHeaderIsRefusedWithoutAllocation) {
  std::string jpeg = MakeJpeg(40, 30);
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\x4e\x20\x4e\x20");  // 20,000 x 20,000
  std::string png = MakePng(MakePicture(40, 30, 3));
  png.replace(16, 8, "\0\0\x4e\x20\0\0\x4e\x20"s);
  for (const std::string& image : {jpeg, png}) {
    BufferPool pool;
    try {
      DecodeImage(Bytes(image), DecodeOptions{}, pool);
      ADD_FAILURE() << "decoded";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
      EXPECT_THAT(error.what(), HasSubstr("20000 x 20000"));
    }
    EXPECT_EQ(pool.peak_bytes_in_use(), 0);
  }
}

TEST(ImageCodecTest, TheResultIsTheOnlyAllocationFromThePoolForWholeRgb) {
  for (const std::string& image :
       {MakeJpeg(64, 64, {.h_sampling = 2, .v_sampling = 2}), MakePng(MakePicture(64, 64, 3)),
        MakePng(MakePicture(64, 64, 3), {.interlaced = true})}) {
    BufferPool pool;
    const Tensor pixels = DecodeImage(Bytes(image), DecodeOptions{}, pool);
    EXPECT_EQ(pool.peak_bytes_in_use(), 64 * 64 * 3);
  }
}

std::vector<std::pair<std::string, std::string>> SmallImages() {
  const std::string exif = MakeExif(6);
  return {
      {"baseline", MakeJpeg(32, 24, {.h_sampling = 2, .v_sampling = 2, .exif = exif})},
      {"restarts", MakeJpeg(32, 24, {.h_sampling = 2, .restart_interval = 1})},
      {"progressive", MakeJpeg(32, 24, {.progressive = true})},
      {"arithmetic", MakeJpeg(32, 24, {.arithmetic = true})},
      {"gray", MakeJpeg(32, 24, {.color = JpegOptions::Color::kGray})},
      {"inks", MakeJpeg(32, 24, {.color = JpegOptions::Color::kYcck})},
      {"png", MakePng(MakePicture(32, 24, 3))},
      {"interlaced png", MakePng(MakePicture(32, 24, 4), {.color_type = 6, .interlaced = true})},
      {"palette png", MakePng(32, 24, MakePicture(32, 24, 1).pixels,
                              {.color_type = 3,
                               .palette = std::vector<uint8_t>(256 * 3, 7),
                               .transparent = {0, 1},
                               .chunks_before_pixels = PngChunk("eXIf", exif)})},
  };
}

TEST(ImageCodecTest, EveryTruncationIsATypedError) {
  for (const auto& [name, image] : SmallImages()) {
    for (size_t size = 1; size < image.size(); ++size) {
      ASSERT_THAT(DecodeError(image.substr(0, size)), IsError(ErrorCode::kTruncated))
          << name << ", " << size << " of " << image.size();
    }
  }
}

TEST(ImageCodecTest, TruncationIsNoticedWhateverTheBox) {
  for (const auto& [name, image] : SmallImages()) {
    for (size_t part = 1; part < 64; ++part) {
      const std::string beginning = image.substr(0, image.size() * part / 64);
      ASSERT_THAT(DecodeError(beginning, kRgb, PixelBox{0, 0, 1, 1}),
                  IsError(ErrorCode::kTruncated))
          << name << ", " << part << " / 64";
    }
  }
}

TEST(ImageCodecTest, BytesAfterTheEndDoNoHarm) {
  for (const auto& [name, image] : SmallImages()) {
    for (const std::string& rest : {"\0\0\0\0\0"s, "\xff\xd8\xff\xe0"s, std::string(5000, 'x')}) {
      EXPECT_EQ(Pixels(Decode(image + rest)), Pixels(Decode(image))) << name;
    }
  }
}

// Pixels, or nothing if the data is bad; any other error fails the test.
std::optional<Tensor> DecodeHostile(std::string_view image, const DecodeOptions& options,
                                    BufferPool& pool) {
  try {
    return DecodeImage(Bytes(image), options, pool);
  } catch (const Error& error) {
    EXPECT_THAT(error.code(), ::testing::AnyOf(ErrorCode::kTruncated, ErrorCode::kCorrupt,
                                               ErrorCode::kUnsupported, ErrorCode::kLimitExceeded))
        << error.what();
    return std::nullopt;
  }
}

// Changes, removes or repeats a few bytes.
std::string Mutate(std::string image, std::mt19937& random) {
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes; ++i) {
    const size_t place = random() % image.size();
    switch (random() % 4) {
      case 0:
        image[place] = static_cast<char>(random());
        break;
      case 1:
        image[place] = static_cast<char>(image[place] ^ (1 << random() % 8));
        break;
      case 2:
        if (image.size() > 1) image.erase(place, 1);
        break;
      default:
        image.insert(place, image.substr(place, 1 + random() % 4));
    }
  }
  return image;
}

PixelBox SomeBox(const Shape& picture, std::mt19937& random) {
  const int height = static_cast<int>(picture[0]);
  const int width = static_cast<int>(picture[1]);
  const int x = static_cast<int>(random() % static_cast<unsigned>(width));
  const int y = static_cast<int>(random() % static_cast<unsigned>(height));
  return {x, y, (width - x + 1) / 2, (height - y + 1) / 2};
}

// Makes the chunks' checksums right again, so that what lies behind them is reached.
std::string WithPngChecksums(const std::string& png) {
  std::string repaired = png.substr(0, 8);
  size_t at = 8;
  while (png.size() >= at + 12) {
    const size_t length = BigEndian32(Bytes(png).data() + at);
    if (length > png.size() - at - 12) break;
    repaired += PngChunk(png.substr(at + 4, 4), png.substr(at + 8, length));
    at += 12 + length;
  }
  return repaired + png.substr(std::min(at, png.size()));
}

TEST(ImageCodecTest, MutatedImagesGiveTheSamePixelsForABoxOrATypedErrorAndSilence) {
  std::mt19937 random(7);
  BufferPool pool;
  const auto images = SmallImages();
  int decoded = 0;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20'000; ++i) {
    const auto& [name, image] = images[static_cast<size_t>(i) % images.size()];
    std::string mutated = Mutate(image, random);
    if (name.ends_with("png") && i % 2 == 0) mutated = WithPngChecksums(mutated);
    const DecodeOptions options{.color = i % 4 < 2 ? kRgb.color : kGray.color,
                                .max_pixels = 1 << 16};
    const std::optional<Tensor> pixels = DecodeHostile(mutated, options, pool);
    if (!pixels.has_value()) continue;
    ++decoded;
    const PixelBox box = SomeBox(pixels->shape(), random);
    EXPECT_EQ(Pixels(DecodeImage(Bytes(mutated), options, pool, box)), Cut(*pixels, box)) << name;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(pool.bytes_in_use(), 0);
  EXPECT_LE(pool.peak_bytes_in_use(), size_t{16} << 16);  // two pictures, strips, and rounding
  // Both outcomes are common, or the mutations are too tame or too wild.
  EXPECT_GT(decoded, 2'000);
  EXPECT_LT(decoded, 18'000);
}

TEST(ImageCodecTest, WhereTruncatedImagesAreAcceptedMutatedAndCutOnesGiveTheSamePixelsForABox) {
  std::mt19937 random(9);
  BufferPool pool;
  const auto images = SmallImages();
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto& [name, image] = images[static_cast<size_t>(i) % images.size()];
    std::string mutated = i % 4 == 0 ? image : Mutate(image, random);
    mutated.resize(mutated.size() - random() % (mutated.size() / 2));
    if (i % 3 == 0) mutated += "\xff\xd9";
    const DecodeOptions options{.max_pixels = 1 << 16, .accept_truncated = true};
    const std::optional<Tensor> pixels = DecodeHostile(mutated, options, pool);
    if (!pixels.has_value()) continue;
    ++accepted;
    const PixelBox box = SomeBox(pixels->shape(), random);
    EXPECT_EQ(Pixels(DecodeImage(Bytes(mutated), options, pool, box)), Cut(*pixels, box)) << name;
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(ImageCodecTest, MutatedExifNeverMakesAnImageBad) {
  std::mt19937 random(8);
  const std::string exif = MakeExif(6);
  for (int i = 0; i < 2'000; ++i) {
    const std::string mutated = Mutate(exif, random);
    EXPECT_EQ(DecodeError(MakeJpeg(8, 4, {.exif = mutated})), std::nullopt);
    const int orientation = ExifOrientation(Bytes(mutated));
    EXPECT_GE(orientation, 1);
    EXPECT_LE(orientation, 8);
  }
}

TEST(ImageCodecTest, LumaIsRoundedAndKeepsGray) {
  for (int value = 0; value < 256; ++value) {
    const auto v = static_cast<uint8_t>(value);
    const std::array<uint8_t, 3> rgb{v, v, v};
    uint8_t gray = 0;
    RgbToGray(rgb.data(), 1, &gray);
    EXPECT_EQ(gray, v);
  }
  const std::array<uint8_t, 9> primaries{255, 0, 0, 0, 255, 0, 0, 0, 255};
  std::array<uint8_t, 3> gray{};
  RgbToGray(primaries.data(), 3, gray.data());
  EXPECT_THAT(gray, ::testing::ElementsAre(76, 150, 29));  // 0.299, 0.587, 0.114 of 255
}

}  // namespace
}  // namespace echopipe::internal
