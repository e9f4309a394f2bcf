#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {
namespace {

using echopipe::testing::MakeExif;
using echopipe::testing::MakePicture;
using echopipe::testing::Picture;
using ::testing::HasSubstr;

std::string Taken(uint8_t* bytes, size_t size) {
  std::string taken(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return taken;
}

// Of 3 or 4 channels.
std::string MakeLossless(const Picture& picture) {
  const auto encode = picture.channels == 4 ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB;
  uint8_t* bytes = nullptr;
  const size_t size = encode(picture.pixels.data(), picture.width, picture.height,
                             picture.width * picture.channels, &bytes);
  return Taken(bytes, size);
}

std::string MakeLossy(const Picture& picture) {
  const auto encode = picture.channels == 4 ? WebPEncodeRGBA : WebPEncodeRGB;
  uint8_t* bytes = nullptr;
  const size_t size = encode(picture.pixels.data(), picture.width, picture.height,
                             picture.width * picture.channels, 80, &bytes);
  return Taken(bytes, size);
}

std::string LittleEndian(size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string Chunk(const std::string& name, const std::string& payload) {
  return name + LittleEndian(payload.size(), 4) + payload + std::string(payload.size() % 2, '\0');
}

std::string Riff(const std::string& chunks) {
  return "RIFF" + LittleEndian(chunks.size() + 4, 4) + "WEBP" + chunks;
}

// The extended form of a simple file.
std::string Extended(const std::string& simple, int width, int height, char flags,
                     const std::string& more_chunks) {
  const std::string head = std::string(1, flags) + std::string(3, '\0') +
                           LittleEndian(static_cast<size_t>(width - 1), 3) +
                           LittleEndian(static_cast<size_t>(height - 1), 3);
  return Riff(Chunk("VP8X", head) + simple.substr(12) + more_chunks);
}

std::vector<uint8_t> WithoutAlpha(const Picture& picture) {
  std::vector<uint8_t> rgb;
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    if (i % 4 != 3) rgb.push_back(picture.pixels[i]);
  }
  return rgb;
}

TEST(WebpTest, LosslessPixelsAreExact) {
  for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {33, 17}, {130, 70}}) {
    const Picture picture = MakePicture(width, height, 3);
    const Tensor pixels = Decode(MakeLossless(picture));
    ASSERT_EQ(pixels.shape(), (Shape{height, width, 3}));
    EXPECT_EQ(Pixels(pixels), picture.pixels);
  }
}

TEST(WebpTest, LossyPixelsAreWhatLibwebpGives) {
  const std::string webp = MakeLossy(MakePicture(61, 43, 3));
  int width = 0;
  int height = 0;
  uint8_t* rgb = WebPDecodeRGB(Bytes(webp).data(), webp.size(), &width, &height);
  ASSERT_NE(rgb, nullptr);
  const std::vector<uint8_t> wanted(rgb, rgb + 3 * width * height);
  WebPFree(rgb);
  const Tensor pixels = Decode(webp);
  EXPECT_EQ(pixels.shape(), (Shape{43, 61, 3}));
  EXPECT_EQ(Pixels(pixels), wanted);
}

TEST(WebpTest, AlphaIsToldAndDropped) {
  Picture picture = MakePicture(20, 10, 4);
  for (size_t i = 3; i < picture.pixels.size(); i += 4) picture.pixels[i] |= 1;  // colours stay
  const std::string webp = MakeLossless(picture);
  EXPECT_EQ(ReadImageInfo(Bytes(webp), {}).channels, 4);
  EXPECT_EQ(Pixels(Decode(webp)), WithoutAlpha(picture));
}

TEST(WebpTest, HeaderTellsFormatAndSize) {
  const ImageInfo info = ReadImageInfo(Bytes(MakeLossy(MakePicture(30, 20, 3))), {});
  EXPECT_EQ(info.format, ImageInfo::Format::kWebp);
  EXPECT_EQ(info.width, 30);
  EXPECT_EQ(info.height, 20);
  EXPECT_EQ(info.channels, 3);
}

