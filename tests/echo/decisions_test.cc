#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/decisions.h>

namespace echopipe {
namespace {

using Situation = Decisions::Situation;
using Step = Decisions::Step;

constexpr bool kBools[] = {false, true};

TEST(LiveDecisionsTest, AFreshItemGoesFirstWhateverElseIsTrue) {
  for (const bool low : kBools) {
    Runway runway({.window = 4});
    if (low) runway.NoteDraws(4, 4);
    runway.NoteDraws(4, 0);
    ASSERT_EQ(runway.IsLow(), low);
    for (const bool ended : kBools) {
      for (const bool can_echo : kBools) {
        LiveDecisions decisions(runway);
        EXPECT_EQ(decisions.Next({true, ended, can_echo}), Step::kFresh);
      }
    }
  }
}

TEST(LiveDecisionsTest, AnEchoNeedsALowRunwayADrawableItemAndAnUpstreamThatGoesOn) {
  for (const bool low : kBools) {
    Runway runway({.window = 4});
    if (low) runway.NoteDraws(4, 4);
    runway.NoteDraws(4, 0);
    for (const bool can_echo : kBools) {
      LiveDecisions decisions(runway);
      EXPECT_EQ(decisions.Next({false, false, can_echo}),
                low && can_echo ? Step::kEcho : Step::kWait);
      EXPECT_EQ(decisions.Next({false, true, can_echo}), Step::kEnd);
    }
  }
}

DecisionReader ReaderOf(const std::string& decisions, uint64_t first_draw = 0) {
  DecisionLogWriter writer(7, first_draw);
  for (const char decision : decisions) {
    writer.Add(decision == 'e' ? Decision::kEcho : Decision::kFresh);
  }
  return {DecisionLog::FromBytes(writer.TakeBytes()), first_draw};
}

TEST(ReplayedDecisionsTest, TheyAreTheLogsWhateverTheRunwayWouldSay) {
  ReplayedDecisions decisions(ReaderOf("fffef"), "after decode");
  const Situation all{.fresh_waits = true, .can_echo = true};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(decisions.Next(all), Step::kFresh);
  EXPECT_EQ(decisions.Next(all), Step::kEcho);
  EXPECT_EQ(decisions.Next(all), Step::kFresh);
}

TEST(ReplayedDecisionsTest, AFreshItemIsWaitedFor) {
  ReplayedDecisions decisions(ReaderOf("fe"), "after decode");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(decisions.Next({.can_echo = true}), Step::kWait);
  EXPECT_EQ(decisions.Next({.fresh_waits = true}), Step::kFresh);
}

TEST(ReplayedDecisionsTest, EchoesAreDrawnThoughUpstreamHasEndedMeanwhile) {
  ReplayedDecisions decisions(ReaderOf("ee"), "after decode");
  const Situation ended{.upstream_ended = true, .can_echo = true};
  EXPECT_EQ(decisions.Next(ended), Step::kEcho);
  EXPECT_EQ(decisions.Next(ended), Step::kEcho);
  EXPECT_EQ(decisions.Next(ended), Step::kEnd);
}

TEST(ReplayedDecisionsTest, BehindTheLastDecisionOnlyTheEndMayCome) {
  ReplayedDecisions decisions(ReaderOf("f"), "after decode");
  EXPECT_EQ(decisions.Next({.fresh_waits = true}), Step::kFresh);
  EXPECT_EQ(decisions.Next({.can_echo = true}), Step::kWait);
  EXPECT_EQ(decisions.Next({.upstream_ended = true, .can_echo = true}), Step::kEnd);
}

/// What cannot be followed, at the log's second draw.
struct Refused {
  std::string log;
  Situation situation;
  ErrorCode code;
  std::string got;
};

TEST(ReplayedDecisionsTest, WhatCannotBeFollowedIsRefusedByPointAndDrawAgainAndAgain) {
  const Refused refused[] = {
      {"fe", {.fresh_waits = true}, ErrorCode::kInvalidArgument, "an echo"},
      {"fe", {.upstream_ended = true}, ErrorCode::kInvalidArgument, "an echo"},
      {"ff",
       {.upstream_ended = true, .can_echo = true},
       ErrorCode::kInvalidArgument,
       "a fresh item"},
      {"f", {.fresh_waits = true, .can_echo = true}, ErrorCode::kTruncated, "no decision"},
  };
  for (const Refused& r : refused) {
    ReplayedDecisions decisions(ReaderOf(r.log, 1'000), "after decode");
    ASSERT_EQ(decisions.Next({.fresh_waits = true}), Step::kFresh);
    for (int i = 0; i < 2; ++i) {
      try {
        decisions.Next(r.situation);
        ADD_FAILURE() << r.log << " was followed";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), r.code);
        EXPECT_EQ(error.details().where, "echo point after decode, draw 1001");
        EXPECT_EQ(error.details().got, r.got);
      }
    }
  }
}

}  // namespace
}  // namespace echopipe
