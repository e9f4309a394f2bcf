#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/tests/echo/adaptive_simulation.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AdaptiveSimulation;
using testing::Outcome;
using testing::Scenario;

double Seconds(Clock::Duration time) { return std::chrono::duration<double>(time).count(); }

/// The same items in the same order, whenever.
::testing::AssertionResult SameDraws(const Outcome& one, const Outcome& other) {
  if (std::ranges::equal(
          one.draws, other.draws, {},
          [](const auto& draw) { return std::pair(draw.item, draw.use); },
          [](const auto& draw) { return std::pair(draw.item, draw.use); })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << one.draws.size() << " and " << other.draws.size() << " draws, not all alike";
}

/// After the first half a second and some steps.
constexpr size_t kWarmUp = 2'000;

double StallShare(const Outcome& outcome, Clock::Duration from) {
  return Seconds(outcome.Waited(from)) / Seconds(outcome.End() - from);
}

// ---- the simulation itself

TEST(AdaptiveSimulationTest, WithoutEchoesTheConsumerWaitsForUpstreamAsArithmeticSays) {
  for (const double r : {1.25, 2.0, 4.0}) {
    Scenario scenario{.r = r};
    scenario.options.max_factor = 1;
    AdaptiveSimulation simulation(scenario);
    const Outcome& outcome = simulation.Run();
    EXPECT_TRUE(simulation.told_end());
    EXPECT_EQ(outcome.draws.size(), scenario.items);
    EXPECT_NEAR(StallShare(outcome, Clock::Duration{}), 1 - 1 / r, 0.01) << r;
  }
}

TEST(AdaptiveSimulationTest, WorkTooSlowForTheConsumerMakesItWaitToo) {
  AdaptiveSimulation simulation({.r = 0.5, .work = milliseconds(8), .threads = 4});
  EXPECT_NEAR(StallShare(simulation.Run(), Clock::Duration{}), 0.5, 0.01);
}

TEST(AdaptiveSimulationTest, AllThatIsDrawnReachesTheConsumer) {
  AdaptiveSimulation simulation({.items = 5'001, .r = 2, .jitter = 0.5, .work = milliseconds(2)});
  const Outcome& outcome = simulation.Run();
  uint64_t examples = 0;
  for (const Outcome::Batch& batch : outcome.batches) examples += batch.examples;
  EXPECT_EQ(examples, outcome.draws.size());
  EXPECT_EQ(outcome.Fresh(), 5'001);
}

// ---- an upstream that keeps up

struct KeepingUp {
  double r = 1;
  uint64_t batch = 64;
  uint64_t batches_in_window = 4;
};

void PrintTo(const KeepingUp& k, std::ostream* out) {
  *out << "R " << k.r << ", batches of " << k.batch << ", " << k.batches_in_window
       << " in the window";
}

Scenario ScenarioOf(const KeepingUp& k) {
  Scenario scenario{.batch = k.batch,
                    .window = k.batch * k.batches_in_window,
                    .items = 10'000,
                    .r = k.r,
                    .jitter = 0.5};
  scenario.options.spacing = k.batch;
  scenario.options.shuffle_buffer = 4 * k.batch;
  return scenario;
}

/// Stops shorter than what the window bridges, the next one when it must be full again.
std::vector<Scenario::Stop> RandomHiccups(const Scenario& scenario, uint64_t low_water,
                                          RandomStream& random) {
  const double most = static_cast<double>(scenario.window - low_water - scenario.batch);
  std::vector<Scenario::Stop> stops;
  for (uint64_t item = random.Below(2'000); item < scenario.items;) {
    const double length = random.Uniform() * most;
    stops.push_back(
        {item, std::chrono::duration_cast<Clock::Duration>(scenario.example_time * length * 0.99)});
    const double to_recover = (static_cast<double>(scenario.window) + length) / (1 - scenario.r);
    item += static_cast<uint64_t>(1.3 * to_recover) + random.Below(1'000);
  }
  return stops;
}

class AnUpstreamThatKeepsUp : public ::testing::TestWithParam<KeepingUp> {};

TEST_P(AnUpstreamThatKeepsUp, GetsNoEchoFromTheFirstDrawOnWhateverItsHiccups) {
  int hiccups = 0;
  for (uint64_t seed = 0; seed < 5 * testing::kThoroughness; ++seed) {
    RandomStream random({.low = seed, .high = 0x41cc});
    Scenario scenario = ScenarioOf(GetParam());
    scenario.seed = seed;
    uint64_t low_water = scenario.batch + scenario.batch / 2;
    if (random.Bernoulli(0.5)) {
      low_water = scenario.batch + random.Below(static_cast<uint32_t>(scenario.batch));
      scenario.low_water = scenario.example_time * low_water;
    }
    scenario.stops = RandomHiccups(scenario, low_water, random);
    hiccups += static_cast<int>(scenario.stops.size());
    AdaptiveSimulation simulation(scenario);
    ASSERT_EQ(simulation.Run().draws.size(), scenario.items) << "seed " << seed;
    ASSERT_TRUE(simulation.runway().armed());
  }
  EXPECT_GT(hiccups, 5 * testing::kThoroughness);
}

TEST_P(AnUpstreamThatKeepsUp, GetsEchoesInALongerStop) {
  Scenario scenario = ScenarioOf(GetParam());
  scenario.stops = {{.item = 9'000, .length = scenario.example_time * 2 * scenario.window}};
  AdaptiveSimulation simulation(scenario);
  EXPECT_GT(simulation.Run().draws.size(), scenario.items);
}

INSTANTIATE_TEST_SUITE_P(Upstreams, AnUpstreamThatKeepsUp,
                         ::testing::Values(KeepingUp{.r = 0.5}, KeepingUp{.r = 0.8},
                                           KeepingUp{.r = 0.95}, KeepingUp{.r = 0.8, .batch = 16},
                                           KeepingUp{
                                               .r = 0.95, .batch = 32, .batches_in_window = 5},
                                           KeepingUp{.r = 0.5, .batch = 256}));

// ---- an upstream that is too slow

struct TooSlow {
  double r = 1;
  double jitter = 0;
  double consumer_jitter = 0;
  double work = 0;  ///< as a share of what the threads can do
  uint32_t max_factor = 8;
};

void PrintTo(const TooSlow& t, std::ostream* out) {
  *out << "R " << t.r << ", jitter " << t.jitter << ", consumer's " << t.consumer_jitter
       << ", work " << t.work << ", max_factor " << t.max_factor;
}

Scenario ScenarioOf(const TooSlow& t) {
  Scenario scenario{
      .items = 30'000, .r = t.r, .jitter = t.jitter, .consumer_jitter = t.consumer_jitter};
  scenario.work = std::chrono::duration_cast<Clock::Duration>(
      scenario.example_time * static_cast<double>(scenario.threads) * t.work);
  scenario.options.max_factor = t.max_factor;
  return scenario;
}

class AnUpstreamThatIsTooSlow : public ::testing::TestWithParam<TooSlow> {};

TEST_P(AnUpstreamThatIsTooSlow, IsEchoedByAsMuchAndTheConsumerDoesNotWait) {
  const Scenario scenario = ScenarioOf(GetParam());
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  const auto draws = static_cast<double>(outcome.draws.size() - kWarmUp);
  EXPECT_NEAR(draws / static_cast<double>(outcome.Fresh(kWarmUp)), scenario.r, 0.05 * scenario.r);
  EXPECT_LT(StallShare(outcome, outcome.draws[kWarmUp].at), 0.02);
}

TEST_P(AnUpstreamThatIsTooSlow, CostsNoMoreThanAFullWindowAndABatchOfItBeforeItIsArmed) {
  const Scenario scenario = ScenarioOf(GetParam());
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  const Clock::Duration first = outcome.batches.front().taken;
  const double batch = static_cast<double>(scenario.batch) * scenario.r;
  EXPECT_LT(Seconds(outcome.Waited(first + Clock::Duration(1), outcome.draws[kWarmUp].at)),
            Seconds(scenario.example_time) * 1.2 * (static_cast<double>(scenario.window) + batch));
}

TEST_P(AnUpstreamThatIsTooSlow, HasItsItemsUsedEvenlyAndFarApart) {
  const Scenario scenario = ScenarioOf(GetParam());
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  std::map<uint64_t, std::vector<uint64_t>> uses;
  for (size_t i = 0; i < outcome.draws.size(); ++i) uses[outcome.draws[i].item].push_back(i);
  double sum = 0;
  double squares = 0;
  double items = 0;
  std::vector<uint64_t> distances;
  for (const auto& [item, draws] : uses) {
    if (item < 1'000 || item + 1'000 >= scenario.items) continue;
    const auto count = static_cast<double>(draws.size());
    sum += count;
    squares += count * count;
    ++items;
    for (size_t i = 1; i < draws.size(); ++i) distances.push_back(draws[i] - draws[i - 1]);
  }
  const double mean = sum / items;
  const double deviation = std::sqrt(squares / items - mean * mean);
  EXPECT_LT(deviation, 0.6);
  const auto median = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::ranges::nth_element(distances, median);
  EXPECT_GE(static_cast<double>(*median), 2.5 * static_cast<double>(scenario.options.spacing));
  RecordProperty("deviation", std::to_string(deviation));
  RecordProperty("median_distance", std::to_string(*median));
}

INSTANTIATE_TEST_SUITE_P(Upstreams, AnUpstreamThatIsTooSlow,
                         ::testing::Values(TooSlow{.r = 1.5}, TooSlow{.r = 3}, TooSlow{.r = 6},
                                           TooSlow{.r = 1.5, .jitter = 0.5, .consumer_jitter = 0.3},
                                           TooSlow{.r = 3, .jitter = 0.5, .consumer_jitter = 0.3},
                                           TooSlow{.r = 6, .jitter = 0.5, .consumer_jitter = 0.3},
                                           TooSlow{.r = 1.5, .jitter = 0.5, .work = 0.95},
                                           TooSlow{.r = 3, .jitter = 0.5, .work = 0.95},
                                           TooSlow{.r = 6, .jitter = 0.5, .work = 0.95},
                                           TooSlow{.r = 1.5, .jitter = 0.5, .max_factor = 2},
                                           TooSlow{.r = 3, .jitter = 0.5, .max_factor = 4},
                                           TooSlow{.r = 12, .jitter = 0.5, .max_factor = 16}));

TEST(AdaptiveEchoTest, AConsumerBehindAFilterDoesNotWaitEither) {
  Scenario scenario{.window = 512, .items = 30'000, .r = 0.75, .jitter = 0.5, .filtered = 0.5};
  scenario.options.spacing = 128;
  scenario.options.shuffle_buffer = 512;
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  const auto draws = static_cast<double>(outcome.draws.size() - kWarmUp);
  EXPECT_NEAR(draws / static_cast<double>(outcome.Fresh(kWarmUp)), 1.5, 0.075);
  EXPECT_LT(StallShare(outcome, outcome.draws[kWarmUp].at), 0.02);
}

TEST(AdaptiveEchoTest, FactorsBeyondMaxFactorAreWaitedFor) {
  Scenario scenario{.items = 5'000, .r = 6};
  scenario.options.max_factor = 3;
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  EXPECT_TRUE(simulation.told_end());
  EXPECT_NEAR(StallShare(outcome, outcome.draws[kWarmUp].at), 0.5, 0.02);
}

TEST(AdaptiveEchoTest, AStopBeforeTheWindowHasBeenFullIsBridgedOnceTheWaitsHaveArmedIt) {
  AdaptiveSimulation simulation(
      {.items = 1'000, .r = 1.2, .stops = {{.item = 400, .length = seconds(100)}}});
  const Outcome& outcome = simulation.Run();
  // Nothing else happens meanwhile: only the time that passes arms it.
  const auto echo = std::ranges::find_if(outcome.draws, [](const auto& d) { return d.use > 0; });
  ASSERT_NE(echo, outcome.draws.end());
  EXPECT_EQ(echo - outcome.draws.begin(), 400);
  EXPECT_LT(echo->at, seconds(2));
}

// ---- stops

/// The most that an upstream may stop at some item with no stall: what is ahead of the consumer
/// by then but a batch, and what the pool has left but the uses that spacing may hold back.
Clock::Duration Bridgeable(Scenario scenario, uint64_t item) {
  scenario.items = item;
  AdaptiveSimulation simulation(scenario);
  simulation.Run();
  const uint64_t held_back = (scenario.options.spacing - 1) * (scenario.options.max_factor - 1);
  EXPECT_GT(simulation.buffer().order().uses_left(), held_back);
  return scenario.example_time * (simulation.buffer().order().uses_left() - held_back);
}

class AStop : public ::testing::TestWithParam<double> {
 protected:
  static constexpr uint64_t kStopAt = 6'000;

  Scenario ScenarioWithStop(double bridgeable) const {
    Scenario scenario{.items = 14'000, .r = GetParam(), .jitter = 0.5};
    const double length = Seconds(Bridgeable(scenario, kStopAt)) * bridgeable;
    scenario.stops = {{.item = kStopAt,
                       .length = std::chrono::duration_cast<Clock::Duration>(
                           std::chrono::duration<double>(length))}};
    return scenario;
  }
};

TEST_P(AStop, ThatThePoolCanBridgeCostsNoStall) {
  AdaptiveSimulation simulation(ScenarioWithStop(1));
  const Outcome& outcome = simulation.Run();
  EXPECT_EQ(outcome.Waited(outcome.draws[kWarmUp].at, outcome.End() - seconds(1)).count(), 0);
}

TEST_P(AStop, ThatIsLongerIsWaitedForAndThenForgotten) {
  const Scenario scenario = ScenarioWithStop(3);
  AdaptiveSimulation simulation(scenario);
  const Outcome& outcome = simulation.Run();
  EXPECT_TRUE(simulation.told_end());
  EXPECT_GT(outcome.Waited(Clock::Duration{}), scenario.stops.front().length / 4);
  // The last quarter is as if nothing had been.
  const size_t from = outcome.draws.size() * 3 / 4;
  const auto draws = static_cast<double>(outcome.draws.size() - from);
  const double factor = std::max(1.0, scenario.r);
  EXPECT_NEAR(draws / static_cast<double>(outcome.Fresh(from)), factor, 0.05 * (factor - 1));
  EXPECT_EQ(outcome.Waited(outcome.draws[from].at, outcome.End() - seconds(1)).count(), 0);
}

TEST_P(AStop, IsReplayedFromTheLogWhateverTheSpeeds) {
  for (const double bridgeable : {1.0, 3.0}) {
    const Scenario scenario = ScenarioWithStop(bridgeable);
    DecisionLogWriter writer(0, 0);
    AdaptiveSimulation recorded(scenario);
    recorded.Record(&writer);
    const Outcome& outcome = recorded.Run();
    const DecisionLog log = DecisionLog::FromBytes(writer.TakeBytes());
    for (const double r : {0.1, 2.0, 5.0}) {
      Scenario other = scenario;
      other.r = r;
      other.stops = {};
      other.window = scenario.window + static_cast<uint64_t>(64 * r);
      other.work = milliseconds(1);
      AdaptiveSimulation replayed(other);
      replayed.Follow(std::make_unique<ReplayedDecisions>(DecisionReader(log, 0), "after decode"));
      EXPECT_TRUE(SameDraws(replayed.Run(), outcome)) << r;
      EXPECT_TRUE(replayed.told_end());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Upstreams, AStop, ::testing::Values(0.5, 0.8, 1.5, 3.0));

// ---- going on

/// A run with its log, and the echo point's states behind its batches.
class Recorded {
 public:
  explicit Recorded(const Scenario& scenario) : scenario_(scenario), simulation_(scenario) {
    DecisionLogWriter writer(0, 0);
    simulation_.Record(&writer);
    simulation_.Run();
    log_ = DecisionLog::FromBytes(writer.TakeBytes());
  }

  /// Draws that the consumer has been given with so many batches.
  uint64_t DrawsOf(size_t batches) const {
    uint64_t draws = 0;
    for (size_t i = 0; i < batches; ++i) draws += outcome().batches[i].examples;
    return draws;
  }
  /// What a shadow knows: the decisions alone.
  AdaptiveState StateAt(uint64_t draws) const {
    AdaptiveOrder shadow(scenario_.options);
    DecisionReader reader(*log_, 0);
    for (; shadow.draws() < draws; reader.Advance()) {
      if (reader.next().decision == Decision::kFresh) {
        shadow.Admit();
      } else {
        shadow.Echo();
      }
    }
    return shadow.State();
  }
  /// The draws up to one, and those of a run that has gone on from there.
  Outcome With(const Outcome& after, uint64_t draws) const {
    Outcome both{.draws = {outcome().draws.begin(),
                           outcome().draws.begin() + static_cast<std::ptrdiff_t>(draws)},
                 .batches = {}};
    both.draws.insert(both.draws.end(), after.draws.begin(), after.draws.end());
    return both;
  }
  const Outcome& outcome() const { return simulation_.outcome(); }
  const DecisionLog& log() const { return *log_; }

 private:
  Scenario scenario_;
  AdaptiveSimulation simulation_;
  std::optional<DecisionLog> log_;
};

/// R 2, with a stop that the pool cannot bridge.
Scenario Eventful(uint64_t seed) {
  Scenario scenario{.items = 3'000,
                    .r = 2,
                    .jitter = 0.5,
                    .stops = {{.item = 1'500, .length = seconds(3)}},
                    .seed = seed};
  scenario.options.seed = seed;
  return scenario;
}

TEST(AdaptiveResumeTest, WithTheLogTheRestIsEqualAfterAnyBatch) {
  const Recorded run(Eventful(1));
  for (size_t batches = 0; batches <= run.outcome().batches.size(); batches += 3) {
    const uint64_t draws = run.DrawsOf(batches);
    Scenario other = Eventful(1);
    other.seed = batches;
    other.r = 0.3;
    AdaptiveSimulation rest(other);
    rest.GoOnFrom(run.StateAt(draws));
    rest.Follow(std::make_unique<ReplayedDecisions>(DecisionReader(run.log(), draws), "here"));
    ASSERT_TRUE(SameDraws(run.With(rest.Run(), draws), run.outcome())) << batches;
  }
}

void ExpectLawful(const Outcome& outcome, const Scenario& scenario) {
  std::vector<uint32_t> uses;
  std::vector<size_t> last_draw;
  for (size_t i = 0; i < outcome.draws.size(); ++i) {
    const Outcome::Draw& draw = outcome.draws[i];
    if (draw.use == 0) {
      ASSERT_EQ(draw.item, uses.size());
      uses.push_back(0);
      last_draw.push_back(i);
    } else {
      ASSERT_GE(i - last_draw.at(draw.item), scenario.options.spacing);
      last_draw[draw.item] = i;
    }
    ASSERT_EQ(draw.use, uses.at(draw.item)++);
    ASSERT_LT(draw.use, scenario.options.max_factor);
  }
  ASSERT_EQ(uses.size(), scenario.items);
}

TEST(AdaptiveResumeTest, WithoutTheLogNoItemIsLostAndNoneUsedTooOften) {
  const Scenario scenario = Eventful(1);
  const Recorded run(scenario);
  ExpectLawful(run.outcome(), scenario);
  for (size_t batches = 0; batches <= run.outcome().batches.size(); batches += 3) {
    const uint64_t draws = run.DrawsOf(batches);
    Scenario other = scenario;
    other.seed = 100 + batches;
    AdaptiveSimulation rest(other);
    rest.GoOnFrom(run.StateAt(draws));
    const Outcome both = run.With(rest.Run(), draws);
    ASSERT_NO_FATAL_FAILURE(ExpectLawful(both, scenario)) << batches;
  }
}

TEST(AdaptiveResumeTest, OneLogTellsOfARunAndOfWhatWentOnFromIt) {
  const Scenario scenario = Eventful(1);
  const Recorded run(scenario);
  const uint64_t draws = run.DrawsOf(40);
  AdaptiveSimulation rest(Eventful(1));
  rest.GoOnFrom(run.StateAt(draws));
  DecisionLogWriter writer(run.log(), draws);
  rest.Record(&writer);
  const Outcome both = run.With(rest.Run(), draws);

  AdaptiveSimulation replayed(scenario);
  replayed.Follow(std::make_unique<ReplayedDecisions>(
      DecisionReader(DecisionLog::FromBytes(writer.TakeBytes()), 0), "here"));
  EXPECT_TRUE(SameDraws(replayed.Run(), both));
}

TEST(AdaptiveResumeTest, ALogOfAnotherPipelineIsRefusedByPointAndDraw) {
  const Recorded run(Eventful(1));
  Scenario other = Eventful(1);
  other.options.max_factor = 2;  // an item that the log repeats has left
  AdaptiveSimulation replayed(other);
  replayed.Follow(std::make_unique<ReplayedDecisions>(DecisionReader(run.log(), 0), "here"));
  try {
    replayed.Run();
    FAIL() << "followed to the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.details().where,
              "echo point here, draw " + std::to_string(replayed.outcome().draws.size()));
  }
}

}  // namespace
}  // namespace echopipe
