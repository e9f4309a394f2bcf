#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <jpeglib.h>
#include <sys/resource.h>

#include <echopipe/base/error.h>
#include <echopipe/bench/demo_data.h>
#include <echopipe/bench/demo_picture.h>
#include <echopipe/tests/support/files.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;
using ::echopipe::testing::ReadFile;
using ::echopipe::testing::TempFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::SizeIs;

// Small pictures, for tests to which size does not matter.
DemoDataOptions Small(int images) {
  return {.images = images, .classes = 3, .width = 40, .height = 30};
}

// Every file below the folder and its bytes.
std::map<std::string, std::string> Contents(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    contents[fs::relative(entry.path(), folder).string()] = ReadFile(entry.path());
  }
  return contents;
}

std::map<std::string, std::string> Images(const fs::path& folder) {
  std::map<std::string, std::string> images = Contents(folder);
  std::erase_if(images, [](const auto& file) { return !file.first.ends_with(".jpg"); });
  return images;
}

struct JpegSize {
  int width = 0;
  int height = 0;
  long warnings = 0;
};

// Decodes the whole; libjpeg ends the program where it cannot.
JpegSize Decode(const std::string& bytes) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  std::vector<uint8_t> line(info.output_width * static_cast<size_t>(info.output_components));
  uint8_t* row = line.data();
  while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &row, 1);
  jpeg_finish_decompress(&info);
  const JpegSize size{static_cast<int>(info.output_width), static_cast<int>(info.output_height),
                      errors.num_warnings};
  jpeg_destroy_decompress(&info);
  return size;
}

