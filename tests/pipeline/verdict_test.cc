// The one sentence, for made-up figures.

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/verdict.h>

namespace echopipe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// read, decode, crop and the consumer, with so many seconds for an item of each.
PipelineStats StatsOf(double read, double decode, double crop, double consumer) {
  PipelineStats stats{.examples = 1000, .batches = 100, .examples_per_s = 100, .stall_share = 0.25};
  const auto add = [&](const char* name, double seconds) {
    stats.stages.push_back(
        {.name = name, .items = 1000, .busy_s = seconds * 1000, .seconds_per_item = seconds});
  };
  add("read", read);
  add("decode", decode);
  add("random_crop", crop);
  add("consumer", consumer);
  return stats;
}

EchoPointStats Point(double factor) {
  return {.position = "after source",
          .factor = factor,
          .admitted = 100,
          .draws = static_cast<uint64_t>(100 * factor),
          .factor_effective = factor};
}

TEST(VerdictTest, ASlowReadIsNamedWithWhatEchoingBehindItBrings) {
  const std::string verdict = internal::Verdict(StatsOf(0.010, 0.001, 0.001, 0.0025), {});
  EXPECT_THAT(verdict, StartsWith("read holds the consumer up, which waits 25% of the time "
                                  "(10 ms per example against the consumer's 2.5 ms)"));
  EXPECT_THAT(verdict, HasSubstr("add an echo of factor 4 before decode for about 4.0 times the "
                                 "examples per second."));
}

TEST(VerdictTest, TheEarliestPlaceThatBringsAsMuchIsAdvised) {
  EXPECT_THAT(internal::Verdict(StatsOf(0.010, 0.001, 0.0001, 0.005), {}),
              HasSubstr("add an echo of factor 2 before decode"));
  EXPECT_THAT(internal::Verdict(StatsOf(0.010, 0.008, 0.0001, 0.002), {}),
              HasSubstr("add an echo of factor 5 after decode"));
}

TEST(VerdictTest, ASlowStageIsNamedAndEchoingStandsBehindIt) {
  const std::string verdict = internal::Verdict(StatsOf(0.001, 0.012, 0.0001, 0.003), {});
  EXPECT_THAT(verdict, StartsWith("decode holds the consumer up"));
  EXPECT_THAT(verdict, HasSubstr("add an echo of factor 4 after decode"));
}

TEST(VerdictTest, CpuStagesCountTogether) {
  // Neither alone is slower than reading, both together are.
  const std::string verdict = internal::Verdict(StatsOf(0.010, 0.008, 0.007, 0.001), {});
  EXPECT_THAT(verdict, StartsWith("decode holds the consumer up"));
  EXPECT_THAT(verdict, HasSubstr("15 ms per example"));
}

TEST(VerdictTest, ASlowConsumerSetsThePace) {
  const std::string verdict = internal::Verdict(StatsOf(0.001, 0.001, 0.001, 0.020), {});
  EXPECT_THAT(verdict, StartsWith("The consumer sets the pace (20 ms per example"));
  EXPECT_THAT(verdict, HasSubstr("bring nothing"));
}

TEST(VerdictTest, AnEchoPointDividesWhatStandsInFrontOfIt) {
  PipelineStats stats = StatsOf(0.010, 0.001, 0.001, 0.0025);
  stats.echo_points = {Point(4)};
  EXPECT_THAT(internal::Verdict(stats, {1}), StartsWith("The consumer sets the pace"));
  stats.echo_points = {Point(2)};
  EXPECT_THAT(internal::Verdict(stats, {1}),
              AllOf(StartsWith("read holds the consumer up"), HasSubstr("5 ms per example"),
                    HasSubstr("raise the echo after source from 2 to 4 for about 2.0 times")));
}

TEST(VerdictTest, EchoPointsMultiply) {
  PipelineStats stats = StatsOf(0.012, 0.001, 0.001, 0.0005);
  stats.echo_points = {Point(2), Point(3)};
  EXPECT_THAT(internal::Verdict(stats, {1, 2}), HasSubstr("(2 ms per example"));
}

TEST(VerdictTest, AnEchoOfBatchesStandsBehindEverything) {
  PipelineStats stats = StatsOf(0.012, 0.001, 0.001, 0.0005);
  stats.echo_points = {Point(2)};
  EXPECT_THAT(internal::Verdict(stats, {}), HasSubstr("(6 ms per example"));
}

