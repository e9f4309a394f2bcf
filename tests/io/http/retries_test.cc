#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/http/retries.h>

namespace echopipe::testing {
namespace {

using internal::Retries;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::Time kBegin = Clock::Time(seconds(1000));
const RetryOptions kOptions{
    .first_wait = milliseconds(100), .longest_wait = seconds(2), .budget = seconds(60)};

TEST(RetriesTest, WaitsAreUniformUpToABoundThatDoublesAsFarAsTheLongest) {
  RandomStream random({.low = 1, .high = 2});
  std::vector<double> sums(8);
  std::vector<double> most(8);
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    Retries retries;
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto next = retries.OnFailure(kOptions, kBegin, kBegin, std::nullopt, random);
      const double wait = std::chrono::duration<double>(*next - kBegin).count();
      sums[i] += wait;
      most[i] = std::max(most[i], wait);
    }
  }
  double bound = 0.1;
  for (size_t i = 0; i < sums.size(); ++i, bound = std::min(2., bound * 2)) {
    EXPECT_NEAR(sums[i] / kRuns, bound / 2, bound / 20) << i;
    EXPECT_LE(most[i], bound) << i;
    EXPECT_GT(most[i], 0.95 * bound) << i;
  }
}

TEST(RetriesTest, ADeadServerIsGivenUpWhenTheBudgetEnds) {
  RandomStream random({.low = 1, .high = 2});
  Retries retries;
  Clock::Time now = kBegin;
  constexpr auto kAttempt = milliseconds(10);
  while (const auto next = retries.OnFailure(kOptions, now, now, std::nullopt, random)) {
    ASSERT_GE(*next, now);
    now = *next + kAttempt;
  }
  EXPECT_GE(now, kBegin + kOptions.budget);
  EXPECT_LE(now, kBegin + kOptions.budget + kAttempt);
  EXPECT_GT(retries.failures(), 30);
  EXPECT_EQ(retries.since_first(now), now - kBegin);
}

TEST(RetriesTest, ProgressGivesTheWholeBudgetBack) {
  RandomStream random({.low = 1, .high = 2});
  Retries retries;
  retries.OnFailure(kOptions, kBegin, kBegin, std::nullopt, random);
  EXPECT_FALSE(retries.OnFailure(kOptions, kBegin + seconds(60), kBegin + seconds(60), std::nullopt,
                                 random));
  retries.OnProgress();
  EXPECT_EQ(retries.failures(), 0);
  EXPECT_TRUE(retries.OnFailure(kOptions, kBegin + seconds(61), kBegin + seconds(61), std::nullopt,
                                random));
  EXPECT_TRUE(retries.OnFailure(kOptions, kBegin + seconds(119), kBegin + seconds(119),
                                std::nullopt, random));
}

TEST(RetriesTest, RetryAfterIsTheLeastWait) {
  RandomStream random({.low = 1, .high = 2});
  Retries retries;
  EXPECT_EQ(retries.OnFailure(kOptions, kBegin, kBegin, seconds(7), random), kBegin + seconds(7));
}

TEST(RetriesTest, RetryAfterBeyondTheBudgetGivesUpAtOnce) {
  RandomStream random({.low = 1, .high = 2});
  EXPECT_FALSE(Retries().OnFailure(kOptions, kBegin, kBegin, seconds(61), random));
  EXPECT_TRUE(Retries().OnFailure(kOptions, kBegin, kBegin, seconds(60), random));
}

TEST(RetriesTest, WithoutABudgetNothingIsTriedAgain) {
  RandomStream random({.low = 1, .high = 2});
  EXPECT_FALSE(Retries().OnFailure({.budget = seconds(0)}, kBegin, kBegin, std::nullopt, random));
}

TEST(RetriesTest, TheLastAttemptIsAtTheBudgetsEnd) {
  RandomStream random({.low = 1, .high = 2});
  Retries retries;
  retries.OnFailure(kOptions, kBegin, kBegin, std::nullopt, random);
  const Clock::Time late = kBegin + kOptions.budget - Clock::Duration(1);
  EXPECT_LE(*retries.OnFailure(kOptions, late, late, std::nullopt, random),
            kBegin + kOptions.budget);
}

}  // namespace
}  // namespace echopipe::testing
