#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/runway.h>

namespace echopipe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A runway with a consumer in front of it that takes a batch after the other.
class Driver {
 public:
  explicit Driver(const RunwayOptions& options) : options_(options), runway_(options) {}

  /// So many draws are ahead.
  void SetAhead(uint64_t ahead) {
    ahead_ = ahead;
    runway_.NoteDraws(taken_ + ahead_, ahead_);
  }
  /// The consumer takes a batch, of so many draws, and uses it for so long.
  void Use(Clock::Duration time, uint64_t draws = 0) {
    taken_ += draws == 0 ? options_.batch : draws;
    SetAhead(ahead_);
    ++consumer_.batches;
    consumer_.busy += time;
    runway_.NoteConsumer(consumer_);
  }
  void Wait(Clock::Duration time) {
    consumer_.waited += time;
    runway_.NoteConsumer(consumer_);
  }
  /// Fills the window for a moment.
  void Arm() {
    SetAhead(options_.window);
    SetAhead(0);
  }
  const Runway& runway() const { return runway_; }

 private:
  RunwayOptions options_;
  Runway runway_;
  uint64_t taken_ = 0;
  uint64_t ahead_ = 0;
  Runway::Consumer consumer_;
};

TEST(RunwayTest, IsNotLowBeforeItIsArmed) {
  Driver driver({.window = 40, .batch = 10});
  EXPECT_FALSE(driver.runway().IsLow());
  driver.SetAhead(39);
  driver.SetAhead(0);
  EXPECT_FALSE(driver.runway().armed());
  EXPECT_FALSE(driver.runway().IsLow());
}

TEST(RunwayTest, AFullWindowArmsItForGood) {
  Driver driver({.window = 40, .batch = 10});
  driver.SetAhead(40);
  EXPECT_TRUE(driver.runway().armed());
  EXPECT_FALSE(driver.runway().IsLow());
  driver.SetAhead(0);
  EXPECT_TRUE(driver.runway().IsLow());
}

TEST(RunwayTest, WaitsLongerThanAFullWindowLastsArmIt) {
  Driver driver({.window = 40, .batch = 10});
  driver.Use(milliseconds(100));
  driver.Wait(milliseconds(250));
  driver.Use(milliseconds(100));
  driver.Wait(milliseconds(150));
  EXPECT_FALSE(driver.runway().armed());
  driver.Wait(microseconds(1));
  EXPECT_TRUE(driver.runway().armed());
  EXPECT_TRUE(driver.runway().IsLow());
}

TEST(RunwayTest, WaitsDoNotArmItWhileNoTimeForABatchIsKnown) {
  Driver driver({.window = 40, .batch = 10});
  driver.Wait(seconds(100));
  EXPECT_FALSE(driver.runway().armed());
  EXPECT_EQ(driver.runway().TimeToArm(), std::nullopt);
}

TEST(RunwayTest, AConsumerThatTakesNoTimeArmsItWithItsFirstWait) {
  Driver driver({.window = 40, .batch = 10});
  driver.Use(seconds(0));
  EXPECT_FALSE(driver.runway().armed());
  driver.Wait(microseconds(1));
  EXPECT_TRUE(driver.runway().armed());
}

TEST(RunwayTest, TheTimeToArmIsWhatIsMissingInWaits) {
  Driver driver({.window = 40, .batch = 10});
  driver.Use(milliseconds(100));
  driver.Wait(milliseconds(150));
  const std::optional<Clock::Duration> left = driver.runway().TimeToArm();
  ASSERT_TRUE(left);
  EXPECT_GE(*left, milliseconds(250));
  EXPECT_LE(*left, milliseconds(251));
  driver.Wait(*left);
  EXPECT_TRUE(driver.runway().armed());
  EXPECT_EQ(driver.runway().TimeToArm(), std::nullopt);
}

TEST(RunwayTest, WithoutALowWaterItIsOneAndAHalfBatches) {
  Driver driver({.window = 400, .batch = 10});
  driver.Arm();
  EXPECT_EQ(driver.runway().low_water(), 15);
  driver.SetAhead(15);
  EXPECT_FALSE(driver.runway().IsLow());
  driver.SetAhead(14);
  EXPECT_TRUE(driver.runway().IsLow());
}

