#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/support/fake_clock.h>

namespace echopipe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class FakeClockTest : public ::testing::Test {
 protected:
  void CallIn(Clock::Duration delay, int name) {
    clock_.CallAt(clock_.Now() + delay,
                  [this, name] { calls_.emplace_back(name, clock_.Now() - start_); });
  }

  FakeClock clock_;
  const Clock::Time start_ = clock_.Now();
  std::vector<std::pair<int, Clock::Duration>> calls_;
};

TEST_F(FakeClockTest, StandsUntilMoved) {
  EXPECT_EQ(clock_.Now(), start_);
  clock_.Advance(5s);
  EXPECT_EQ(clock_.Now() - start_, 5s);
}

TEST_F(FakeClockTest, RunsWhatFallsDueInOrderAtItsTimes) {
  CallIn(3s, 3);
  CallIn(1s, 1);
  CallIn(3s, 4);
  CallIn(2s, 2);
  CallIn(6s, 6);
  clock_.Advance(5s);
  EXPECT_THAT(calls_, ElementsAre(Pair(1, 1s), Pair(2, 2s), Pair(3, 3s), Pair(4, 3s)));
  EXPECT_EQ(clock_.Now() - start_, 5s);
  EXPECT_EQ(clock_.pending(), 1u);
}

TEST_F(FakeClockTest, RunsWhatCallbacksScheduleWithinTheSpan) {
  clock_.CallAt(start_ + 1s, [this] {
    CallIn(1s, 2);
    CallIn(9s, 10);
  });
  clock_.Advance(5s);
  EXPECT_THAT(calls_, ElementsAre(Pair(2, 2s)));
}

TEST_F(FakeClockTest, ATimeThatHasPassedIsDueAtTheNextMoveAndDoesNotTurnTimeBack) {
  clock_.Advance(5s);
  CallIn(-2s, 1);
  EXPECT_THAT(calls_, IsEmpty());
  clock_.Advance(0s);
  EXPECT_THAT(calls_, ElementsAre(Pair(1, 5s)));
}

TEST_F(FakeClockTest, AdvanceToNextGoesToTheNextDueTimeOnly) {
  CallIn(1s, 1);
  CallIn(1s, 2);
  CallIn(2s, 3);
  EXPECT_TRUE(clock_.AdvanceToNext());
  EXPECT_THAT(calls_, ElementsAre(Pair(1, 1s), Pair(2, 1s)));
  EXPECT_TRUE(clock_.AdvanceToNext());
  EXPECT_FALSE(clock_.AdvanceToNext());
  EXPECT_EQ(clock_.Now() - start_, 2s);
}

TEST(FakeClockEndTest, DropsWhatIsStillScheduled) {
  int calls = 0;
  {
    FakeClock clock;
    clock.CallAt(clock.Now(), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace echopipe::testing
