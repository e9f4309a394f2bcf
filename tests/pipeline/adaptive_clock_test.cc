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
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
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
  const VirtualResult result = Play(Over(GetParam(), 3000));
  const Clock::Duration from = result.end() / 5;
  const Clock::Duration to = result.end() - 200ms;  // at the end nothing is repeated
  EXPECT_NEAR(result.Factor(from, to), GetParam(), 0.05 * GetParam());
  EXPECT_LT(result.StallShare(from, to), 0.02);
  EXPECT_NEAR(result.stats.adaptive->echo_share, 1 - 1 / GetParam(), 0.03);
  EXPECT_THAT(result.stats.verdict, ContainsRegex("; a fixed factor of .* would do as well\\."));
}

TEST(AdaptiveHistoryTest, ItsPartsAddUpToAllThatWasDrawnAndShowWhenItWas) {
  VirtualRun run = Over(0.7, 6000);
  run.stops = {{.at = 2s, .length = 150ms}};
  const VirtualResult result = Play(run);
  const AdaptiveStats& adaptive = *result.stats.adaptive;
  AdaptiveStats::Span all;
  for (size_t i = 0; i < adaptive.history.size(); ++i) {
    all.fresh += adaptive.history[i].fresh;
    all.echoes += adaptive.history[i].echoes;
    EXPECT_EQ(adaptive.history[i].echoes > 0, i == 2) << "second " << i;
  }
  EXPECT_EQ(all.fresh, 6000u);
  EXPECT_EQ(all.fresh, adaptive.fresh);
  EXPECT_EQ(all.echoes, adaptive.echoes);
  EXPECT_EQ(adaptive.span_s, 1);
  EXPECT_THAT(result.stats.verdict, HasSubstr("but for short stops, no echo at all would do"));
}

// Until it is armed it has waited for as long as a full window lasts; not once more.
TEST(AdaptiveArmingTest, JustOverOneTheConsumerWaitsForAWindowInAll) {
  const VirtualResult result = Play(Over(1.1, 2500));
  // Four batches as asked, two more as there is an adaptive echo, and four items a thread.
  const Clock::Duration window = (6 * 8 + 2 * 4) * kExample;
  const Clock::Duration first = result.batches.at(0).at;
  const double waited = result.StallShare(first, result.end());
  EXPECT_LT(waited * std::chrono::duration<double>(result.end() - first),
            window + 2 * 8 * kExample);
  EXPECT_EQ(result.StallShare(1500ms, result.end() - 200ms), 0);
  EXPECT_NEAR(result.Factor(1500ms, result.end() - 200ms), 1.1, 0.05);
}

// Upstream stands still, and the consumer waits: nothing else would tell the point.
TEST(AdaptiveArmingTest, AStopBeforeItIsArmedArmsIt) {
  VirtualRun run = Over(1.3, 400);
  run.stops = {{.at = 60ms, .length = 300ms}};
  const VirtualResult result = Play(run);
  EXPECT_GT(result.Factor(60ms, 360ms), 2);
  EXPECT_LT(result.StallShare(60ms, 360ms), 0.4) << "a window, and what was too little before";
}

// What is ahead of the consumer is what the last echo point has drawn.
TEST(AdaptiveBesideAFixedOneTest, TheFactorIsWhatTheFixedOneLeavesOfR) {
  VirtualRun run = Over(6, 600);
  run.spec = Spec("adaptive {} } } stage { echo { factor: 2");
  const VirtualResult result = Play(run);
  const Clock::Duration from = result.end() / 5;
  const Clock::Duration to = result.end() - 200ms;
  EXPECT_NEAR(result.Factor(from, to), 6, 0.05 * 6);
  EXPECT_NEAR(result.stats.echo_points.at(0).factor_effective, 3, 0.05 * 3);
  EXPECT_LT(result.StallShare(from, to), 0.02);
}

// ---- ends

TEST(AdaptiveEndTest, AnEpochOfEchoesAloneIsAsEmptyAsWithoutThem) {
  const auto run_with = [](const std::string& echo) {
    VirtualRun run = Over(4, 60, echo);
    run.spec = PipelineSpec::FromText(
                   "source { uri: 'data' epochs: 3 } stage { filter { function: 'first epoch' } }"
                   "stage { echo { " +
                   echo + " } } stage { batch { size: 2 } }")
                   .WithFilter("first epoch", [](const Example& example) {
                     return example.provenance().identity.epoch == 0;
                   });
    return Play(run);
  };
  const VirtualResult adaptive = run_with("adaptive {}");
  const VirtualResult once = run_with("factor: 1");
  ASSERT_TRUE(adaptive.error && once.error);
  EXPECT_EQ(once.error->code(), ErrorCode::kEmpty);
  EXPECT_STREQ(adaptive.error->what(), once.error->what());
  EXPECT_GT(adaptive.batches.back().batch.epoch(), 0u) << "no echo came in that epoch";
}

class AdaptiveBatchEnds : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Specs, AdaptiveBatchEnds,
                         ::testing::Values("size: 3 } }", "size: 2 remainder: DROP } }",
                                           "size: 3 across_epochs: true } }",
                                           "size: 2 across_epochs: true } }",
                                           "size: 3 } } steps_per_epoch: 7",
                                           "size: 2 } } steps_per_epoch: 7"));

TEST_P(AdaptiveBatchEnds, BehindTheLastBatchNothingIsRepeated) {
  VirtualRun run = Over(4, 0);
  run.spec = PipelineSpec::FromText("source { uri: 'data' epochs: 2 } stage { batch { " +
                                    std::string(GetParam()) + " stage { echo { adaptive {} } }");
  run.runtime.prefetch = 2;
  // So that the last batch is a whole one, or not.
  for (run.records = 40; run.records < 46; ++run.records) {
    const VirtualResult result = Play(run);
    SCOPED_TRACE(run.records);
    EXPECT_GT(result.stats.adaptive->echoes, 10u);
    EXPECT_EQ(result.batches.back().batch.provenance(0).identity.use[0], 0u);
  }
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