TEST(VerdictTest, ANewPointIsAdvisedWhereThoseThereWouldBringLess) {
  PipelineStats stats = StatsOf(0.002, 0.008, 0.0001, 0.002);
  stats.echo_points = {Point(2)};
  EXPECT_THAT(internal::Verdict(stats, {1}),
              AllOf(StartsWith("decode holds the consumer up"),
                    HasSubstr("add an echo of factor 4 after decode for about 3.9 times")));
}

TEST(VerdictTest, RaisingAPointOfBatchesIsAdvisedLast) {
  PipelineStats stats = StatsOf(0.012, 0.0001, 0.0001, 0.003);
  stats.echo_points = {Point(2)};
  EXPECT_THAT(internal::Verdict(stats, {}), HasSubstr("add an echo of factor 2 before decode"));
}

TEST(VerdictTest, FactorsOfTheSpecAreToldAsTheyAre) {
  PipelineStats stats = StatsOf(0.010, 0.001, 0.001, 0.0025);
  stats.echo_points = {Point(1.333333)};
  EXPECT_THAT(internal::Verdict(stats, {1}), HasSubstr("from 1.333333 to 4 for"));
}

// While its buffer fills, a point gives fewer uses than it will.
TEST(VerdictTest, TheMostThatIsAdvisedCountsThePointsFactorsNotWhatTheyGaveSoFar) {
  PipelineStats stats = StatsOf(0.040, 0.0001, 0.0001, 0.002);
  stats.echo_points = {Point(2)};
  stats.echo_points[0].factor_effective = 1.6;
  EXPECT_THAT(internal::Verdict(stats, {1}), HasSubstr("raise the echo after source from 2 to 8 "));
}

TEST(VerdictTest, TheMostThatIsAdvisedIsToldAsSuch) {
  PipelineStats stats = StatsOf(0.040, 0.0001, 0.0001, 0.002);
  EXPECT_THAT(
      internal::Verdict(stats, {}),
      HasSubstr("add an echo of factor 8 before decode for about 8.0 times the examples per "
                "second (time alone would allow 20; more than 8 uses of an item are not "
                "advised unmeasured)."));
  stats.echo_points = {Point(2), Point(2)};
  EXPECT_THAT(internal::Verdict(stats, {1, 2}),
              HasSubstr("from 2 to 4 for about 2.0 times the examples per second (time alone would "
                        "allow 10; more than 8 uses"));
  stats.echo_points = {Point(8)};
  EXPECT_THAT(internal::Verdict(stats, {1}), HasSubstr("consumer's 2 ms); more than 8 uses"));
}

TEST(VerdictTest, ARunWithoutASteadyStateIsTooShortToTell) {
  PipelineStats stats = StatsOf(1, 1, 1, 1);
  stats.batches = 1;
  EXPECT_THAT(internal::Verdict(stats, {}), StartsWith("The run was too short"));
  stats = StatsOf(1, 1, 1, 0);
  stats.examples_per_s = 0;
  EXPECT_THAT(internal::Verdict(stats, {}), StartsWith("The run was too short"));
}

