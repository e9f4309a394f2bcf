#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/images.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Three classes of several kinds of pictures, and one file that is none.
void WriteFolder(const TempFolder& folder) {
  folder.Write("ape/1.jpg", MakeJpeg(30, 20));
  folder.Write("ape/2.jpg", MakeJpeg(MakePicture(50, 40, 1), {.color = JpegOptions::Color::kGray}));
  folder.Write("bee/1.jpg", MakeJpeg(10, 70, {.exif = MakeExif(6)}));  // upright 70 x 10
  folder.Write("cow/1.png", MakePng(MakePicture(31, 20, 4), {.color_type = 6}));
  folder.Write("cow/2.jpg", "no picture");
}

TEST(InspectCommandTest, TellsWhatAFolderHolds) {
  const TempFolder folder;
  WriteFolder(folder);
  const ProgramRun run = RunProgram({"inspect", "--source", folder.path(), "-q"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, StartsWith("records   5, "));
  EXPECT_THAT(run.out, HasSubstr("images    JPEG 3, PNG 1\n"
                                 "          colour 2, four channels 1, grey 1\n"
                                 "width     30 to 70, median 31\n"
                                 "height    10 to 40, median 20\n"
                                 "unknown   1 "));
  EXPECT_THAT(run.out, HasSubstr("labels    3: 0 to 2; records of each: 1 to 2\n"
                                 "first     " +
                                 folder.Path("ape/1.jpg") + ": label 0, JPEG 30 x 20, colour\n"));
  EXPECT_THAT(run.out, HasSubstr(folder.Path("bee/1.jpg") + ": label 1"));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("cow")));
}

TEST(InspectCommandTest, TellsWhatShardsHoldAsJson) {
  const TempFolder folder;
  TarBuilder tar;
  tar.AddFile("a.jpg", MakeJpeg(30, 20)).AddFile("a.cls", "7").AddFile("a.txt", "a caption");
  tar.AddFile("b.txt", "no image").AddFile("b.cls", "7");
  tar.AddFile("c.png", MakePng(MakePicture(5, 9, 3))).AddFile("c.cls", "-2");
  const std::string shard = folder.Write("s.tar", tar.AddEnd().bytes());
  const ProgramRun run = RunProgram({"inspect", "--source", shard, "-q", "--json", "--first", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json held = json::parse(run.out);
  EXPECT_EQ(held["records"], 3);
  EXPECT_EQ(held["complete"], true);
  EXPECT_EQ(held["bad_count"], 1);
  EXPECT_EQ(held["formats"], (json{{"JPEG", 1}, {"PNG", 1}}));
  EXPECT_EQ(held["width"], (json{{"least", 5}, {"median", 5}, {"most", 30}}));
  EXPECT_EQ(held["labels"], (json{{"-2", 1}, {"7", 1}}));
  EXPECT_EQ(held["members"], (json{{"txt", 1}}));
  ASSERT_EQ(held["first"].size(), 1u);
  EXPECT_EQ(held["first"][0]["name"], shard + ": a");
  EXPECT_EQ(held["first"][0]["label"], 7);
  EXPECT_EQ(held["first"][0]["members"], (json{"txt"}));
}

TEST(InspectCommandTest, ItsHelpHasNoFlagsOfOrder) {
  const ProgramRun run = RunProgram({"inspect", "--help"});
  EXPECT_THAT(run.out, HasSubstr("--source"));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("--shuffle")));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("--decode")));
}

}  // namespace
}  // namespace echopipe::testing
