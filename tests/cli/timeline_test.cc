// What the lines of --timeline say, on a virtual clock, against what the consumer was given.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/cli/timeline.h>
#include <echopipe/tests/support/virtual_run.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using cli::TimelineLine;
using nlohmann::json;
using testing::Play;
using testing::VirtualResult;
using testing::VirtualRun;

std::vector<json> LinesOf(const VirtualResult& result) {
  std::vector<json> lines;
  PipelineStats last;
  for (const PipelineStats& now : result.seconds) {
    lines.push_back(json::parse(TimelineLine(last, now)));
    last = now;
  }
  return lines;
}

/// What the consumer was given in a second.
struct Given {
  uint64_t examples = 0;
  uint64_t fresh = 0;
  double waited_s = 0;
};

Given GivenIn(int second, const VirtualResult& result) {
  Given given;
  for (const VirtualResult::Taken& taken : result.batches) {
    // Waits may begin in another second.
    const Clock::Duration begin = std::max<Clock::Duration>(taken.at - taken.waited, second * 1s);
    const Clock::Duration end = std::min<Clock::Duration>(taken.at, (second + 1) * 1s);
    if (&taken != result.batches.data() && end > begin) {
      given.waited_s += std::chrono::duration<double>(end - begin).count();
    }
    if (taken.at <= second * 1s || taken.at > (second + 1) * 1s) continue;
    for (size_t i = 0; i < taken.batch.size(); ++i) {
      ++given.examples;
      given.fresh += taken.batch.provenance(i).identity.use[0] == 0 ? 1 : 0;
    }
  }
  return given;
}

/// An upstream that keeps up, but for a stop that the pool bridges in part, and a slow end.
VirtualResult RunWithStop() {
  VirtualRun run{.spec = PipelineSpec::FromText("source { uri: 'data' }"
                                                "stage { echo { adaptive { max_factor: 4 } } }"
                                                "stage { batch { size: 8 } }"),
                 .records = 700,
                 .per_record = 9ms,
                 .per_example = 13ms,
                 .runtime = {.threads = 2, .prefetch = 4},
                 .keeps_seconds = true};
  run.stops = {{.at = 2100ms, .length = 4s}};
  return Play(run);
}

TEST(TimelineTest, EachLineTellsWhatTheConsumerWasGivenInThatSecond) {
  const VirtualResult result = RunWithStop();
  const std::vector<json> lines = LinesOf(result);
  ASSERT_GT(lines.size(), 8u);
  uint64_t seconds_with_echoes = 0;
  uint64_t seconds_without_fresh = 0;
  double stalled = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    SCOPED_TRACE("second " + std::to_string(i) + ": " + lines[i].dump());
    const Given given = GivenIn(static_cast<int>(i), result);
    EXPECT_DOUBLE_EQ(lines[i]["second"], static_cast<double>(i + 1));
    EXPECT_DOUBLE_EQ(lines[i]["examples_per_s"], static_cast<double>(given.examples));
    EXPECT_DOUBLE_EQ(lines[i]["fresh_per_s"], static_cast<double>(given.fresh));
    if (given.fresh == 0) {
      EXPECT_TRUE(lines[i]["factor"].is_null());
      ++seconds_without_fresh;
    } else {
      EXPECT_DOUBLE_EQ(lines[i]["factor"],
                       static_cast<double>(given.examples) / static_cast<double>(given.fresh));
      seconds_with_echoes += given.examples > given.fresh ? 1 : 0;
    }
    EXPECT_NEAR(lines[i]["stall_share"], given.waited_s, 1e-6);
    stalled += given.waited_s;
  }
  EXPECT_GT(seconds_with_echoes, 0u);
  EXPECT_GT(seconds_without_fresh, 0u);
  EXPECT_GT(stalled, 0.5);
}

TEST(TimelineTest, TheRunwayIsWhatIsDrawnAheadAtTheConsumersPace) {
  const std::vector<json> lines = LinesOf(RunWithStop());
  // Four batches as asked, two more as there is an adaptive echo, and four items a thread.
  const double full_s = (6 * 8 + 2 * 4) * 0.013;
  EXPECT_NEAR(lines[1]["runway_s"], full_s, 0.011 * 8);
  // While the consumer waits, there is no batch.
  EXPECT_EQ(lines[5]["stall_share"], 1);
  EXPECT_LT(lines[5]["runway_s"], 0.013 * 8);
}

TEST(TimelineTest, WaitingForTheFirstBatchIsNoStall) {
  PipelineStats before{.seconds = 1, .stall_s = 0.9};
  const PipelineStats after{.examples = 8, .batches = 1, .seconds = 2, .stall_s = 0.25};
  EXPECT_DOUBLE_EQ(json::parse(TimelineLine(before, after))["stall_share"], 0.25);
  before.batches = 1;
  before.stall_s = 0.125;
  EXPECT_DOUBLE_EQ(json::parse(TimelineLine(before, after))["stall_share"], 0.125);
}

}  // namespace
}  // namespace echopipe
