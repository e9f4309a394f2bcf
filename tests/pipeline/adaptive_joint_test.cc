// What an adaptive echo point does, message by message, without a pipeline around it.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/adaptive_joint.h>
#include <echopipe/tests/support/fake_clock.h>

namespace echopipe::internal {
namespace {

using ::testing::ElementsAre;
using testing::FakeClock;
using ::testing::IsEmpty;

constexpr uint64_t kWindow = 4;
constexpr Decision kFresh = Decision::kFresh;
constexpr Decision kEcho = Decision::kEcho;

/// An echo point in front of a window of four items, each of them a batch. Draws are written as
/// "ordinal.use".
class AdaptiveJointTest : public ::testing::Test {
 protected:
  using Draws = std::vector<std::string>;

  void Make(std::optional<AdaptiveJoint::Start> start = std::nullopt, uint64_t epochs = 0,
            std::optional<DecisionReader> replay = std::nullopt) {
    joint_ = std::make_unique<AdaptiveJoint>(
        point_, EchoPointJoint::Position{.index = 0, .gaps = of_batches_ ? nullptr : &gaps_},
        std::move(start),
        EchoPointJoint::Windows{.upstream = 16, .downstream = kWindow, .upstream_full = 16},
        AdaptiveJoint::Options{.runway = {.window = kWindow, .batch = 1},
                               .epochs = epochs,
                               .replay = std::move(replay)},
        AdaptiveJoint::Surroundings{
            .outlet = &outlet_, .shadow = &decisions_, .wake_at = [](Clock::Time) {}},
        clock_);
  }

  std::shared_ptr<Item> ItemOf(uint64_t ordinal) const {
    auto item = std::make_shared<Item>();
    item->identity.ordinal = ordinal;
    if (of_batches_) {
      item->batch = std::make_shared<const Batch::Content>();
    } else {
      item->example = std::make_shared<const Example>();
    }
    return item;
  }

  /// What it draws in answer.
  Draws Receive(Message message) {
    joint_->Receive(std::move(message), outbox_);
    Draws draws;
    for (const Message& sent : outbox_.downstream()) {
      draws.push_back(sent.kind == Message::Kind::kEnd
                          ? (sent.error ? sent.error->what() : "end")
                          : std::to_string(sent.item->identity.ordinal) + "." +
                                std::to_string(sent.item->identity.use[0]));
    }
    outbox_.downstream().clear();
    return draws;
  }
  Draws Put(std::shared_ptr<Item> item) {
    Message message = Message::Of(std::move(item));
    message.sequence = sequence_++;
    return Receive(std::move(message));
  }
  Draws PutFresh(uint64_t ordinal) { return Put(ItemOf(ordinal)); }
  Draws PutEnd() {
    Message message = Message::End(nullptr);
    message.sequence = sequence_++;
    return Receive(std::move(message));
  }
  Draws ReturnCredits(uint64_t credits) { return Receive(Message::Credit(credits)); }
  Draws ReadAgain(EchoOrder::Slot slot, uint64_t ordinal) {
    std::shared_ptr<Item> item = ItemOf(ordinal);
    auto to = std::make_shared<Destination>();
    to->slot = slot;
    if (of_batches_) to->batch = std::make_shared<const ShadowBatch>();
    item->destination = std::move(to);
    return Receive(Message::Of(std::move(item)));
  }
  /// Items 0, 1, ... until the window is full, which arms it.
  void Fill(uint64_t first = 0) {
    for (uint64_t i = 0; i < kWindow; ++i) {
      ASSERT_THAT(PutFresh(first + i), ElementsAre(std::to_string(first + i) + ".0"));
    }
  }

  /// Behind so many fresh items, whose residents are not there.
  AdaptiveJoint::Start StartBehind(int items) const {
    EpochAdaptive<Item> echo(point_);
    for (int i = 0; i < items; ++i) echo.Admit(std::make_shared<const Item>(), false);
    return {.state = echo.State(),
            .residents = std::vector<std::shared_ptr<const Item>>(echo.order().residents())};
  }
  static DecisionReader LogOf(const std::vector<DecisionRun>& runs, uint64_t draw = 0) {
    DecisionLogWriter writer(1, draw);
    for (const DecisionRun& run : runs) writer.Add(run);
    return DecisionReader(DecisionLog::FromBytes(writer.TakeBytes()), draw);
  }

  std::vector<Decision> TakeDecisions() {
    std::vector<Decision> decisions;
    while (const std::optional<Decision> next = decisions_.Take()) decisions.push_back(*next);
    return decisions;
  }

