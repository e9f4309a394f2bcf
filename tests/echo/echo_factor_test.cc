#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/echo_factor.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe {
namespace {

using ::testing::HasSubstr;

TEST(EchoFactorTest, HoldsADecimalExactly) {
  EXPECT_EQ(EchoFactor(1).millionths(), 1'000'000);
  EXPECT_EQ(EchoFactor(1.15).millionths(), 1'150'000);
  EXPECT_EQ(EchoFactor(1.000001).millionths(), 1'000'001);
  EXPECT_EQ(EchoFactor(2.3).millionths(), 2'300'000);
  EXPECT_EQ(EchoFactor(999.999999).millionths(), 999'999'999);
  EXPECT_EQ(EchoFactor(1000).millionths(), 1'000'000'000);
  EXPECT_EQ(EchoFactor().millionths(), 1'000'000);
}

TEST(EchoFactorTest, EveryDecimalOfSixPlacesSurvivesBeingADouble) {
  RandomStream random({.low = 1});
  for (int i = 0; i < 10'000 * testing::kThoroughness; ++i) {
    const int64_t millionths = random.Between(1'000'000, 1'000'000'000);
    const double factor = std::stod(std::to_string(millionths / 1'000'000) + '.' +
                                    std::to_string(1'000'000 + millionths % 1'000'000).substr(1));
    ASSERT_EQ(EchoFactor(factor).millionths(), millionths);
    ASSERT_EQ(EchoFactor(factor).value(), factor);
  }
}

class EchoFactorRefusal : public ::testing::TestWithParam<double> {};

TEST_P(EchoFactorRefusal, NamesTheFieldAndTheValue) {
  try {
    const EchoFactor factor(GetParam());
    FAIL() << "taken as " << factor.millionths();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.details().where, "echo.factor");
    EXPECT_THAT(error.details().wanted, HasSubstr("1 to 1000 with at most six places"));
    if (std::isnan(GetParam())) return;
    EXPECT_EQ(std::strtod(error.details().got.c_str(), nullptr), GetParam());
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
INSTANTIATE_TEST_SUITE_P(Values, EchoFactorRefusal,
                         ::testing::Values(0.99, 0.999999, 0, -1, -0.0, 1.0000001, 1.1234567,
                                           999.9999999, 1000.000001, 1001, 1e300, kInfinity,
                                           -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                                           std::numeric_limits<double>::denorm_min()));

TEST(EchoFactorTest, UsesAndSharesAreExactWhereverTheyFit) {
  RandomStream random({.low = 2});
  for (int i = 0; i < 10'000 * testing::kThoroughness; ++i) {
    const EchoFactor factor(static_cast<double>(random.Between(1'000'000, 1'000'000'000)) /
                            1'000'000);
    const uint64_t any = uint64_t{random.Next()} << 32 | random.Next();
    const uint64_t n = (any >> (4 + random.Below(60))) + 1;  // of every magnitude, up to 2^60
    if (testing::ExactUses(n, factor) > std::numeric_limits<uint64_t>::max()) continue;
    ASSERT_EQ(factor.Uses(n), testing::ExactUses(n, factor)) << n << " x " << factor.millionths();
    ASSERT_EQ(factor.Share(n), testing::ExactShare(n - 1, factor));
    ASSERT_LE(factor.Share(n), factor.MaxUses());
    ASSERT_GE(factor.Share(n) + 1, factor.MaxUses());
  }
}

TEST(EchoFactorTest, SharesOfOneAndFifteenHundredths) {
  const EchoFactor factor = 1.15;
  std::string shares;
  for (uint64_t i = 1; i <= 20; ++i) shares += std::to_string(factor.Share(i));
  EXPECT_EQ(shares, "11111121111112111112");
  EXPECT_EQ(factor.Uses(20), 23);
}

TEST(EchoFactorTest, MostUsesOfAnItemAreTheFactorRoundedUp) {
  EXPECT_EQ(EchoFactor(1).MaxUses(), 1);
  EXPECT_EQ(EchoFactor(1.000001).MaxUses(), 2);
  EXPECT_EQ(EchoFactor(2).MaxUses(), 2);
  EXPECT_EQ(EchoFactor(999.999999).MaxUses(), 1000);
}

}  // namespace
}  // namespace echopipe