TEST(RunwayTest, LowWaterInTimeFollowsTheConsumersOwn) {
  Driver driver({.window = 400, .batch = 10, .low_water = milliseconds(300)});
  EXPECT_EQ(driver.runway().low_water(), 15);  // nothing is known yet
  for (int i = 0; i < 15; ++i) driver.Use(milliseconds(100));
  EXPECT_EQ(driver.runway().low_water(), 30);
  for (int i = 0; i < 15; ++i) driver.Use(milliseconds(50));
  EXPECT_EQ(driver.runway().low_water(), 60);
}

TEST(RunwayTest, LowWaterIsABatchAtLeastAndTheWindowButForABatchAtMost) {
  for (const auto& [low_water, wanted] :
       {std::pair(milliseconds(0), 10U), std::pair(milliseconds(99), 10U),
        std::pair(milliseconds(101), 11U), std::pair(milliseconds(299), 30U),
        std::pair(milliseconds(301), 30U)}) {
    Driver driver({.window = 40, .batch = 10, .low_water = low_water});
    driver.Use(milliseconds(100));
    EXPECT_EQ(driver.runway().low_water(), wanted) << low_water.count();
  }
  EXPECT_EQ(Driver({.window = 22, .batch = 10}).runway().low_water(), 12);
  EXPECT_EQ(Driver({.window = 15, .batch = 10}).runway().low_water(), 10);
}

TEST(RunwayTest, AConsumerThatTakesNoTimeHasTheHighestLowWater) {
  Driver driver({.window = 40, .batch = 10, .low_water = milliseconds(1)});
  driver.Use(seconds(0));
  EXPECT_EQ(driver.runway().low_water(), 30);
}

TEST(RunwayTest, ASlowFirstStepAndPausesDoNotCount) {
  Driver driver({.window = 400, .batch = 10, .low_water = milliseconds(300)});
  driver.Use(seconds(30));
  for (int i = 0; i < 100; ++i) {
    driver.Use(milliseconds(i % 10 == 5 ? 60'000 : 100));
    EXPECT_EQ(driver.runway().low_water(), 30) << i;
  }
}

TEST(RunwayTest, SeveralBatchesBetweenTwoLooksAreAsManySteps) {
  Runway runway({.window = 400, .batch = 10, .low_water = milliseconds(300)});
  runway.NoteDraws(30, 0);
  runway.NoteConsumer({.batches = 3, .busy = milliseconds(300)});
  EXPECT_EQ(runway.low_water(), 30);
}

TEST(RunwayTest, WhereDrawsBecomeTombstonesABatchIsMoreDraws) {
  Driver driver({.window = 400, .batch = 10});
  for (int i = 0; i < 15; ++i) driver.Use(milliseconds(100), i % 2 == 0 ? 20 : 30);
  EXPECT_EQ(driver.runway().low_water(), 36);                     // one and a half times 24
  for (int i = 0; i < 15; ++i) driver.Use(milliseconds(100), 5);  // ends of epochs
  EXPECT_EQ(driver.runway().low_water(), 15);
}

TEST(RunwayTest, ABatchTakenAndNotYetUsedDoesNotCountAsTombstones) {
  Runway runway({.window = 400, .batch = 10});
  for (uint64_t batches = 1; batches < 40; ++batches) {
    const uint64_t in_use = batches % 7 == 3 ? 0 : 1;
    runway.NoteDraws(10 * (batches + in_use), 0);
    runway.NoteConsumer({.batches = batches, .busy = milliseconds(100) * batches});
    EXPECT_EQ(runway.low_water(), 15) << batches;
  }
}

TEST(RunwayOptionsTest, ASettingOutOfRangeIsNamed) {
  const auto where = [](const RunwayOptions& options) -> std::string {
    try {
      const Runway runway(options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.details().where;
    }
  };
  EXPECT_EQ(where({.window = 0}), "window");
  EXPECT_EQ(where({.window = 4, .batch = 0}), "batch.size");
  EXPECT_EQ(where({.window = 4, .batch = 5}), "batch.size");
  EXPECT_EQ(where({.window = 4, .batch = 4}), "");
  EXPECT_EQ(where({.low_water = milliseconds(-1)}), "echo.adaptive.low_water_ms");
  EXPECT_EQ(where({.low_water = milliseconds(0)}), "");
}

}  // namespace
}  // namespace echopipe
