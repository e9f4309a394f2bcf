#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/class_names.h>
#include <echopipe/io/formats/image_folder.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::ErrorOf;
using ::echopipe::testing::FakeStorage;
using ::echopipe::testing::kNoTestData;
using ::echopipe::testing::ReadFile;
using ::echopipe::testing::TempFolder;
using ::echopipe::testing::TestData;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Keys(const FolderListing& listing) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < listing.size(); ++i) keys.push_back(listing.Key(i));
  return keys;
}

std::vector<int64_t> Labels(const FolderListing& listing) {
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < listing.size(); ++i) labels.push_back(listing.Label(i).value_or(-1));
  return labels;
}

class ImageFolderTest : public ::testing::Test {
 protected:
  FolderListing List(const std::vector<std::string>& roots = {"root"},
                     const std::string& classes = "") {
    return ListImageFolders(roots, classes, storage_);
  }
  void Put(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) storage_.Put(path, "x");
  }

  FakeStorage storage_;
  TempFolder folder_;
};

TEST_F(ImageFolderTest, SubfoldersAreClassesSortedBytewise) {
  Put({"root/b/1.jpg", "root/a/2.jpg", "root/B/3.jpg"});
  const FolderListing listing = List();
  EXPECT_THAT(listing.classes(), ElementsAre("B", "a", "b"));
  EXPECT_THAT(Keys(listing), ElementsAre("B/3.jpg", "a/2.jpg", "b/1.jpg"));
  EXPECT_THAT(Labels(listing), ElementsAre(0, 1, 2));
}

TEST_F(ImageFolderTest, NestedFilesBelongToTheirClassSortedByTheirPath) {
  Put({"root/c/z.jpg", "root/c/sub/a.jpg", "root/c/sub/deep/b.jpg", "root/c/sub.jpg"});
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing),
              ElementsAre("c/sub.jpg", "c/sub/a.jpg", "c/sub/deep/b.jpg", "c/z.jpg"));
  EXPECT_THAT(Labels(listing), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(listing.Path(2), "root/c/sub/deep/b.jpg");
}

TEST_F(ImageFolderTest, TheRootMayEndInASlash) {
  Put({"root/c/a.jpg"});
  EXPECT_EQ(List({"root/"}).Path(0), "root/c/a.jpg");
}

TEST_F(ImageFolderTest, HiddenNamesArePassedOverAndCounted) {
  Put({"root/c/a.jpg", "root/c/.a.jpg", "root/.git/b.jpg", "root/c/.d/e.jpg"});
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing), ElementsAre("c/a.jpg"));
  EXPECT_EQ(listing.passed_over(), (PassedOver{.hidden = 3}));
}

TEST_F(ImageFolderTest, ForeignExtensionsArePassedOverAndCounted) {
  Put({"root/c/a.JPG", "root/c/b.Jpeg", "root/c/c.png", "root/c/d.webp", "root/c/e.bmp",
       "root/c/f.tiff", "root/c/readme.txt", "root/c/jpg", "root/c/g.jpg.part"});
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing),
              ElementsAre("c/a.JPG", "c/b.Jpeg", "c/c.png", "c/d.webp", "c/e.bmp", "c/f.tiff"));
  EXPECT_EQ(listing.passed_over(), (PassedOver{.foreign = 3}));
}

TEST_F(ImageFolderTest, FilesBesideTheClassFoldersArePassedOverAndCounted) {
  Put({"root/c/a.jpg", "root/b.jpg", "root/readme.txt"});
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing), ElementsAre("c/a.jpg"));
  EXPECT_EQ(listing.passed_over(), (PassedOver{.in_root = 2}));
}

TEST_F(ImageFolderTest, ARootWithoutSubfoldersGivesRecordsWithoutLabels) {
  Put({"root/b.jpg", "root/a.jpg", "root/.hidden/x.jpg"});
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing), ElementsAre("a.jpg", "b.jpg"));
  EXPECT_THAT(Labels(listing), ElementsAre(-1, -1));
  EXPECT_THAT(listing.classes(), IsEmpty());
}

