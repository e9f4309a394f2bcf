// Runs that are killed and begun again deliver what one run does.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe::testing {
namespace {

constexpr int kKills = 100;  // for each source
constexpr uint64_t kEvery = 3;

using Steps = std::map<uint64_t, std::string>;

// So that a run is as long in delivering as in starting.
const std::vector<std::string> kPace = {"-q", "--consumer-ms", "3"};

// A run over a source, with checkpoints and hashes in a folder of its own.
class ResumedRun {
 public:
  explicit ResumedRun(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    arguments_.insert(arguments_.end(), kPace.begin(), kPace.end());
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  /// In later runs.
  void AddArguments(const std::vector<std::string>& more) {
    arguments_.insert(arguments_.end(), more.begin(), more.end());
  }

  // Kills it once it has had so long; true if it had ended by itself.
  bool GoOn(std::chrono::milliseconds time) const {
    std::vector<std::string> arguments = arguments_;
    arguments.insert(arguments.end(),
                     {"--checkpoint", folder_.Path("run.ckpt"), "--checkpoint-every",
                      std::to_string(kEvery), "--resume", folder_.Path("run.ckpt"), "--or-start",
                      "--step-hashes", folder_.Path("hashes")});
    Program program(arguments);
    // The moment is to be any: there is nothing to wait for.
    std::this_thread::sleep_for(time);
    program.Signal(SIGKILL);
    const ProgramRun run = program.Wait();
    EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 128 + SIGKILL) << run.err;
    return run.exit_code != 128 + SIGKILL;
  }

  // Behind those seen before: the steps delivered by the last run.
  std::vector<std::pair<uint64_t, std::string>> NewSteps() {
    std::ifstream file(folder_.Path("hashes"));
    file.seekg(static_cast<std::streamoff>(read_));
    std::vector<std::pair<uint64_t, std::string>> steps;
    for (std::string line; std::getline(file, line) && !file.eof(); read_ += line.size() + 1) {
      std::istringstream words(line);
      uint64_t step = 0;
      std::string hash;
      // Else it was cut off.
      if (words >> step >> hash && hash.size() == 32) steps.emplace_back(step, hash);
    }
    return steps;
  }

 private:
  std::vector<std::string> arguments_;
  TempFolder folder_;
  size_t read_ = 0;  // bytes of the hashes
};

Steps StepsIn(const std::string& path) {
  std::istringstream lines(ReadFile(path));
  Steps steps;
  uint64_t step = 0;
  for (std::string hash; lines >> step >> hash;) steps[step] = hash;
  return steps;
}

struct OneRun {
  Steps steps = {};
  std::chrono::milliseconds time{};
};

// The run that nothing interrupts.
OneRun RunOnce(std::vector<std::string> arguments) {
  const TempFolder folder;
  arguments.insert(arguments.end(), kPace.begin(), kPace.end());
  arguments.insert(arguments.end(), {"--step-hashes", folder.Path("hashes")});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(RunProgram(arguments).exit_code, 0);
  OneRun run{.time = std::chrono::duration_cast<std::chrono::milliseconds>(
                 std::chrono::steady_clock::now() - begin)};
  run.steps = StepsIn(folder.Path("hashes"));
  return run;
}

void KillAndResume(const std::vector<std::string>& arguments) {
  const OneRun uninterrupted = RunOnce(arguments);
  const Steps& whole = uninterrupted.steps;
  ASSERT_GT(whole.size(), 50u);
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::cout << "seed " << seed << ", " << whole.size() << " steps\n";
  std::mt19937 random(seed);
  int kills = 0;
  int resumed = 0;
  while (kills < kKills) {
    ResumedRun run(arguments);
    Steps delivered;
    bool ended = false;
    while (!ended) {
      ended = run.GoOn(uninterrupted.time * (random() % 1000) / 1000);
      kills += ended ? 0 : 1;
      const auto steps = run.NewSteps();
      if (!steps.empty()) {
        resumed += steps.front().first > 0 ? 1 : 0;
        EXPECT_LE(steps.front().first, delivered.size());
        EXPECT_GE(steps.front().first + kEvery, delivered.size());
      }
      for (const auto& [step, hash] : steps) {
        ASSERT_EQ(hash, whole.at(step)) << "step " << step << " after " << kills << " kills";
        delivered[step] = hash;
      }
    }
    EXPECT_EQ(delivered, whole);
  }
  EXPECT_GT(resumed, kKills / 10);
}

const std::vector<std::string> kStages = {"--decode",
                                          "--echo",
                                          "factor: 2.5 shuffle_buffer: 24",
                                          "--random-crop",
                                          "height: 16 width: 16",
                                          "--random-flip",
                                          "--batch",
                                          "4"};

std::vector<std::string> Arguments(const std::vector<std::string>& source) {
  std::vector<std::string> arguments = {"run"};
  arguments.insert(arguments.end(), source.begin(), source.end());
  arguments.insert(arguments.end(), kStages.begin(), kStages.end());
  return arguments;
}

TEST(KillTest, AFolderIsDeliveredAsByOneRun) {
  const TempFolder folder;
  WriteImages(folder, 48, 3);
  KillAndResume(Arguments({"--source", folder.path(), "--shuffle", "full", "--epochs", "2"}));
}

TEST(KillTest, ShardsThroughAShuffleWindowAreDeliveredAsByOneRun) {
  const TempFolder folder;
  for (const char* name : {"a.tar", "b.tar", "c.tar"}) folder.Write(name, MakeImageTar(16, 3));
  KillAndResume(Arguments({"--source", folder.Path("*.tar"), "--shuffle", "20", "--epochs", "2"}));
}

// ---- with an adaptive echo, whose decisions are the moment's

constexpr int kAdaptiveKills = 40;
constexpr int kImages = 48;
constexpr int kEpochs = 6;

// Over a link that gives far less than the consumer takes, unless it is a replay.
const std::vector<std::string> kSlowly = {"--bandwidth", "600K", "--reads-in-flight", "2"};

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> AdaptiveArguments(const TempFolder& source) {
  return {"run",
          "--source",
          source.path(),
          "--shuffle",
          "full",
          "--epochs",
          std::to_string(kEpochs),
          "--decode",
          "--echo",
          "adaptive",
          "--random-crop",
          "height: 16 width: 16",
          "--random-flip",
          "--batch",
          "4"};
}

/// A run that is killed and goes on in its log, and what it has delivered last of each step.
class AdaptiveKills {
 public:
  explicit AdaptiveKills(const TempFolder& source)
      : arguments_(AdaptiveArguments(source)), run_(With(arguments_, kSlowly)) {
    run_.AddArguments({"--decision-log", log()});
  }

