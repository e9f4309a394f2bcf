#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/images.h>

namespace echopipe::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr int kImages = 40;

// Forty photos, made once.
class RunCommandTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    const ProgramRun run = RunProgram({"demo-data", Photos(), "--images", std::to_string(kImages)});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string Photos() { return folder_->Path("photos"); }

  // `run` over the photos with every kind of randomness, then `flags`.
  static std::vector<std::string> Arguments(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"run",
                                          "--source",
                                          Photos(),
                                          "--shuffle",
                                          "full",
                                          "--decode",
                                          "--echo",
                                          "2.5",
                                          "--random-resized-crop",
                                          "height: 32 width: 32",
                                          "--random-flip",
                                          "--normalize",
                                          "--batch",
                                          "8"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  static json Figures(const std::vector<std::string>& flags,
                      const std::vector<std::string>& launcher = {}) {
    std::vector<std::string> arguments = Arguments(flags);
    arguments.insert(arguments.end(), {"-q", "--json"});
    const ProgramRun run = RunProgram(arguments, launcher);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, IsEmpty());
    return json::parse(run.out);
  }

 private:
  static std::unique_ptr<TempFolder> folder_;
};

std::unique_ptr<TempFolder> RunCommandTest::folder_;

TEST_F(RunCommandTest, JsonHoldsTheFiguresOfTheRun) {
  const json figures = Figures({"--threads", "2"});
  EXPECT_EQ(figures.at("examples"), 100);
  EXPECT_EQ(figures.at("fresh"), kImages);
  EXPECT_EQ(figures.at("echoes"), 60);
  EXPECT_EQ(figures.at("batches"), 13);
  EXPECT_EQ(figures.at("records"), kImages);
  EXPECT_EQ(figures.at("threads"), 2);
  EXPECT_EQ(figures.at("end"), "data");
  EXPECT_GT(figures.at("bytes_read"), 40 * 10'000);
  EXPECT_EQ(figures.at("bad_examples"), json::array());
  EXPECT_FALSE(figures.contains("hash"));
  EXPECT_FALSE(figures.contains("error"));
  for (const char* key : {"seconds", "first_batch_s", "examples_per_s", "fresh_per_s",
                          "stall_share", "peak_bytes_in_flight", "first_step", "checkpoints"}) {
    EXPECT_TRUE(figures.at(key).is_number()) << key;
  }
  EXPECT_TRUE(figures.at("verdict").is_string());
}

TEST_F(RunCommandTest, JsonTellsOfStagesEchoPointsAndWindows) {
  const json figures = Figures({});
  const json& stages = figures.at("stages");
  EXPECT_EQ(stages.front().at("name"), "read");
  EXPECT_EQ(stages.back().at("name"), "consumer");
  for (const json& stage : stages) EXPECT_TRUE(stage.at("seconds_per_item").is_number());

  ASSERT_EQ(figures.at("echo_points").size(), 1u);
  const json& point = figures.at("echo_points")[0];
  EXPECT_EQ(point.at("position"), "after decode");
  EXPECT_EQ(point.at("factor"), 2.5);
  EXPECT_EQ(point.at("factor_effective"), 2.5);
  EXPECT_EQ(point.at("draws"), 100);
  EXPECT_EQ(point.at("admitted"), kImages);
  EXPECT_TRUE(point.at("r").is_number());
  EXPECT_TRUE(point.at("exceptions").is_number());

  ASSERT_FALSE(figures.at("windows").empty());
  for (const json& window : figures.at("windows")) {
    EXPECT_LE(window.at("peak_in_flight"), window.at("window"));
  }
}

TEST_F(RunCommandTest, TheHashIsTheSameHoweverItRuns) {
  const std::string hash = Figures({"--hash", "--threads", "1"}).at("hash");
  EXPECT_THAT(hash, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(Figures({"--hash", "--threads", "2", "--prefetch", "5"}).at("hash"), hash);
  EXPECT_EQ(Figures({"--hash"}, {"taskset", "-c", "0"}).at("hash"), hash);
  EXPECT_EQ(Figures({"--hash", "--latency", "2ms", "--jitter", "2ms"}).at("hash"), hash);
}

TEST_F(RunCommandTest, TheHashDiffersWithAnythingDelivered) {
  const std::string hash = Figures({"--hash"}).at("hash");
  EXPECT_NE(Figures({"--hash", "--seed", "1"}).at("hash"), hash);
  EXPECT_NE(Figures({"--hash", "--max-batches", "12"}).at("hash"), hash);
  EXPECT_NE(Figures({"--hash", "--rank", "0", "--world", "2"}).at("hash"), hash);
  EXPECT_NE(Figures({"--hash", "--steps-per-epoch", "3"}).at("hash"), hash);
}

TEST_F(RunCommandTest, WithoutQuietATableAndAVerdictComeBeforeTheJson) {
  const ProgramRun run = RunProgram(Arguments({"--json", "--hash"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* row : {"examples ", "of these fresh", "batches", "seconds", "examples/s",
                          "fresh/s", "stall share", "first batch after", "bytes read",
                          "bad examples", "echo after decode: R", "echo after decode: effective"}) {
    EXPECT_THAT(run.out, HasSubstr(row));
  }
  const std::string last = run.out.substr(run.out.rfind('\n', run.out.size() - 2) + 1);
  const json figures = json::parse(last);
  EXPECT_THAT(run.out, HasSubstr(figures.at("verdict").get<std::string>() + "\n"));
  EXPECT_THAT(run.out, HasSubstr("hash " + figures.at("hash").get<std::string>() + "\n"));
}

TEST_F(RunCommandTest, QuietLeavesWhatWasAskedFor) {
  EXPECT_THAT(RunProgram(Arguments({"-q"})).out, IsEmpty());
  const ProgramRun run = RunProgram(Arguments({"-q", "--hash"}));
  EXPECT_EQ(run.out, "hash " + Figures({"--hash"}).at("hash").get<std::string>() + "\n");
  EXPECT_THAT(run.err, IsEmpty());
}

TEST_F(RunCommandTest, ARunTooShortForASteadyStateSaysSo) {
  const ProgramRun run = RunProgram(Arguments({"--max-batches", "1"}));
  EXPECT_THAT(run.out, MatchesRegex(".*examples/s +too short\nfresh/s +too short\n"
                                    "stall share +too short\n.*The run was too short to tell.*"));
}

TEST_F(RunCommandTest, MaxBatchesStopsAndSaysSo) {
  EXPECT_EQ(Figures({"--max-batches", "3"}).at("batches"), 3);
  const ProgramRun run = RunProgram(Arguments({"--max-batches", "3"}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("Stopped after 3 batches, as --max-batches says."));
}

TEST_F(RunCommandTest, BandwidthAndLatencySlowTheStorage) {
  const json figures = Figures({"--bandwidth", "2M"});
  EXPECT_GT(figures.at("seconds"), 0.99 * figures.at("bytes_read").get<double>() / 2e6);
  EXPECT_GT(Figures({"--latency", "300ms"}).at("first_batch_s"), 0.3);
}

TEST_F(RunCommandTest, FiguresThatCannotBeWrittenAreAFailure) {
  const std::string command = std::string("'") + ECHOPIPE_PROGRAM + "' --help > /dev/full 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
}

TEST_F(RunCommandTest, TheConsumersOwnTimeIsMeasured) {
  const json figures = Figures({"--consumer-ms", "20", "--max-batches", "4"});
  EXPECT_GE(figures.at("stages").back().at("busy_s"), 3 * 0.020);
}

TEST_F(RunCommandTest, AnInvalidSpecIsExitCode2AndNamesTheField) {
  const ProgramRun no_batch = RunProgram({"run", "--source", Photos(), "--decode"});
  EXPECT_EQ(no_batch.exit_code, 2);
  EXPECT_THAT(no_batch.err, HasSubstr("batch"));
  const ProgramRun no_source = RunProgram({"run", "--decode", "--batch", "2"});
  EXPECT_EQ(no_source.exit_code, 2);
  EXPECT_THAT(no_source.err, HasSubstr("source"));
  EXPECT_EQ(RunProgram(Arguments({"--echo", "0.5"})).exit_code, 2);
  EXPECT_EQ(RunProgram(Arguments({"--reads-in-flight", "0"})).exit_code, 2);
  EXPECT_EQ(RunProgram(Arguments({"--rank", "2", "--world", "2"})).exit_code, 2);
}

TEST_F(RunCommandTest, MissingDataIsExitCode3AndNamesTheFolder) {
  const ProgramRun run = RunProgram({"run", "--source", "no/such/folder", "--batch", "2"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("no/such/folder"));
}

// A folder of pictures that are none.
class BadPictures {
 public:
  explicit BadPictures(int count = 5) {
    for (int i = 0; i < count; ++i)
      folder_.Write("class/" + std::to_string(i) + ".jpg", "no picture");
  }
  ProgramRun Run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"run", "--source", folder_.path(), "--decode", "--batch", "2"});
    return RunProgram(flags);
  }

 private:
  TempFolder folder_;
};

TEST(RunCommandBadExamplesTest, ABadExampleFailsTheRunWithExitCode3) {
  const ProgramRun run = BadPictures().Run({"--json"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("0.jpg"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"end\":\"failed\""), HasSubstr("\"error\":")));
}

TEST(RunCommandBadExamplesTest, MoreThanAllowedIsExitCode4) {
  const BadPictures pictures;
  EXPECT_EQ(pictures.Run({"--bad-examples", "policy: SKIP max_count: 4"}).exit_code, 4);
  EXPECT_EQ(pictures.Run({"--bad-examples", "policy: SKIP max_count: 5"}).exit_code, 3)
      << "within the limit, but nothing is left";
}

TEST(RunCommandBadExamplesTest, APictureOverALimitIsNoBudgetOfBadExamples) {
  const TempFolder folder;
  ASSERT_EQ(RunProgram({"demo-data", folder.Path("photos"), "--images", "2"}).exit_code, 0);
  EXPECT_EQ(RunProgram({"run", "--source", folder.Path("photos"), "--decode", "max_pixels: 10",
                        "--batch", "2"})
                .exit_code,
            3);
}

TEST(RunCommandBadExamplesTest, SkippedExamplesAreNamed) {
  const ProgramRun run = BadPictures().Run({"--bad-examples", "policy: SKIP", "--json"});
  const json figures = json::parse(run.out.substr(run.out.find('{')));
  ASSERT_EQ(figures.at("bad_examples").size(), 5u);
  EXPECT_EQ(figures.at("bad_count"), 5);
  const json& bad = figures.at("bad_examples")[0];
  EXPECT_THAT(bad.at("uri").get<std::string>(), EndsWith(".jpg"));
  EXPECT_THAT(bad.at("key").get<std::string>(), EndsWith(".jpg"));
  EXPECT_EQ(bad.at("stage"), "decode");
  EXPECT_THAT(bad.at("kind").get<std::string>(), Not(IsEmpty()));
  EXPECT_THAT(run.err, HasSubstr("skipped"));
}

TEST(RunCommandBadExamplesTest, OnlyTheFirstTwentyAreToldOneByOne) {
  const std::string skip = "policy: SKIP";
  const std::string twenty = BadPictures(20).Run({"--bad-examples", skip}).err;
  EXPECT_THAT(twenty, AllOf(HasSubstr("19.jpg"), Not(HasSubstr("more"))));
  const std::string more = BadPictures(42).Run({"--bad-examples", skip}).err;
  EXPECT_THAT(more, AllOf(Not(HasSubstr("41.jpg: image")),
                          HasSubstr("\n... and 22 more bad examples; --json "
                                    "names the first 1,000\n")));
  size_t told = 0;
  for (size_t at = 0; (at = more.find("skipped ", at)) != std::string::npos; ++at) ++told;
  EXPECT_EQ(told, 20u);
}

TEST(RunCommandBadExamplesTest, TruncatedPicturesThatAreAcceptedAreCountedAndNamedAndNotBad) {
  const TempFolder folder;
  for (int i = 0; i < 30; ++i) {
    const std::string jpeg = MakeJpeg(MakePicture(40, 64, 3, static_cast<uint32_t>(i)));
    folder.Write("c/" + std::to_string(10 + i) + ".jpg",
                 i < 25 ? jpeg.substr(0, jpeg.size() * 2 / 3) : jpeg);
  }
  const std::vector<std::string> arguments = {
      "run",    "--source", folder.path(), "--decode", "accept_truncated: true",
      "--echo", "2",        "--batch",     "8",        "--json"};
  const ProgramRun run = RunProgram(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, MatchesRegex("(.|\n)*partial images +25\n(.|\n)*"));
  const json figures = json::parse(run.out.substr(run.out.find("{\"")));
  EXPECT_EQ(figures.at("partial_images"), 25);
  EXPECT_EQ(figures.at("bad_count"), 0);
  EXPECT_EQ(figures.at("examples"), 60);
  EXPECT_THAT(
      run.err,
      AllOf(HasSubstr("truncated, used as far as it goes: " + folder.Path("c/10.jpg") + "\n"),
            HasSubstr("\n... and 5 more that are truncated")));
}

// Runs over the photos that leave checkpoints and hashes of steps in a folder.
class RunCommandResumeTest : public RunCommandTest {
 protected:
  static constexpr int kSteps = 13;

  std::string checkpoint() const { return work_.Path("run.ckpt"); }
  std::string hashes() const { return work_.Path("hashes"); }
  std::vector<std::string> Resuming(const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> all = {
        "--checkpoint", checkpoint(), "--checkpoint-every", "4",     "--resume",
        checkpoint(),   "--or-start", "--step-hashes",      hashes()};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  // The lines of a run that nothing interrupts.
  std::string WholeHashes() const {
    const std::string path = work_.Path("whole");
    EXPECT_EQ(RunProgram(Arguments({"--step-hashes", path})).exit_code, 0);
    return ReadFile(path);
  }
  uint64_t StepsInFile() const { return PipelineCheckpoint::Load(checkpoint()).steps(); }

  TempFolder work_;
};

TEST_F(RunCommandResumeTest, RunsOneAfterTheOtherDeliverWhatOneRunDoes) {
  std::vector<uint64_t> first_steps;
  while (first_steps.size() < 4) {
    first_steps.push_back(Figures(Resuming({"--max-batches", "5"})).at("first_step"));
  }
  EXPECT_THAT(first_steps, ElementsAre(0, 5, 10, kSteps));
  EXPECT_EQ(ReadFile(hashes()), WholeHashes());
  EXPECT_EQ(std::ranges::count(ReadFile(hashes()), '\n'), kSteps);
}

TEST_F(RunCommandResumeTest, CheckpointsComeAfterEveryNStepsOfTheRunAndAtTheEnd) {
  EXPECT_EQ(Figures(Resuming({"--max-batches", "3"})).at("checkpoints"), 2);  // 0, 3
  EXPECT_EQ(Figures(Resuming({"--max-batches", "5"})).at("checkpoints"), 3);  // 3, 4, 8
  EXPECT_EQ(StepsInFile(), 8u);
  EXPECT_EQ(Figures(Resuming()).at("checkpoints"), 3);  // 8, 12, 13
  EXPECT_EQ(StepsInFile(), uint64_t{kSteps});
}

TEST_F(RunCommandResumeTest, TheTableTellsWhereARunBeganAndHowToGoOn) {
  const ProgramRun begun = RunProgram(Arguments(Resuming({"--max-batches", "5"})));
  EXPECT_THAT(begun.out, AllOf(MatchesRegex(".*\ncheckpoints +3\n.*"), Not(HasSubstr("first step")),
                               HasSubstr("To go on: --resume " + checkpoint() + "\n")));
  EXPECT_THAT(begun.err, HasSubstr("no " + checkpoint() + " yet: beginning anew\n"));
  const ProgramRun resumed = RunProgram(Arguments(Resuming()));
  EXPECT_THAT(resumed.out,
              AllOf(MatchesRegex(".*\nfirst step +5\n.*"), Not(HasSubstr("To go on"))));
  EXPECT_THAT(resumed.err, HasSubstr("going on from " + checkpoint() + " with step 5\n"));
  EXPECT_THAT(RunProgram(Arguments({})).out, Not(HasSubstr("checkpoints")));
}

TEST_F(RunCommandResumeTest, ACheckpointServesAnyNumberOfRunsOnAnyNumberOfThreads) {
  Figures(Resuming({"--max-batches", "6"}));
  const std::vector<std::string> flags = {"--resume", checkpoint(), "--hash", "--threads"};
  std::vector<std::string> hashes;
  for (const char* threads : {"1", "2"}) {
    std::vector<std::string> all = flags;
    all.emplace_back(threads);
    hashes.push_back(Figures(all).at("hash"));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], Figures({"--hash"}).at("hash"));
}

TEST_F(RunCommandResumeTest, AHashCutOffByAKillIsOnALineOfItsOwn) {
  work_.Write("hashes", "0 4f");
  RunProgram(Arguments(Resuming()));
  EXPECT_EQ(ReadFile(hashes()), "0 4f\n" + WholeHashes());
}

TEST_F(RunCommandResumeTest, ASourceMayHaveANameOfAnyBytes) {
  work_.Write("photos\xff/class/a.jpg", "encoded");
  const std::string source = work_.Path("photos\xff");
  for (const char* first_step : {"0", "1"}) {
    std::vector<std::string> arguments = {"run",    "--source",      source, "--epochs",
                                          "2",      "--batch",       "1",    "-q",
                                          "--json", "--max-batches", "1"};
    for (const std::string& flag : Resuming()) arguments.push_back(flag);
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.err, IsEmpty());
    EXPECT_THAT(run.out, HasSubstr(std::string("\"first_step\":") + first_step));
  }
}

TEST_F(RunCommandResumeTest, OnlyAMissingFileBeginsAnew) {
  EXPECT_EQ(RunProgram(Arguments({"--resume", checkpoint()})).exit_code, 3);
  Figures(Resuming({"--max-batches", "1"}));
  const std::string bytes = ReadFile(checkpoint());
  for (const std::string& damaged :
       {std::string(), bytes.substr(0, bytes.size() - 1), bytes + "x"}) {
    work_.Write("run.ckpt", damaged);
    const ProgramRun run = RunProgram(Arguments(Resuming()));
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_THAT(run.err, HasSubstr("echopipe: " + checkpoint() + ": "));
    EXPECT_EQ(ReadFile(checkpoint()), damaged);
  }
}

TEST_F(RunCommandResumeTest, ACheckpointOfAnotherSpecOrRankIsExitCode2AndNamesFileAndDifference) {
  Figures(Resuming({"--max-batches", "1"}));
  const ProgramRun spec = RunProgram(Arguments(Resuming({"--epochs", "3"})));
  EXPECT_EQ(spec.exit_code, 2);
  EXPECT_THAT(spec.err, AllOf(HasSubstr(checkpoint()), HasSubstr("epochs: 3")));
  const ProgramRun rank = RunProgram(Arguments(Resuming({"--rank", "1", "--world", "2"})));
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_THAT(rank.err, AllOf(HasSubstr(checkpoint()), HasSubstr("rank 1 of 2")));
}

TEST_F(RunCommandResumeTest, FlagsThatNeedOneAnotherAreTold) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--checkpoint", checkpoint()}, "--checkpoint-every"},
      {{"--checkpoint-every", "4"}, "--checkpoint"},
      {{"--or-start"}, "--resume"},
      {{"--resume", ""}, "no file is named"},
      {{"--checkpoint", checkpoint(), "--checkpoint-every", "0"}, "1 to"},
  };
  for (const auto& [flags, told] : cases) {
    const ProgramRun run = RunProgram(Arguments(flags));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(told));
  }
}