  EchoPoint point_ = {
      .options = {.shuffle_buffer = 8},
      .position = "after decode",
      .adaptive = AdaptivePoint{.options = {.max_factor = 3, .shuffle_buffer = 8, .spacing = 1}}};
  bool of_batches_ = false;
  FakeClock clock_;
  Log<ShadowLogs::Gap> gaps_;
  Log<Decision> decisions_;
  Outlet outlet_{16, 0, clock_};
  Outbox outbox_{16};
  uint64_t sequence_ = 0;
  std::unique_ptr<AdaptiveJoint> joint_;
};

TEST_F(AdaptiveJointTest, ItRepeatsAsLittleAsKeepsTheRunwayFromBeingLow) {
  Make();
  Fill();
  EXPECT_THAT(ReturnCredits(1), IsEmpty());
  // Low is less than one and a half batches, so under two.
  EXPECT_EQ(ReturnCredits(3).size(), 2u);
  EXPECT_THAT(PutFresh(4), ElementsAre("4.0"));
}

TEST_F(AdaptiveJointTest, BeforeItsWindowWasFullNothingIsRepeated) {
  Make();
  for (uint64_t i = 0; i < 3; ++i) PutFresh(i);
  EXPECT_THAT(ReturnCredits(3), IsEmpty());
}

TEST_F(AdaptiveJointTest, BehindTheLastItemOfTheLastEpochNothingIsRepeated) {
  Make(std::nullopt, /*epochs=*/2);
  for (uint64_t i = 0; i < kWindow; ++i) {
    std::shared_ptr<Item> item = ItemOf(i);
    item->stream_epoch = i / 2;
    item->ends_epoch = i % 2 == 1;
    Put(std::move(item));
  }
  EXPECT_THAT(ReturnCredits(4), IsEmpty());
  EXPECT_THAT(PutEnd(), ElementsAre("end"));
}

TEST_F(AdaptiveJointTest, BehindTheEndOfAnotherEpochItRepeats) {
  Make(std::nullopt, /*epochs=*/3);
  for (uint64_t i = 0; i < kWindow; ++i) {
    std::shared_ptr<Item> item = ItemOf(i);
    item->stream_epoch = i / 2;
    item->ends_epoch = i % 2 == 1;
    Put(std::move(item));
  }
  EXPECT_EQ(ReturnCredits(4).size(), 2u);
}

TEST_F(AdaptiveJointTest, BehindTheBatchThatIsTheLastOfAllNothingIsRepeated) {
  of_batches_ = true;
  Make();
  for (uint64_t i = 0; i < kWindow; ++i) {
    std::shared_ptr<Item> item = ItemOf(i);
    item->ends_stream = i + 1 == kWindow;
    Put(std::move(item));
  }
  EXPECT_THAT(ReturnCredits(4), IsEmpty());
}

TEST_F(AdaptiveJointTest, TombstonesPassAndAreNotRepeated) {
  Make();
  for (uint64_t i = 0; i < kWindow; ++i) {
    std::shared_ptr<Item> item = ItemOf(i);
    item->example = nullptr;
    EXPECT_EQ(Put(std::move(item)).size(), 1u);
  }
  EXPECT_THAT(ReturnCredits(4), IsEmpty());
}

TEST_F(AdaptiveJointTest, UntilAllResidentsHaveBeenReadAgainNothingIsRepeated) {
  Make(StartBehind(2));
  Fill(2);
  EXPECT_THAT(ReturnCredits(4), IsEmpty());
  EXPECT_THAT(ReadAgain(1, 1), IsEmpty());
  EXPECT_THAT(TakeDecisions(), ElementsAre(kFresh, kFresh, kFresh, kFresh)) << "and none waits";
  EXPECT_EQ(ReadAgain(0, 0).size(), 2u);
}

TEST_F(AdaptiveJointTest, AResidentThatHasLeftThePoolIsNotWaitedFor) {
  point_.adaptive->options.shuffle_buffer = 1;
  Make(StartBehind(1));
  Fill(1);
  EXPECT_THAT(ReturnCredits(3), ElementsAre("4.1"));
  EXPECT_THAT(ReadAgain(0, 0), IsEmpty()) << "of its slot, which another has now";
  EXPECT_THAT(ReturnCredits(1), ElementsAre("4.2"));
}

TEST_F(AdaptiveJointTest, AReplayWaitsForAResidentThatItDrawsAndGoesOn) {
  Make(StartBehind(1), 0, LogOf({{kEcho, 1}, {kFresh, 1}}, 1));
  EXPECT_THAT(PutFresh(1), IsEmpty());
  EXPECT_THAT(ReadAgain(0, 0), ElementsAre("0.1", "1.0"));
}

TEST_F(AdaptiveJointTest, AReplayedResidentIsThereForItsLaterUses) {
  point_.adaptive->options.spacing = 0;
  Make(StartBehind(1), 0, LogOf({{kEcho, 2}}, 1));
  EXPECT_THAT(PutFresh(1), IsEmpty());
  EXPECT_THAT(ReadAgain(0, 0),
              ElementsAre("0.1", "0.2", ::testing::HasSubstr("the decision log ends")));
}

TEST_F(AdaptiveJointTest, WhatItDecidesIsInTheLogBeforeItGoesOn) {
  Make();
  Fill();
  ReturnCredits(4);
  EXPECT_THAT(TakeDecisions(), ElementsAre(kFresh, kFresh, kFresh, kFresh, kEcho, kEcho));
}

}  // namespace
}  // namespace echopipe::internal