  /// The number of kills until it had ended.
  int RunToTheEnd(std::chrono::milliseconds time, std::mt19937& random) {
    for (int kills = 0;; ++kills) {
      if (run_.GoOn(time * (random() % 1000) / 1000)) {
        NoteSteps();
        return kills;
      }
      CheckReplayFromCheckpoint(NoteSteps());
    }
  }
  /// Of the whole run, its log tells all.
  void CheckReplay() const {
    const TempFolder folder;
    const ProgramRun replay = RunProgram(With(
        arguments_, {"-q", "--json", "--replay", log(), "--step-hashes", folder.Path("hashes")}));
    ASSERT_EQ(replay.exit_code, 0) << replay.err;
    EXPECT_EQ(StepsIn(folder.Path("hashes")), delivered_);
    const auto figures = nlohmann::json::parse(replay.out);
    EXPECT_EQ(figures["fresh"], kImages * kEpochs) << "something was lost";
    EXPECT_GT(figures["adaptive"]["echoes"], kImages);
  }
  /// Steps that a process was killed after, behind its last checkpoint, and that a replay gave.
  int replayed_steps() const { return replayed_steps_; }

 private:
  std::string log() const { return run_.Path("decisions"); }

  // Those of the process that has ended.
  Steps NoteSteps() {
    Steps steps;
    for (const auto& [step, hash] : run_.NewSteps()) steps[step] = hash;
    // It went on from a checkpoint: what was delivered behind that before is not its past.
    if (!steps.empty()) {
      EXPECT_LE(steps.begin()->first, delivered_.size()) << "steps are missing";
      delivered_.erase(delivered_.lower_bound(steps.begin()->first), delivered_.end());
    }
    delivered_.insert(steps.begin(), steps.end());
    return steps;
  }

  // The decisions behind a checkpoint are in the log as far as they had been written.
  void CheckReplayFromCheckpoint(const Steps& killed) {
    if (!std::filesystem::exists(run_.Path("run.ckpt"))) return;
    const TempFolder folder;
    const ProgramRun replay =
        RunProgram(With(arguments_, {"-q", "--resume", run_.Path("run.ckpt"), "--replay", log(),
                                     "--step-hashes", folder.Path("hashes")}));
    Steps replayed = StepsIn(folder.Path("hashes"));
    if (replay.exit_code != 0) {
      EXPECT_THAT(replay.err, ::testing::HasSubstr("the decision log ends before the items do"));
      // The last batch is what there was until then.
      if (!replayed.empty()) replayed.erase(std::prev(replayed.end()));
    }
    for (const auto& [step, hash] : replayed) {
      const auto found = killed.find(step);
      if (found == killed.end()) continue;
      EXPECT_EQ(hash, found->second) << "step " << step;
      ++replayed_steps_;
    }
  }

  std::vector<std::string> arguments_;
  ResumedRun run_;
  Steps delivered_;
  int replayed_steps_ = 0;
};

TEST(KillTest, AnAdaptiveEchosLogLosesNothingAndItsReplayIsWhatWasDelivered) {
  const TempFolder source;
  WriteImages(source, kImages, 3);
  const OneRun whole = RunOnce(With(AdaptiveArguments(source), kSlowly));
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::cout << "seed " << seed << ", " << whole.steps.size() << " steps\n";
  std::mt19937 random(seed);
  int kills = 0;
  int replayed_steps = 0;
  while (kills < kAdaptiveKills && !::testing::Test::HasFailure()) {
    AdaptiveKills run(source);
    kills += run.RunToTheEnd(whole.time, random);
    run.CheckReplay();
    replayed_steps += run.replayed_steps();
  }
  std::cout << replayed_steps << " steps of killed processes replayed\n";
  EXPECT_GT(replayed_steps, kAdaptiveKills / 4);
}

}  // namespace
}  // namespace echopipe::testing