TEST_F(RunCommandResumeTest, ARunThatBeginsAnewLeavesAnothersCheckpointAlone) {
  const std::vector<std::string> flags = {"--checkpoint", checkpoint(), "--checkpoint-every", "4"};
  EXPECT_EQ(RunProgram(Arguments(flags)).exit_code, 0);
  const std::string before = ReadFile(checkpoint());
  const ProgramRun again = RunProgram(Arguments(flags));
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("go on from it with --resume, or remove it"));
  EXPECT_EQ(ReadFile(checkpoint()), before);
}

TEST_F(RunCommandResumeTest, FilesThatCannotBeWrittenFailTheRunAndAreNamed) {
  const ProgramRun checkpoints = RunProgram(Arguments(
      {"--json", "--checkpoint", work_.Path("none") + "/run.ckpt", "--checkpoint-every", "4"}));
  EXPECT_EQ(checkpoints.exit_code, 3);
  EXPECT_THAT(checkpoints.err, HasSubstr("none/run.ckpt: cannot write the file"));
  EXPECT_THAT(checkpoints.out, AllOf(HasSubstr("\"end\":\"failed\""), HasSubstr("\"batches\":0,")));
  for (const std::string& path : {work_.path().string(), std::string("/dev/full")}) {
    const ProgramRun hashes = RunProgram(Arguments({"--step-hashes", path}));
    EXPECT_EQ(hashes.exit_code, 3);
    EXPECT_THAT(hashes.err, HasSubstr("echopipe: " + path + ": cannot write the steps' hashes"));
  }
}