TEST(WebpTest, GrayIsTheLumaAndABoxTheCutFromTheWhole) {
  const Picture picture = MakePicture(33, 17, 3);
  for (const std::string& webp : {MakeLossless(picture), MakeLossy(picture)}) {
    const Tensor rgb = Decode(webp);
    std::vector<uint8_t> luma(33 * 17);
    RgbToGray(rgb.bytes().data(), luma.size(), luma.data());
    EXPECT_EQ(Pixels(Decode(webp, kGray)), luma);
    for (const DecodeOptions& options : {kRgb, kGray}) {
      const Tensor whole = Decode(webp, options);
      for (const PixelBox& box : {PixelBox{0, 0, 1, 1}, PixelBox{32, 16, 1, 1},
                                  PixelBox{5, 3, 20, 11}, PixelBox{0, 7, 33, 2}}) {
        EXPECT_EQ(Pixels(Decode(webp, options, box)), Cut(whole, box));
      }
    }
  }
}

TEST(WebpTest, OrientationIsReadFromItsChunkWithOrWithoutJpegsName) {
  const Picture picture = MakePicture(7, 4, 3);
  for (const std::string& name : {std::string(), std::string("Exif\0\0", 6)}) {
    const std::string webp = Extended(MakeLossless(picture), 7, 4, 8,
                                      Chunk("XMP ", "odd") + Chunk("EXIF", name + MakeExif(6)));
    const ImageInfo info = ReadImageInfo(Bytes(webp), {});
    EXPECT_EQ(info.orientation, 6);
    const Tensor upright = Decode(webp);
    ASSERT_EQ(upright.shape(), (Shape{7, 4, 3}));
    // The first row is the stored picture's left side, from below.
    for (int x = 0; x < 4; ++x) EXPECT_EQ(upright.bytes()[size_t(3 * x)], picture.at(0, 3 - x, 0));
  }
}

TEST(WebpTest, EachBeginningIsTruncated) {
  const Picture picture = MakePicture(33, 17, 3);
  for (const std::string& webp : {MakeLossless(picture), MakeLossy(picture)}) {
    for (size_t size = 4; size < webp.size(); ++size) {
      EXPECT_THAT(DecodeError(webp.substr(0, size)), IsError(ErrorCode::kTruncated)) << size;
    }
    // One whose header knows of it.
    const std::string half = webp.substr(12, webp.size() / 2);
    EXPECT_TRUE(DecodeError(Riff(half + std::string(half.size() % 2, '\0'))));
  }
}

TEST(WebpTest, AChunkBehindThePixelsMayNotBeCutEither) {
  const std::string webp =
      Extended(MakeLossless(MakePicture(7, 4, 3)), 7, 4, 8, Chunk("EXIF", MakeExif(6)));
  EXPECT_EQ(DecodeError(webp), std::nullopt);
  EXPECT_THAT(DecodeError(webp.substr(0, webp.size() - 1)), IsError(ErrorCode::kTruncated));
}

TEST(WebpTest, DamagedDataGivesAnErrorOrPixelsButNeverHarm) {
  const Picture picture = MakePicture(33, 17, 4);
  for (const std::string& webp : {MakeLossless(picture), MakeLossy(picture)}) {
    for (size_t at = 4; at < webp.size(); ++at) {
      std::string damaged = webp;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      (void)DecodeError(damaged);
    }
  }
}

TEST(WebpTest, AnimationsAreRefused) {
  const std::string webp =
      Extended(MakeLossless(MakePicture(7, 4, 3)), 7, 4, 2, Chunk("ANIM", std::string(6, '\0')));
  try {
    Decode(webp);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("animated WebP is not read"));
  }
}

TEST(WebpTest, PixelsAreCapped) {
  const std::string webp = MakeLossless(MakePicture(20, 10, 3));
  EXPECT_THAT(DecodeError(webp, {.max_pixels = 199}), IsError(ErrorCode::kLimitExceeded));
  EXPECT_EQ(DecodeError(webp, {.max_pixels = 200}), std::nullopt);
}

}  // namespace
}  // namespace echopipe::internal
