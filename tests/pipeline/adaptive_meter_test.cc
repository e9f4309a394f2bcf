#include <chrono>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/adaptive_meter.h>

namespace echopipe::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::DoubleNear;
using ::testing::SizeIs;

constexpr Clock::Time kOpened = Clock::Time() + 7s;

TEST(AdaptiveMeterTest, AStopIsBridgedFromTheLastFreshDrawToTheLastEcho) {
  AdaptiveMeter meter(kOpened);
  meter.Add(Decision::kFresh, kOpened + 1s);
  meter.Add(Decision::kFresh, kOpened + 2s);
  meter.Add(Decision::kEcho, kOpened + 2500ms);
  meter.Add(Decision::kEcho, kOpened + 4s);
  meter.Add(Decision::kFresh, kOpened + 9s);  // nothing bridged it to here
  meter.Add(Decision::kEcho, kOpened + 10s);
  EXPECT_THAT(meter.Stats().longest_bridged_s, DoubleNear(2, 1e-9));
  EXPECT_EQ(meter.Stats().fresh, 3u);
  EXPECT_EQ(meter.Stats().echoes, 3u);
  EXPECT_EQ(meter.Stats().echo_share, 0.5);
}

TEST(AdaptiveMeterTest, ARestoredRunMayBeginWithAnEcho) {
  AdaptiveMeter meter(kOpened);
  meter.Add(Decision::kEcho, kOpened + 250ms);
  EXPECT_THAT(meter.Stats().longest_bridged_s, DoubleNear(0.25, 1e-9));
}

TEST(AdaptiveMeterTest, TheHistoryTellsWhenItWasAndNeverGrows) {
  AdaptiveMeter meter(kOpened);
  // In second n: one fresh draw, and from second 100 on, one echo.
  for (int second = 0; second < 200; ++second) {
    meter.Add(Decision::kFresh, kOpened + second * 1s);
    if (second >= 100) meter.Add(Decision::kEcho, kOpened + second * 1s + 500ms);
  }
  const AdaptiveStats stats = meter.Stats();
  EXPECT_EQ(stats.span_s, 4);
  ASSERT_THAT(stats.history, SizeIs(50));
  for (size_t i = 0; i < stats.history.size(); ++i) {
    EXPECT_EQ(stats.history[i].fresh, 4u) << i;
    EXPECT_EQ(stats.history[i].echoes, i < 25 ? 0u : 4u) << i;
  }
}

TEST(AdaptiveMeterTest, AfterALongPauseTheHistoryIsStillWhole) {
  AdaptiveMeter meter(kOpened);
  meter.Add(Decision::kFresh, kOpened);
  meter.Add(Decision::kEcho, kOpened + 24h);
  const AdaptiveStats stats = meter.Stats();
  ASSERT_LE(stats.history.size(), 64u);
  EXPECT_GT(stats.history.size(), 32u);
  EXPECT_EQ(stats.history.front().fresh, 1u);
  EXPECT_EQ(stats.history.back().echoes, 1u);
}

}  // namespace
}  // namespace echopipe::internal