TEST_F(RunCommandResumeTest, AnInterruptedRunLeavesItsPlace) {
  // An hour for each batch: only the signal ends it, with the first batch delivered.
  std::vector<std::string> arguments = Arguments(Resuming({"--consumer-ms", "3600000"}));
  Program program(arguments);
  while (!std::filesystem::exists(hashes()) || std::filesystem::file_size(hashes()) == 0) {
    std::this_thread::yield();
  }
  program.Signal(SIGTERM);
  const ProgramRun run = program.Wait();
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Interrupted.\nTo go on: --resume "));
  EXPECT_EQ(StepsInFile(), 1u);
  Figures(Resuming());
  EXPECT_EQ(ReadFile(hashes()), WholeHashes());
}

TEST_F(RunCommandTest, ATraceIsJsonAndCountsWhatTheFiguresDo) {
  const TempFolder folder;
  const std::string path = folder.Path("trace.json");
  const json figures = Figures({"--trace", path});
  const json trace = json::parse(ReadFile(path));
  EXPECT_EQ(trace.at("otherData").at("lost_events"), 0);
  std::map<std::string, uint64_t> spans;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ++spans[event.at("name")];
  }
  for (const json& stage : figures.at("stages")) {
    if (stage.at("name") == "read" || stage.at("name") == "consumer") continue;
    EXPECT_EQ(spans[stage.at("name")], stage.at("items")) << stage.at("name");
  }
  EXPECT_EQ(spans["Next"], figures.at("batches").get<uint64_t>() + 1);
}

