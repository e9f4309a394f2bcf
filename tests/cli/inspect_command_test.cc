#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/images.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
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

TEST(InspectCommandTest, ShowsNoExampleWhereNoneIsAskedFor) {
  const TempFolder folder;
  WriteFolder(folder);
  const ProgramRun run = RunProgram({"inspect", "--source", folder.path(), "-q", "--first", "0"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, EndsWith("records of each: 1 to 2\n"));
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

// ---- Plans ----

constexpr const char* kPlanned =
    "stage { decode {} } stage { random_resized_crop { height: 10 width: 20 } } "
    "stage { echo { factor: 2.5 shuffle_buffer: 64 spacing: 8 } } "
    "stage { random_flip {} } stage { normalize {} } stage { batch { size: 8 } } "
    "stage { echo { factor: 2 shuffle_buffer: 3 } }";

// Twenty pictures of 100 x 50, and a spec of them.
std::string WritePlanned(const TempFolder& folder, const std::string& stages = kPlanned) {
  for (int i = 0; i < 20; ++i) {
    folder.Write("data/c/" + std::to_string(i) + ".jpg", MakeJpeg(100, 50));
  }
  return folder.Write("spec.txt",
                      "source { uri: '" + folder.Path("data") + "' epochs: 3 } " + stages);
}

json PlanOf(const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {"inspect", "--plan", "--json", "--threads", "2"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProgramRun run = RunProgram(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out);
}

TEST(InspectPlanTest, TellsPartsFromSourceToConsumerAndWhichStagesAreOneStep) {
  const TempFolder folder;
  const json plan = PlanOf({WritePlanned(folder), "--reads-in-flight", "4"});
  EXPECT_EQ(plan["threads"], 2);
  EXPECT_EQ(plan["reads_in_flight"], 4);
  std::vector<std::string> kinds;
  for (const json& part : plan["parts"]) kinds.push_back(part["kind"]);
  EXPECT_THAT(kinds, ::testing::ElementsAre("source", "segment", "echo", "segment", "batch", "echo",
                                            "consumer"));
  EXPECT_EQ(plan["parts"][1]["stages"],
            (json{{{"name", "decode"}, {"fused_with", "random_resized_crop"}},
                  {{"name", "random_resized_crop"}, {"fused_with", nullptr}}}));
  EXPECT_EQ(plan["parts"][3]["stages"], (json{{{"name", "random_flip"}, {"fused_with", nullptr}},
                                              {{"name", "normalize"}, {"fused_with", "batch"}}}));
  const json& echo = plan["parts"][2];
  EXPECT_EQ(echo["position"], "after random_resized_crop");
  EXPECT_EQ(echo["factor"], 2.5);
  EXPECT_EQ(echo["spacing"], 8);
  EXPECT_EQ(plan["parts"][6]["batches_ahead"], 2);
}

TEST(InspectPlanTest, RoomsHaveTheSizesOfTheExamplesThatGoThroughThem) {
  const TempFolder folder;
  const json plan = PlanOf({WritePlanned(folder), "--reads-in-flight", "4"});
  EXPECT_EQ(plan["examples_looked_at"], 16);
  const json& parts = plan["parts"];
  constexpr int kPixels = 10 * 20 * 3;
  // Two threads: eight more than the reads, or than two batches.
  const auto size = static_cast<int64_t>(MakeJpeg(100, 50).size());
  EXPECT_EQ(parts[0]["room"]["window"],
            (json{{"count", 12}, {"of", "example"}, {"bytes", 12 * size}}));
  EXPECT_EQ(parts[2]["room"]["buffer"],
            (json{{"count", 64}, {"of", "example"}, {"bytes", 64 * kPixels}}));
  EXPECT_EQ(parts[2]["room"]["window"],
            (json{{"count", 24}, {"of", "example"}, {"bytes", 24 * kPixels}}));
  EXPECT_EQ(parts[4]["room"]["batches"],
            (json{{"count", 5}, {"of", "batch"}, {"bytes", 5 * 8 * 4 * kPixels}}));
  EXPECT_EQ(parts[5]["room"]["buffer"],
            (json{{"count", 3}, {"of", "batch"}, {"bytes", 3 * 8 * 4 * kPixels}}));
}

// The library's own check, as a run meets it.
TEST(InspectPlanTest, TheLeastMemoryCapIsTheOneThatARunAsksFor) {
  for (const std::string& stages :
       {std::string(kPlanned), std::string("stage { decode {} } stage { batch { size: 4 } }")}) {
    const TempFolder folder;
    const std::string spec = WritePlanned(folder, stages);
    const auto least = PlanOf({spec})["least_memory_cap"].get<uint64_t>();
    const auto run_with = [&](uint64_t cap) {
      return RunProgram({"run", spec, "--threads", "2", "--memory-cap", std::to_string(cap)});
    };
    EXPECT_EQ(run_with(least).exit_code, 0) << run_with(least).err;
    const ProgramRun refused = run_with(least / 4);
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_THAT(refused.err, HasSubstr("wanted about " + std::to_string(least)));
  }
}

TEST(InspectPlanTest, TextTellsTheSame) {
  const TempFolder folder;
  const ProgramRun run = RunProgram({"inspect", "--plan", "--threads", "2", WritePlanned(folder)});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("threads   2 for decoding and augmenting\n"));
  EXPECT_THAT(run.out, HasSubstr("segment   decode + random_resized_crop\n"
                                 "echo      after random_resized_crop: factor 2.50, spacing 8\n"
                                 "  buffer    64 examples, "));
  EXPECT_THAT(run.out, HasSubstr("segment   random_flip, normalize (into its place in the batch)\n"
                                 "batch     8 examples, a remainder is kept\n"));
  EXPECT_THAT(run.out, HasSubstr("consumer  2 batches made ahead\n"
                                 "memory    about "));
}

TEST(InspectPlanTest, DataElsewhereOrMissingHavePlacesWithoutSizes) {
  const TempFolder folder;
  for (const std::string uri : {"https://example.invalid/data/", "nowhere/"}) {
    const std::string spec = folder.Write("spec.txt", "source { uri: '" + uri + "' } " + kPlanned);
    const json plan = PlanOf({spec});
    EXPECT_EQ(plan["examples_looked_at"], 0);
    EXPECT_EQ(plan["parts"][2]["room"]["buffer"]["count"], 64);
    EXPECT_EQ(plan["parts"][2]["room"]["buffer"]["bytes"], nullptr);
    EXPECT_EQ(plan["bytes"], nullptr);
    EXPECT_TRUE(plan["why_no_bytes"].is_string());
    EXPECT_THAT(RunProgram({"inspect", "--plan", spec}).out, HasSubstr("memory    not known: "));
  }
}

TEST(InspectPlanTest, AnAdaptiveEchoAndABufferOfItsDefaultAreTold) {
  const TempFolder folder;
  const std::string spec = WritePlanned(folder,
                                        "stage { decode {} } stage { echo { adaptive { max_factor: "
                                        "5 } } } stage { batch { size: 4 } }");
  const json plan = PlanOf({spec});
  EXPECT_EQ(plan["parts"][2]["adaptive"], true);
  EXPECT_EQ(plan["parts"][2]["shuffle_buffer"], 16);
  EXPECT_THAT(RunProgram({"inspect", "--plan", spec}).out,
              HasSubstr("echo      after decode: adaptive, at most 5, spacing 4\n"));
}

TEST(InspectPlanTest, AnInvalidSpecIsExitCode2AndNamesTheField) {
  const TempFolder folder;
  const ProgramRun run =
      RunProgram({"inspect", "--plan", WritePlanned(folder, "stage { batch { size: 0 } }")});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("batch.size"));
}

TEST(InspectCommandTest, ItsHelpHasNoFlagsOfOrder) {
  const ProgramRun run = RunProgram({"inspect", "--help"});
  EXPECT_THAT(run.out, HasSubstr("--source"));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("--shuffle")));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("--decode")));
}

}  // namespace
}  // namespace echopipe::testing
