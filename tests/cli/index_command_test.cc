#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/tar_builder.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr const char* kEnding = ".echopipe-index";

std::string Tar(int first, int samples) {
  TarBuilder tar;
  for (int i = first; i < first + samples; ++i) {
    tar.AddFile(std::to_string(i) + ".jpg", "image").AddFile(std::to_string(i) + ".cls", "1");
  }
  return tar.AddEnd().bytes();
}

std::string TfRecord(int first, int samples) {
  TfRecordBuilder records;
  for (int i = first; i < first + samples; ++i) {
    records.AddRecord(MakeExample("k" + std::to_string(i), "image", 1));
  }
  return records.bytes();
}

class IndexCommandTest : public ::testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(IndexCommandTest, MakesTheIndexesThatAFullShuffleNeeds) {
  folder_.Write("s0.tar", Tar(0, 5));
  folder_.Write("s1.tar", Tar(5, 3));
  folder_.Write("r-00000-of-00001", TfRecord(0, 4));
  const ProgramRun before = RunProgram(
      {"run", "--source", folder_.Path("s{0,1}.tar"), "--shuffle", "full", "--batch", "2", "-q"});
  EXPECT_EQ(before.exit_code, 3);
  EXPECT_THAT(before.err, HasSubstr("echopipe index '" + folder_.Path("s{0,1}.tar") + "'"));

  const ProgramRun tars = RunProgram({"index", folder_.Path("s*.tar"), "-q"});
  EXPECT_EQ(tars.exit_code, 0) << tars.err;
  EXPECT_EQ(tars.out, "2 of 2 shards indexed, 8 samples, 18.4 kB\n");
  EXPECT_THAT(tars.err, IsEmpty());
  const ProgramRun records =
      RunProgram({"index", "--format", "tfrecord", "--source", folder_.Path("r-*-of-00001"), "-q"});
  EXPECT_EQ(records.exit_code, 0) << records.err;
  EXPECT_THAT(records.out, HasSubstr("1 of 1 shards indexed, 4 samples"));
  EXPECT_TRUE(fs::exists(folder_.Path("s0.tar") + kEnding));
  EXPECT_TRUE(fs::exists(folder_.Path("r-00000-of-00001") + kEnding));
  EXPECT_FALSE(fs::exists(folder_.Path("s0.tar") + kEnding + ".tmp"));

  const ProgramRun after = RunProgram(
      {"run", "--source", folder_.Path("s{0,1}.tar"), "--shuffle", "full", "--batch", "2", "-q"});
  EXPECT_EQ(after.exit_code, 0) << after.err;
}

TEST_F(IndexCommandTest, IndexesTheShardsOfASpecInAllOfItsSources) {
  folder_.Write("a.tar", Tar(0, 5));
  folder_.Write("b.tfrecord", TfRecord(0, 5));
  const std::string spec =
      folder_.Write("spec.txt", "source { uri: '" + folder_.Path("a.tar") +
                                    "' shuffle { full {} } } source { uri: '" +
                                    folder_.Path("b.tfrecord") + "' } source { uri: '" +
                                    folder_.path().string() + "' } stage { batch { size: 1 } }");
  const ProgramRun run = RunProgram({"index", "--spec", spec, "-q"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 of 2 shards indexed, 10 samples"));
}

TEST_F(IndexCommandTest, WhatFitsIsPassedOverAndWhatDoesNotIsMadeAnew) {
  folder_.Write("s0.tar", Tar(0, 5));
  folder_.Write("s1.tar", Tar(5, 3));
  folder_.Write("s2.tar", Tar(5, 3));
  RunProgram({"index", folder_.Path("s{0,1,2}.tar"), "-q"});
  const std::string index = ReadFile(folder_.Path("s0.tar") + kEnding);
  folder_.Write("s1.tar", Tar(5, 4));
  folder_.Write(std::string("s2.tar") + kEnding, index.substr(0, 30));
  // As the shell expands "s*".
  const ProgramRun run = RunProgram({"index", "-q", folder_.Path("s0.tar"),
                                     folder_.Path("s0.tar") + kEnding, folder_.Path("s1.tar"),
                                     folder_.Path("s1.tar") + kEnding, folder_.Path("s2.tar")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "2 of 3 shards indexed, 7 samples, 16.4 kB; 1 had an index that fits\n");
  EXPECT_EQ(ReadFile(folder_.Path("s0.tar") + kEnding), index);
}

TEST_F(IndexCommandTest, WhatFailsIsNamedAndTheOthersAreIndexed) {
  folder_.Write("s0.tar", Tar(0, 5));
  folder_.Write("s2.tar", Tar(5, 3));
  folder_.Write(std::string("s2.tar") + kEnding, "someone's own file");
  const ProgramRun run =
      RunProgram({"index", folder_.Path("s{0,1,2}.tar"), "-q", "--threads", "2"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("s1.tar"), HasSubstr("s2.tar.echopipe-index"),
                             HasSubstr("left alone"), Not(HasSubstr("s0.tar"))));
  EXPECT_EQ(run.out, "1 of 3 shards indexed, 5 samples, 11.3 kB; 2 failed\n");
  EXPECT_EQ(ReadFile(folder_.Path("s2.tar") + kEnding), "someone's own file");
}

TEST_F(IndexCommandTest, ShardsOfServersAreRefusedWithWhatToDo) {
  for (const char* uri : {"http://host/s.tar", "https://host/s-{0..3}.tar"}) {
    const ProgramRun run = RunProgram({"index", uri, "-q"});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr("//host/s"), HasSubstr("before they are uploaded")));
  }
}

TEST_F(IndexCommandTest, WhatHasNoSamplesToListIsAWrongArgument) {
  folder_.Write("c/a.jpg", "image");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"index"},
                                             {"index", folder_.path().string()},
                                             {"index", "x.csv"},
                                             {"index", "--format", "nonsense", "x"},
                                             {"index", "--shuffle", "full", "x.tar"},
                                             {"index", "--spec", folder_.Path("nowhere")}}) {
    EXPECT_EQ(RunProgram(arguments).exit_code, 2) << arguments.back();
  }
  EXPECT_EQ(RunProgram({"index", folder_.Path("*.tar")}).exit_code, 3);
}

TEST_F(IndexCommandTest, AnImageFolderIsNotDisturbedByIndexes) {
  folder_.Write("c/a.jpg", "image");
  folder_.Write(std::string("c/s.tar") + kEnding, "index");
  const ProgramRun run = RunProgram(
      {"run", "--source", folder_.path(), "--shuffle", "full", "--batch", "1", "--json", "-q"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["records"], 1) << run.out;
}

}  // namespace
}  // namespace echopipe::testing