TEST_F(RunCommandTest, ARunThatIsInterruptedOrKilledLeavesAWholeTrace) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const TempFolder folder;
    const std::string path = folder.Path("trace.json");
    // An hour for each batch: only the signal ends it.
    Program program(Arguments({"--consumer-ms", "3600000", "--trace", path}));
    // That of the first batch.
    while (!std::filesystem::exists(path) ||
           ReadFile(path).find("\"name\":\"Next\"") == std::string::npos) {
      std::this_thread::yield();
    }
    program.Signal(signal);
    EXPECT_EQ(program.Wait().exit_code, signal == SIGINT ? 130 : 128 + SIGKILL);
    EXPECT_TRUE(json::accept(ReadFile(path)));
  }
}

TEST_F(RunCommandTest, ATraceThatCannotBeWrittenIsAFailureWithItsName) {
  const ProgramRun run = RunProgram(Arguments({"--trace", "no/such/folder/trace.json"}));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("no/such/folder/trace.json"));
}

class RunCommandSignalTest : public RunCommandTest, public ::testing::WithParamInterface<int> {};

TEST_P(RunCommandSignalTest, StopsTellsTheFiguresAndExits130) {
  // An hour for the first batch alone: only the signal can end it. Its hash tells that the run is
  // under way.
  const TempFolder folder;
  const std::string hashes = folder.Path("hashes");
  Program program({"run", "--source", Photos(), "--decode", "--batch", "1", "--consumer-ms",
                   "3600000", "--step-hashes", hashes, "--json"});
  while (!std::filesystem::exists(hashes) || std::filesystem::file_size(hashes) == 0) {
    std::this_thread::yield();
  }
  program.Signal(GetParam());
  const ProgramRun run = program.Wait();
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("examples/s"), HasSubstr("Interrupted."),
                             HasSubstr("\"end\":\"interrupted\"")));
}

