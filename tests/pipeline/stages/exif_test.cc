#include <string>

#include <gtest/gtest.h>

#include <echopipe/pipeline/stages/image_formats.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {
namespace {

using echopipe::testing::MakeExif;

class ExifOrders : public ::testing::TestWithParam<bool> {
 protected:
  std::string Exif(int orientation) const { return MakeExif(orientation, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(LittleAndBigEndian, ExifOrders, ::testing::Bool());

TEST_P(ExifOrders, OrientationIsFound) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(ExifOrientation(Bytes(Exif(orientation))), orientation);
  }
}

TEST_P(ExifOrders, OrientationOutOfRangeIsIgnored) {
  for (const int orientation : {0, 9, 255, 65535}) {
    EXPECT_EQ(ExifOrientation(Bytes(Exif(orientation))), 1);
  }
}

TEST_P(ExifOrders, EveryBeginningIsIgnoredOrUnderstood) {
  const std::string exif = Exif(6);
  constexpr size_t kEndOfValue = 20;
  for (size_t size = 0; size <= exif.size(); ++size) {
    const std::string beginning = exif.substr(0, size);
    EXPECT_EQ(ExifOrientation(Bytes(beginning)), size < kEndOfValue ? 1 : 6) << size;
  }
}

TEST_P(ExifOrders, WrongMagicTypeOrCountIsIgnored) {
  for (const size_t place :
       {size_t{0}, size_t{2}, size_t{3}, size_t{12}, size_t{13}, size_t{14}, size_t{17}}) {
    std::string exif = Exif(6);
    exif[place] = static_cast<char>(exif[place] ^ 0x40);
    EXPECT_EQ(ExifOrientation(Bytes(exif)), 1) << place;
  }
}

TEST(ExifTest, DirectoryFarOutsideIsIgnored) {
  std::string exif = MakeExif(6, false);
  for (const std::string offset : {"\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x00\x01\x00\x00"}) {
    exif.replace(4, 4, offset);
    EXPECT_EQ(ExifOrientation(Bytes(exif)), 1);
  }
}

TEST(ExifTest, OrientationBehindOtherEntriesIsFound) {
  const std::string one = MakeExif(5, false);
  std::string exif = one.substr(0, 8) + std::string("\0\3", 2);
  for (const char tag : {'\x0e', '\x0f'}) {
    exif += std::string("\x01", 1) + tag + std::string("\0\x02\0\0\0\x01\0\0\0\0", 10);
  }
  exif += one.substr(10);
  EXPECT_EQ(ExifOrientation(Bytes(exif)), 5);
}

TEST(ExifTest, MoreEntriesThanThereAreBytesAreIgnored) {
  std::string exif = MakeExif(6, false);
  exif.replace(8, 2, "\xff\xff");
  exif[11] = 0;  // another tag
  EXPECT_EQ(ExifOrientation(Bytes(exif)), 1);
}

}  // namespace
}  // namespace echopipe::internal
