#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/tests/support/chi_square.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using testing::LooksUniform;
using ::testing::Not;

constexpr std::array<uint64_t, 3> kName = {1, 2, 3};

RandomStream Stream(uint64_t seed) {
  const std::array<uint64_t, 1> name = {seed};
  return RandomStream(HashToKey(name));
}

template <class Draw>
auto Take(int count, Draw draw) {
  std::vector<decltype(draw())> values;
  for (int i = 0; i < count; ++i) values.push_back(draw());
  return values;
}

template <class Draw>
std::vector<uint64_t> Counts(uint64_t cells, int draws, Draw draw) {
  std::vector<uint64_t> counts(cells);
  for (int i = 0; i < draws; ++i) ++counts.at(static_cast<size_t>(draw()));
  return counts;
}

TEST(PhiloxTest, GivesTheReferenceValuesOfItsAuthors) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(
      Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(HashToKeyTest, GivesTheseKeysForEver) {
  std::array<uint64_t, 40> long_name;
  std::iota(long_name.begin(), long_name.end(), 0);
  // The first is the reference value of XXH3's authors.
  EXPECT_EQ(HashToKey({}), (RandomKey{0x6001c324468d497f, 0x99aa06d3014798d8}));
  EXPECT_EQ(HashToKey(kName), (RandomKey{0x026f21f9c50dcf1f, 0xd0d66ae2837a0117}));
  EXPECT_EQ(HashToKey(long_name), (RandomKey{0x5aeb7af5f0cce56e, 0x6a850aa10ba9f1f7}));
}

TEST(HashToKeyTest, TheOrderAndTheNumberOfWordsCount) {
  EXPECT_NE(HashToKey(std::array<uint64_t, 2>{1, 2}), HashToKey(std::array<uint64_t, 2>{2, 1}));
  EXPECT_NE(HashToKey(std::array<uint64_t, 1>{0}), HashToKey(std::array<uint64_t, 2>{0, 0}));
}

// The values are those of a second implementation, in Python.
TEST(RandomStreamTest, GivesTheseNumbersForEver) {
  RandomStream words(HashToKey(kName));
  EXPECT_THAT(Take(6, [&] { return words.Next(); }),
              ElementsAre(0xc7c2e23e, 0xe593b723, 0x5a51c8b2, 0x88aa75db, 0xe34a6d87, 0xf2f49cf0));
  RandomStream below(HashToKey(kName));
  EXPECT_THAT(Take(8, [&] { return below.Below(1000); }),
              ElementsAre(780, 896, 352, 533, 887, 949, 108, 938));
  RandomStream between(HashToKey(kName));
  EXPECT_THAT(Take(8, [&] { return between.Between(-50, 50); }),
              ElementsAre(28, 40, -15, 3, 39, 45, -39, 44));
  RandomStream unit(HashToKey(kName));
  EXPECT_THAT(Take(4, [&] { return unit.Uniform(); }),
              ElementsAre(0x1.8f85c47dcb276p-1, 0x1.694722ca22a9cp-2, 0x1.c694db0fe5e93p-1,
                          0x1.be463b2f05898p-4));
  RandomStream range(HashToKey(kName));
  EXPECT_THAT(Take(4, [&] { return range.Uniform(0.08, 1.0); }),
              ElementsAre(0x1.98854e5f40058p-1, 0x1.9e4baf5dcdf86p-2, 0x1.cb2cc98981991p-1,
                          0x1.71204e6cab81dp-3));
}

TEST(RandomStreamTest, ACopyGoesOnAlikeAndOnItsOwn) {
  RandomStream stream = Stream(1);
  stream.Next();
  RandomStream copy = stream;
  EXPECT_EQ(Take(10, [&] { return copy.Next(); }), Take(10, [&] { return stream.Next(); }));
}

TEST(RandomStreamTest, BelowIsUniform) {
  for (const uint32_t n : {2u, 3u, 7u, 100u, 1000u}) {
    RandomStream stream = Stream(n);
    EXPECT_THAT(Counts(n, 200'000, [&] { return stream.Below(n); }), LooksUniform()) << n;
  }
}

// 3 * 2^30 is where a remainder is most biased: its first third comes twice as often.
TEST(RandomStreamTest, BelowHasNoBiasWhereARemainderHasOne) {
  constexpr uint32_t kRange = uint32_t{3} << 30;
  RandomStream stream = Stream(1);
  EXPECT_THAT(Counts(3, 200'000, [&] { return stream.Below(kRange) >> 30; }), LooksUniform());
  EXPECT_THAT(Counts(3, 200'000, [&] { return stream.Next() % kRange >> 30; }),
              Not(LooksUniform()));
  // Without its rejection, the multiplication favours every third number.
  EXPECT_THAT(Counts(3, 200'000, [&] { return stream.Below(kRange) % 3; }), LooksUniform());
  EXPECT_THAT(Counts(3, 200'000, [&] { return (uint64_t{stream.Next()} * kRange >> 32) % 3; }),
              Not(LooksUniform()));
}

TEST(RandomStreamTest, BelowOneIsZero) {
  RandomStream stream = Stream(1);
  EXPECT_THAT(Take(10, [&] { return stream.Below(1); }), ::testing::Each(0u));
}

TEST(RandomStreamTest, BetweenReachesBothEndsAndNothingElse) {
  RandomStream stream = Stream(2);
  EXPECT_THAT(Counts(7, 70'000, [&] { return stream.Between(-3, 3) + 3; }), LooksUniform());
  EXPECT_EQ(stream.Between(INT64_MIN, INT64_MIN), INT64_MIN);
  EXPECT_EQ(stream.Between(INT64_MAX, INT64_MAX), INT64_MAX);
  const int64_t value = stream.Between(-1, 0xfffffffd);  // the widest allowed
  EXPECT_GE(value, -1);
  EXPECT_LE(value, 0xfffffffd);
}

TEST(RandomStreamTest, UniformIsUniform) {
  RandomStream stream = Stream(3);
  EXPECT_THAT(Counts(1000, 200'000, [&] { return stream.Uniform() * 1000; }), LooksUniform());
  EXPECT_THAT(Counts(1000, 200'000, [&] { return stream.Uniform(2, 3) * 1000 - 2000; }),
              LooksUniform());
  EXPECT_THAT(Counts(1000, 200'000, [&] { return std::pow(stream.Uniform(), 1.1) * 1000; }),
              Not(LooksUniform()));
}

TEST(RandomStreamTest, UniformNeverReachesItsHighEnd) {
  RandomStream stream = Stream(4);
  const double above_one = std::nextafter(1.0, 2.0);
  EXPECT_THAT(Take(100, [&] { return stream.Uniform(1.0, above_one); }), ::testing::Each(1.0));
}

TEST(RandomStreamTest, BernoulliHitsAsOftenAsSaid) {
  RandomStream stream = Stream(5);
  const std::vector<uint64_t> quarter =
      Counts(2, 100'000, [&] { return stream.Bernoulli(0.25) ? 1 : 0; });
  EXPECT_NEAR(static_cast<double>(quarter[1]), 25'000, 4 * std::sqrt(100'000 * 0.25 * 0.75));
  EXPECT_THAT(Take(100, [&] { return stream.Bernoulli(0); }), ::testing::Each(false));
  EXPECT_THAT(Take(100, [&] { return stream.Bernoulli(1); }), ::testing::Each(true));
}

}  // namespace
}  // namespace echopipe