INSTANTIATE_TEST_SUITE_P(Signals, RunCommandSignalTest, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& signal) {
                           return signal.param == SIGINT ? "Int" : "Term";
                         });

// A run whose adaptive echo must repeat: its link gives far less than its consumer takes.
class RunCommandAdaptiveTest : public RunCommandTest {
 protected:
  static std::vector<std::string> Adaptive(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {
        "run",      "--source", Photos(),   "--epochs", "8",
        "--decode", "--echo",   "adaptive", "--resize", "height: 16 width: 16",
        "--batch",  "4",        "-q"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  static std::vector<std::string> Slowly(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments =
        Adaptive({"--bandwidth", "30M", "--reads-in-flight", "2", "--consumer-ms", "2"});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  std::string log() const { return work_.Path("decisions"); }
  std::string checkpoint() const { return work_.Path("run.ckpt"); }

  TempFolder work_;
};

TEST_F(RunCommandAdaptiveTest, AReplayDeliversWhatTheRunDid) {
  const ProgramRun live = RunProgram(
      Slowly({"--decision-log", log(), "--hash", "--json", "--timeline", work_.Path("timeline")}));
  ASSERT_EQ(live.exit_code, 0) << live.err;
  const json figures = json::parse(live.out);
  EXPECT_GT(figures["adaptive"]["echoes"], 0);
  EXPECT_THAT(figures["verdict"].get<std::string>(), HasSubstr("adaptive echo after decode"));
  uint64_t echoes = 0;
  for (const json& span : figures["adaptive"]["history"]) echoes += span.at(1).get<uint64_t>();
  EXPECT_EQ(echoes, figures["adaptive"]["echoes"]);
  const ProgramRun replay = RunProgram(Adaptive({"--replay", log(), "--hash", "--json"}));
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_EQ(json::parse(replay.out)["hash"], figures["hash"]);
}

TEST_F(RunCommandAdaptiveTest, AResumedRunGoesOnInItsLogAndAReplayFollowsBoth) {
  const std::vector<std::string> keep = {
      "--decision-log", log(),        "--checkpoint", checkpoint(),   "--checkpoint-every", "5",
      "--resume",       checkpoint(), "--or-start",   "--step-hashes"};
  auto first = keep;
  first.insert(first.end(), {work_.Path("live"), "--max-batches", "40"});
  ASSERT_EQ(RunProgram(Slowly(first)).exit_code, 0);
  auto second = keep;
  second.push_back(work_.Path("live"));
  ASSERT_EQ(RunProgram(Slowly(second)).exit_code, 0);
  const ProgramRun replay =
      RunProgram(Adaptive({"--replay", log(), "--step-hashes", work_.Path("replay")}));
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_EQ(ReadFile(work_.Path("replay")), ReadFile(work_.Path("live")));
}

TEST_F(RunCommandAdaptiveTest, ALogThatDoesNotFitIsRefused) {
  ASSERT_EQ(RunProgram(Slowly({"--decision-log", log()})).exit_code, 0);
  const ProgramRun other = RunProgram(Adaptive({"--replay", log(), "--seed", "5"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("another pipeline"));
  EXPECT_THAT(RunProgram(Adaptive({"--replay", log(), "--decision-log", log()})).err,
              HasSubstr("the same file"));
  EXPECT_THAT(RunProgram(Arguments({"--decision-log", log()})).err,
              HasSubstr("RuntimeOptions.decision_log"));
  const std::string notes = work_.Write("notes", "not to be lost");
  EXPECT_EQ(RunProgram(Adaptive({"--decision-log", notes})).exit_code, 2);
  EXPECT_EQ(ReadFile(notes), "not to be lost");
}

}  // namespace
}  // namespace echopipe::testing
