// How much an adaptive echo repeats, on a virtual clock.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/virtual_run.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using testing::Play;
using testing::PlayAtOnce;
using testing::TempFolder;
using testing::VirtualResult;
using testing::VirtualRun;

constexpr auto kExample = 1ms;

PipelineSpec Spec(const std::string& echo) {
  return PipelineSpec::FromText(
             "source { uri: 'data' } stage { map { function: 'nothing' } }"
             "stage { echo { " +
             echo + " } } stage { batch { size: 8 } }")
      .WithMap("nothing", [](Example&) {});
}

VirtualRun Over(double r, int records, const std::string& echo = "adaptive {}") {
  return {.spec = Spec(echo),
          .records = records,
          .per_record = std::chrono::duration_cast<Clock::Duration>(kExample * r),
          .per_example = kExample,
          .runtime = {.threads = 2, .prefetch = 4}};
}

class AdaptiveKeepsUp : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(R, AdaptiveKeepsUp, ::testing::Values(0.5, 0.8, 0.95),
                         [](const auto& param) {
                           return std::to_string(static_cast<int>(param.param * 100));
                         });

TEST_P(AdaptiveKeepsUp, NothingIsEverRepeated) {
  const VirtualResult result = Play(Over(GetParam(), 3000));
  EXPECT_EQ(result.stats.examples, 3000u);
  EXPECT_EQ(result.stats.adaptive->echoes, 0u);
}

class AdaptiveFallsBehind : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(R, AdaptiveFallsBehind, ::testing::Values(1.5, 3, 6),
                         [](const auto& param) {
                           return std::to_string(static_cast<int>(param.param * 100));
                         });

TEST_P(AdaptiveFallsBehind, TheEffectiveFactorIsRAndTheConsumerHardlyWaits) {
  const VirtualResult result = Play(Over(GetParam(), 2000));
  const Clock::Duration from = result.end() / 5;
  const Clock::Duration to = result.end() - 200ms;  // at the end nothing is repeated
  EXPECT_NEAR(result.Factor(from, to), GetParam(), 0.05 * GetParam());
  EXPECT_LT(result.StallShare(from, to), 0.02);
}

std::vector<std::string> HashesOf(const VirtualResult& result) {
  std::vector<std::string> hashes;
  for (const VirtualResult::Taken& taken : result.batches) {
    BatchHash hash;
    hash.Add(taken.batch);
    hashes.push_back(hash.Hex());
  }
  return hashes;
}

/// An upstream that keeps up but for one stop.
struct Stopped {
  VirtualResult live;
  VirtualResult replayed;
};

Stopped RunWithStop(Clock::Duration length) {
  const TempFolder folder;
  const std::string path = folder.Path("decisions");
  VirtualRun run = Over(0.7, 3000);
  run.stops = {{.at = 1s, .length = length}};
  Stopped stopped;
  {
    internal::DecisionLogFile file(path, 1, 0);
    run.decisions.file = &file;
    stopped.live = Play(run);
    file.Write();
  }
  run.decisions = {.replay = DecisionReader(internal::LoadDecisionLog(path), 0)};
  stopped.replayed = PlayAtOnce(run);
  return stopped;
}

// The pool holds 32 items of which each may be used eight times: 32 * 7 ms, and what is ahead.
TEST(AdaptiveStopTest, AStopThatThePoolCanBridgeCostsNothing) {
  const Stopped stopped = RunWithStop(150ms);
  EXPECT_GT(stopped.live.stats.adaptive->echoes, 50u);
  EXPECT_EQ(stopped.live.StallShare(500ms, 2500ms), 0);
  EXPECT_EQ(stopped.live.Factor(1500ms, 2500ms), 1);
  EXPECT_NEAR(stopped.live.stats.adaptive->longest_bridged_s, 0.15, 0.05);
  EXPECT_EQ(HashesOf(stopped.replayed), HashesOf(stopped.live));
}

TEST(AdaptiveStopTest, ALongerOneIsWaitedForAndThenNothingIsRepeated) {
  const Stopped stopped = RunWithStop(1s);
  EXPECT_GT(stopped.live.StallShare(1s, 2200ms), 0.45);
  EXPECT_LT(stopped.live.StallShare(1s, 2200ms), 0.7) << "a part of it was bridged";
  EXPECT_EQ(stopped.live.StallShare(2200ms, 3s), 0);
  EXPECT_EQ(stopped.live.Factor(2500ms, 3s), 1);
  EXPECT_EQ(HashesOf(stopped.replayed), HashesOf(stopped.live));
}

}  // namespace
}  // namespace echopipe
