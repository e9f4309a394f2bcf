// How much an adaptive echo repeats, on a virtual clock.

#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/tests/support/virtual_run.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using testing::Play;
using testing::VirtualResult;
using testing::VirtualRun;

constexpr auto kExample = 1ms;

PipelineSpec Spec(const std::string& echo) {
  return PipelineSpec::FromText("source { uri: 'data' } stage { map { function: 'nothing' } }"
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
  const VirtualResult result = Play(Over(GetParam(), 2000));
  const Clock::Duration from = result.end() / 5;
  const Clock::Duration to = result.end() - 200ms;  // at the end nothing is repeated
  EXPECT_NEAR(result.Factor(from, to), GetParam(), 0.05 * GetParam());
  EXPECT_LT(result.StallShare(from, to), 0.02);
}

}  // namespace
}  // namespace echopipe