TEST(VerdictTest, ItNeverDividesByZero) {
  const std::vector<double> times = {0, 1e-12, 1e-3, 1e6};
  const std::vector<double> factors = {1, 1.5, 1000};
  for (const double read : times) {
    for (const double decode : times) {
      for (const double consumer : times) {
        for (const double factor : factors) {
          PipelineStats stats = StatsOf(read, decode, 0, consumer);
          stats.echo_points = {Point(factor)};
          const std::string verdict = internal::Verdict(stats, {1});
          EXPECT_THAT(verdict, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
        }
      }
    }
  }
}

TEST(VerdictTest, APipelineWithoutStagesHasOneTooAndNamesNoConsumerAsAPlace) {
  PipelineStats stats{.examples = 100, .batches = 10, .examples_per_s = 100};
  stats.stages = {{.name = "read", .items = 100, .busy_s = 1, .seconds_per_item = 0.01},
                  {.name = "consumer", .items = 100, .busy_s = 0.1, .seconds_per_item = 0.001}};
  EXPECT_THAT(internal::Verdict(stats, {}), AllOf(StartsWith("read holds the consumer up"),
                                                  HasSubstr("before batch for about 8.0 times")));
}

// ---- with an adaptive echo

/// Whose consumer hardly waits, and which drew so much in each second.
PipelineStats AdaptiveStatsOf(const std::vector<AdaptiveStats::Span>& history) {
  PipelineStats stats = StatsOf(0.006, 0.001, 0.0001, 0.002);
  stats.stall_share = 0.01;
  AdaptiveStats adaptive{.longest_bridged_s = 2.345, .history = history};
  for (const AdaptiveStats::Span& span : history) {
    adaptive.fresh += span.fresh;
    adaptive.echoes += span.echoes;
  }
  const auto draws = static_cast<double>(adaptive.fresh + adaptive.echoes);
  adaptive.echo_share = static_cast<double>(adaptive.echoes) / draws;
  stats.adaptive = adaptive;
  stats.echo_points = {{.position = "after decode",
                        .factor = 8,
                        .adaptive = true,
                        .factor_effective = draws / static_cast<double>(adaptive.fresh)}};
  return stats;
}

std::string AdaptiveVerdict(const std::vector<AdaptiveStats::Span>& history) {
  return internal::Verdict(AdaptiveStatsOf(history), {2});
}

TEST(AdaptiveVerdictTest, ItTellsTheShareOfEchoesTheFactorTheyMakeAndTheLongestStop) {
  EXPECT_THAT(
      AdaptiveVerdict({{200, 200}, {100, 200}, {100, 300}, {100, 200}, {100, 300}}),
      AllOf(
          StartsWith("The consumer sets the pace (2 ms per example; it waits 1% of the time): the "
                     "adaptive echo after decode made 67% of its draws echoes, as a fixed factor "
                     "of 3 would, and bridged 2.35 s at the longest; "),
          Not(HasSubstr("larger shuffle buffer"))));
}

TEST(AdaptiveVerdictTest, WhereTheFactorHardlyChangesAFixedOneWouldDo) {
  const std::vector<AdaptiveStats::Span> steady(10, {100, 200});
  EXPECT_THAT(AdaptiveVerdict(steady), HasSubstr("; a fixed factor of 3 would do as well."));
  auto once_more = steady;
  once_more[7] = {100, 600};  // one part in ten is let pass
  EXPECT_THAT(AdaptiveVerdict(once_more), HasSubstr("a fixed factor of 3.4 would do as well."));
}

TEST(AdaptiveVerdictTest, WhereItChangesNoFixedOneWould) {
  const std::vector<AdaptiveStats::Span> falls = {{100, 0},   {100, 0},   {100, 0},  {100, 50},
                                                  {100, 300}, {100, 300}, {100, 300}};
  EXPECT_THAT(AdaptiveVerdict(falls),
              HasSubstr("; over time it was between 1 and 4: no fixed factor would do as well."));
}

TEST(AdaptiveVerdictTest, WhereOnlyStopsAreBridgedNoneWould) {
  std::vector<AdaptiveStats::Span> stops(20, {100, 0});
  stops[3] = {10, 90};
  stops[11] = {0, 100};
  EXPECT_THAT(AdaptiveVerdict(stops), HasSubstr("; but for short stops, no echo at all would do."));
}

TEST(AdaptiveVerdictTest, WhereNothingIsRepeatedNoEchoWouldDo) {
  EXPECT_THAT(AdaptiveVerdict({{100, 0}, {100, 0}}),
              HasSubstr("the adaptive echo after decode repeated nothing: what is in front of it "
                        "keeps up, and no echo would do."));
}

// Parts of the history with few draws tell nothing.
TEST(AdaptiveVerdictTest, AShortRunDoesNotTellWhetherAFixedFactorWouldDo) {
  EXPECT_THAT(AdaptiveVerdict({{100, 200}, {100, 200}, {100, 200}, {5, 14}}),
              HasSubstr("the run was too short to tell whether a fixed factor would do"));
  EXPECT_THAT(AdaptiveVerdict({{100, 200}, {100, 200}, {100, 200}, {7, 13}}),
              HasSubstr("a fixed factor of 3 would do as well"));
}

TEST(AdaptiveVerdictTest, WhereTheConsumerStillWaitsAMoreGenerousOneIsAdvised) {
  PipelineStats stats = AdaptiveStatsOf(std::vector<AdaptiveStats::Span>(10, {100, 200}));
  stats.stall_share = 0.25;
  EXPECT_THAT(internal::Verdict(stats, {2}),
              AllOf(StartsWith("read holds the consumer up, which waits 25% of the time (2 ms per "
                               "example of its own): the adaptive echo after decode made 67%"),
                    HasSubstr("A larger shuffle buffer or max_factor lets it bridge more.")));
}

}  // namespace
}  // namespace echopipe
