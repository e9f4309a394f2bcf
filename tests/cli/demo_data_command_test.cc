#include <filesystem>

#include <gmock/gmock.h>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DemoDataCommandTest, MakesTheImagesAskedForAndTellsWhere) {
  const TempFolder folder;
  const std::string photos = folder.Path("photos");
  const ProgramRun run = RunProgram({"demo-data", photos, "--images", "3", "--seed", "9"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, photos + ": 3 images\n");
  EXPECT_TRUE(std::filesystem::exists(photos + "/class_00/image_000000.jpg"));
}

TEST(DemoDataCommandTest, AFolderMadeWithTheSameFlagsIsKeptAndOneWithOthersRefusedOnOneLine) {
  const TempFolder folder;
  const std::string photos = folder.Path("photos");
  ASSERT_EQ(RunProgram({"demo-data", photos, "--images", "3"}).exit_code, 0);
  EXPECT_EQ(RunProgram({"demo-data", photos, "--images", "3"}).exit_code, 0);
  const ProgramRun other = RunProgram({"demo-data", photos, "--images", "4"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("demo data of other options"), HasSubstr("images 3;"),
                               HasSubstr("images 4;"), Not(HasSubstr("\\n"))));
}

TEST(DemoDataCommandTest, OutOfRangeIsAUsageErrorAndAFileInTheWayAFailure) {
  const TempFolder folder;
  EXPECT_EQ(RunProgram({"demo-data", folder.Path("a"), "--images", "0"}).exit_code, 2);
  for (const char* images : {"0", "1000001", "-1", "many", "1e3", "010x"}) {
    EXPECT_THAT(RunProgram({"demo-data", folder.Path("a"), "--images", images}).err,
                HasSubstr("--images: not a whole number in range"))
        << images;
  }
  EXPECT_THAT(RunProgram({"demo-data", folder.Path("a"), "--seed", "18446744073709551616"}).err,
              HasSubstr("--seed: not a whole number in range"));
  EXPECT_EQ(RunProgram({"demo-data"}).exit_code, 2);
  const ProgramRun run = RunProgram({"demo-data", folder.Write("file", "x") + "/photos"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("file/photos"));
}

}  // namespace
}  // namespace echopipe::testing