ErrorCode CodeOf(const fs::path& folder, const DemoDataOptions& options) {
  try {
    MakeDemoData(folder, options);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST(DemoDataTest, FilesAreOfPhotosSizesAndDecode) {
  TempFolder folder;
  MakeDemoData(folder.path(), {.images = 50});

  const auto images = Images(folder.path());
  ASSERT_THAT(images, SizeIs(50));
  std::vector<size_t> sizes;
  for (const auto& [name, bytes] : images) {
    sizes.push_back(bytes.size());
    const JpegSize decoded = Decode(bytes);
    EXPECT_EQ(decoded.width, 500) << name;
    EXPECT_EQ(decoded.height, 375) << name;
    EXPECT_EQ(decoded.warnings, 0) << name;
  }
  EXPECT_THAT(sizes, Each(AllOf(Ge(40'000U), Le(110'000U))));
  const auto [smallest, largest] = std::ranges::minmax(sizes);
  EXPECT_GE(largest, smallest * 3 / 2);
}

TEST(DemoDataTest, EachClassHasItsFolderAndItsShareOfTheImages) {
  TempFolder folder;
  MakeDemoData(folder.path(), Small(5));

  std::vector<std::string> names;
  for (const auto& [name, bytes] : Contents(folder.path())) names.push_back(name);
  EXPECT_THAT(names, ElementsAre(".echopipe-demo", "class_00/image_000000.jpg",
                                 "class_00/image_000001.jpg", "class_01/image_000000.jpg",
                                 "class_01/image_000001.jpg", "class_02/image_000000.jpg"));
}

TEST(DemoDataTest, SameOptionsGiveTheSameBytes) {
  TempFolder first;
  TempFolder second;
  MakeDemoData(first.path(), Small(20));
  MakeDemoData(second.path(), Small(20));
  EXPECT_EQ(Contents(first.path()), Contents(second.path()));
}

TEST(DemoDataTest, EveryImageDiffersFromEveryOtherAndFromThoseOfOtherSeeds) {
  TempFolder folder;
  DemoDataOptions options = Small(20);
  MakeDemoData(folder.Path("a"), options);
  options.seed = 2;
  MakeDemoData(folder.Path("b"), options);

  std::vector<std::string> images;
  for (const auto& [name, bytes] : Images(folder.path())) images.push_back(bytes);
  ASSERT_THAT(images, SizeIs(40));
  std::ranges::sort(images);
  EXPECT_EQ(std::ranges::adjacent_find(images), images.end());
}

TEST(DemoDataTest, CompleteFolderIsLeftAsItIs) {
  TempFolder folder;
  DemoDataOptions options = Small(5);
  MakeDemoData(folder.path(), options);
  fs::remove(folder.path() / "class_01/image_000000.jpg");

  options.progress = [](int) { ADD_FAILURE() << "drew again"; };
  MakeDemoData(folder.path(), options);
  EXPECT_THAT(Images(folder.path()), SizeIs(4));
}

TEST(DemoDataTest, InterruptedFolderIsCompletedWithoutDrawingTwice) {
  TempFolder folder;
  DemoDataOptions options = Small(120);
  MakeDemoData(folder.Path("whole"), options);
  options.progress = [](int) { throw std::runtime_error("interrupted"); };
  EXPECT_THROW(MakeDemoData(folder.Path("part"), options), std::runtime_error);
  ASSERT_THAT(Images(folder.Path("part")), SizeIs(AllOf(Ge(1U), Le(119U))));
  folder.Write("part/class_00/image_000000.jpg", "kept");

  options.progress = {};
  MakeDemoData(folder.Path("part"), options);
  std::map<std::string, std::string> expected = Contents(folder.Path("whole"));
  expected["class_00/image_000000.jpg"] = "kept";
  EXPECT_EQ(Contents(folder.Path("part")), expected);
}

TEST(DemoDataTest, ProgressGrowsToTheNumberOfImages) {
  TempFolder folder;
  DemoDataOptions options = Small(120);
  std::vector<int> done;
  options.progress = [&](int images) { done.push_back(images); };
  MakeDemoData(folder.path(), options);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_GT(done.size(), 1U);
  EXPECT_EQ(done.back(), 120);
}

TEST(DemoDataTest, FolderOfOtherOptionsIsRefusedAndKept) {
  TempFolder folder;
  MakeDemoData(folder.path(), Small(5));
  const auto before = Contents(folder.path());
  EXPECT_EQ(CodeOf(folder.path(), Small(6)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Contents(folder.path()), before);
}

TEST(DemoDataTest, FolderWithAnythingElseIsRefusedAndKept) {
  TempFolder folder;
  folder.Write("thesis.tex", "mine");
  EXPECT_EQ(CodeOf(folder.path(), Small(5)), ErrorCode::kInvalidArgument);
  EXPECT_THAT(Contents(folder.path()), SizeIs(1));
}

TEST(DemoDataTest, FileInTheFoldersPlaceIsAnIoError) {
  TempFolder folder;
  folder.Write("file", "");
  EXPECT_EQ(CodeOf(folder.path() / "file", Small(5)), ErrorCode::kIo);
}

// While it lives, files cannot grow beyond so many bytes, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(DemoDataTest, AFileThatCannotBeWrittenIsAnIoErrorAndLeavesNothing) {
  TempFolder folder;
  {
    const FileSizeLimit limit(200);  // enough for the manifest
    EXPECT_EQ(CodeOf(folder.path(), Small(5)), ErrorCode::kIo);
  }
  std::vector<std::string> names;
  for (const auto& [name, bytes] : Contents(folder.path())) names.push_back(name);
  EXPECT_THAT(names, ElementsAre(".echopipe-demo"));
  MakeDemoData(folder.path(), Small(5));
  EXPECT_THAT(Images(folder.path()), SizeIs(5));
}

struct BadOption {
  std::string name;
  DemoDataOptions options;
  friend void PrintTo(const BadOption& bad, std::ostream* out) { *out << bad.name; }
};

class DemoDataOptionsTest : public ::testing::TestWithParam<BadOption> {};

TEST_P(DemoDataOptionsTest, OptionOutOfRangeIsNamedAndNothingIsWritten) {
  TempFolder folder;
  try {
    MakeDemoData(folder.path(), GetParam().options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.details().where, GetParam().name);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(Ranges, DemoDataOptionsTest,
                         ::testing::Values(BadOption{"images", {.images = 0}},
                                           BadOption{"images", {.images = 1'000'001}},
                                           BadOption{"classes", {.images = 1, .classes = 0}},
                                           BadOption{"classes", {.images = 1, .classes = 101}},
                                           BadOption{"width", {.images = 1, .width = 15}},
                                           BadOption{"width", {.images = 1, .width = 8193}},
                                           BadOption{"height", {.images = 1, .height = 15}},
                                           BadOption{"height", {.images = 1, .height = 8193}}));

using Mean = std::array<double, 3>;

Mean MeanColor(int label, uint64_t picture) {
  constexpr int kSide = 64;
  const std::vector<uint8_t> pixels =
      DrawDemoPicture({.label = label, .width = kSide, .height = kSide},
                      RandomStream({.low = static_cast<uint64_t>(label), .high = picture}));
  Mean mean{};
  for (size_t i = 0; i < pixels.size(); ++i) mean[i % 3] += pixels[i];
  for (double& channel : mean) channel /= kSide * kSide;
  return mean;
}

int Nearest(const std::vector<Mean>& centers, const Mean& mean) {
  std::vector<double> distances;
  for (const Mean& center : centers) {
    double distance = 0;
    for (size_t c = 0; c < 3; ++c) distance += (center[c] - mean[c]) * (center[c] - mean[c]);
    distances.push_back(distance);
  }
  return static_cast<int>(std::ranges::min_element(distances) - distances.begin());
}

TEST(DemoPictureTest, ColorAloneTellsMostClassesApart) {
  constexpr int kClasses = 10;
  constexpr int kPictures = 20;
  std::vector<Mean> centers(kClasses);
  for (int label = 0; label < kClasses; ++label) {
    for (uint64_t picture = 0; picture < kPictures; ++picture) {
      const Mean mean = MeanColor(label, picture);
      for (size_t c = 0; c < 3; ++c) centers[static_cast<size_t>(label)][c] += mean[c] / kPictures;
    }
  }
  int right = 0;
  for (int label = 0; label < kClasses; ++label) {
    for (uint64_t picture = kPictures; picture < 2 * kPictures; ++picture) {
      right += Nearest(centers, MeanColor(label, picture)) == label ? 1 : 0;
    }
  }
  EXPECT_GE(right, kClasses * kPictures / 2);  // by chance it would be a tenth
  EXPECT_LT(right, kClasses * kPictures);      // nor is it given away
}

}  // namespace
}  // namespace echopipe
