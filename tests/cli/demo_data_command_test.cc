#include <filesystem>

#include <gmock/gmock.h>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {
namespace {

using ::testing::HasSubstr;

TEST(DemoDataCommandTest, MakesTheImagesAskedForAndTellsWhere) {
  const TempFolder folder;
  const std::string photos = folder.Path("photos");
  const ProgramRun run = RunProgram({"demo-data", photos, "--images", "3", "--seed", "9"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, photos + ": 3 images\n");
  EXPECT_TRUE(std::filesystem::exists(photos + "/class_00/image_000000.jpg"));
}

TEST(DemoDataCommandTest, OutOfRangeIsAUsageErrorAndAFileInTheWayAFailure) {
  const TempFolder folder;
  EXPECT_EQ(RunProgram({"demo-data", folder.Path("a"), "--images", "0"}).exit_code, 2);
  EXPECT_EQ(RunProgram({"demo-data"}).exit_code, 2);
  const ProgramRun run = RunProgram({"demo-data", folder.Write("file", "x") + "/photos"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("file/photos"));
}

}  // namespace
}  // namespace echopipe::testing