TEST_F(ImageFolderTest, AClassWithoutRecordsKeepsItsLabel) {
  Put({"root/a/readme.txt", "root/b/1.jpg"});
  const FolderListing listing = List();
  EXPECT_THAT(listing.classes(), ElementsAre("a", "b"));
  EXPECT_THAT(Labels(listing), ElementsAre(1));
}

TEST_F(ImageFolderTest, SeveralRootsShareTheUnionOfTheirClasses) {
  Put({"one/b/1.jpg", "one/c/2.jpg", "two/a/3.jpg", "two/b/4.jpg"});
  const FolderListing listing = List({"two", "one"});
  EXPECT_THAT(listing.classes(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Keys(listing), ElementsAre("a/3.jpg", "b/4.jpg", "b/1.jpg", "c/2.jpg"));
  EXPECT_THAT(Labels(listing), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(listing.Root(1), "two");
  EXPECT_EQ(listing.Root(2), "one");
}

TEST_F(ImageFolderTest, LabelledAndUnlabelledRootsDoNotGoTogether) {
  Put({"one/b/1.jpg", "two/3.jpg"});
  const Error error = ErrorOf([&] { List({"one", "two"}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("two"));
}

TEST_F(ImageFolderTest, AnEmptyListingIsAnErrorThatNamesTheFolder) {
  Put({"root/c/readme.txt"});
  const Error error = ErrorOf([&] { List(); });
  EXPECT_EQ(error.code(), ErrorCode::kEmpty);
  EXPECT_THAT(error.what(), HasSubstr("root"));
}

TEST_F(ImageFolderTest, AMissingFolderIsNotFoundByName) {
  const Error error = ErrorOf([&] { List({"nowhere"}); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("nowhere"));
}

TEST_F(ImageFolderTest, TooDeepFoldersAreRefused) {
  std::string path = "root/c";
  for (int i = 0; i < 70; ++i) path += "/d";
  Put({path + "/a.jpg"});
  EXPECT_EQ(ErrorOf([&] { List(); }).code(), ErrorCode::kLimitExceeded);
}

// ---- classes file

TEST_F(ImageFolderTest, TheClassesFileDecidesTheLabels) {
  Put({"root/a/1.jpg", "root/c/2.jpg"});
  const std::string classes = folder_.Write("classes.txt", "c\nb\r\na");
  const FolderListing listing = List({"root"}, classes);
  EXPECT_THAT(listing.classes(), ElementsAre("c", "b", "a"));
  EXPECT_THAT(Labels(listing), ElementsAre(2, 0));
}

TEST_F(ImageFolderTest, AClassFolderThatIsNotInTheClassesFileIsAnErrorWithItsName) {
  Put({"root/a/1.jpg", "root/odd/2.jpg"});
  const std::string classes = folder_.Write("classes.txt", "a\n");
  const Error error = ErrorOf([&] { List({"root"}, classes); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("odd"));
}

TEST_F(ImageFolderTest, AMissingClassesFileIsWrittenAndGivesTheSameLabelsAgain) {
  Put({"root/b/1.jpg", "root/a/2.jpg"});
  const std::string classes = folder_.Path("classes.txt");
  const FolderListing first = List({"root"}, classes);
  EXPECT_EQ(ReadFile(classes), "a\nb\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  storage_.Put("root/0/3.jpg", "x");
  EXPECT_THAT(ErrorOf([&] { List({"root"}, classes); }).what(), HasSubstr("0"));
  storage_.Remove("root/0/3.jpg");
  EXPECT_EQ(Labels(List({"root"}, classes)), Labels(first));
}

TEST_F(ImageFolderTest, ManyWritersOfOneClassesFileLeaveAWholeOne) {
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i) names.push_back("class-" + std::to_string(i));
  const std::string path = folder_.Path("classes.txt");
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        WriteClassNames(path, names);
        EXPECT_EQ(*ReadClassNames(path), names);
      }
    });
  }
  writers.clear();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(ImageFolderTest, ABrokenClassesFileIsAnErrorThatNamesTheLine) {
  EXPECT_THAT(ErrorOf([&] { ReadClassNames(folder_.Write("a", "x\n\ny\n")); }).what(),
              HasSubstr("line 2"));
  EXPECT_THAT(ErrorOf([&] { ReadClassNames(folder_.Write("b", "x\ny\nx\n")); }).what(),
              HasSubstr("line 3"));
}

TEST_F(ImageFolderTest, ANameWithALineBreakIsNotWritten) {
  EXPECT_EQ(ErrorOf([&] { WriteClassNames(folder_.Path("c"), {"a\nb"}); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "c"));
}

TEST_F(ImageFolderTest, AClassesFileThatCannotBeWrittenIsAnErrorWithItsName) {
  Put({"root/a/1.jpg"});
  const Error error = ErrorOf([&] { List({"root"}, folder_.Path("") + "/none/classes.txt"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("none/classes.txt"));
}

TEST_F(ImageFolderTest, AFailedWriteOfTheClassesFileLeavesNothingBehind) {
  folder_.Write("taken/file", "x");
  EXPECT_EQ(ErrorOf([&] { WriteClassNames(folder_.Path("taken"), {"a"}); }).code(), ErrorCode::kIo);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

// ---- links, on the file system

class LinkedFolderTest : public ::testing::Test {
 protected:
  FolderListing List() { return ListImageFolders({folder_.Path("root")}, "", *storage_); }
  void Link(const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, folder_.Path(name));
  }

  TempFolder folder_;
  std::shared_ptr<Storage> storage_ = MakeLocalStorage(1);
};

TEST_F(LinkedFolderTest, LinksAreFollowed) {
  folder_.Write("elsewhere/a.jpg", "x");
  folder_.Write("root/c/b.jpg", "x");
  Link("../elsewhere", "root/linked");
  Link("../../elsewhere/a.jpg", "root/c/a.jpg");
  EXPECT_THAT(Keys(List()), ElementsAre("c/a.jpg", "c/b.jpg", "linked/a.jpg"));
}

TEST_F(LinkedFolderTest, DanglingLinksArePassedOverAndCounted) {
  folder_.Write("root/c/b.jpg", "x");
  Link("nowhere.jpg", "root/c/a.jpg");
  Link("nowhere", "root/d");
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing), ElementsAre("c/b.jpg"));
  EXPECT_EQ(listing.passed_over(), (PassedOver{.dangling = 2}));
}

TEST_F(LinkedFolderTest, CyclesOfLinksArePassedOverAndCounted) {
  folder_.Write("root/c/b.jpg", "x");
  folder_.Write("root/d/e.jpg", "x");
  Link(".", "root/c/self");
  Link("..", "root/c/up");
  Link("../../..", "root/c/far_up");
  Link("../d", "root/c/other");
  Link("../c", "root/d/back");
  const FolderListing listing = List();
  EXPECT_THAT(Keys(listing),
              UnorderedElementsAre("c/b.jpg", "c/other/e.jpg", "d/e.jpg", "d/back/b.jpg"));
  EXPECT_EQ(listing.passed_over().cycles, 8);
}

TEST(PhotosTest, RealPhotosAreListedByClass) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  const std::shared_ptr<Storage> storage = MakeLocalStorage(1);
  const FolderListing listing = ListImageFolders({(TestData() / "photos").string()}, "", *storage);
  EXPECT_EQ(listing.size(), 500);
  EXPECT_EQ(listing.classes().size(), 500);
  EXPECT_EQ(listing.Label(499), 499);
  EXPECT_EQ(listing.passed_over(), PassedOver{});
}

}  // namespace
}  // namespace echopipe::internal
