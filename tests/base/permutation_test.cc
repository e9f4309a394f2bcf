#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/permutation.h>
#include <echopipe/tests/support/chi_square.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using testing::LooksUniform;
using ::testing::Not;

RandomKey Key(uint64_t seed) { return HashToKey(std::array<uint64_t, 1>{seed}); }

std::vector<uint64_t> Values(const Permutation& permutation, uint64_t count) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(permutation(i));
  return values;
}

TEST(PermutationTest, EveryValueComesOnceForEveryLittleSize) {
  for (uint64_t n = 1; n <= 300; ++n) {
    const Permutation permutation(n, Key(n));
    std::vector<int> seen(n);
    for (const uint64_t value : Values(permutation, n)) ++seen.at(value);
    EXPECT_EQ(seen, std::vector<int>(n, 1)) << n;
  }
}

TEST(PermutationTest, NoValueComesTwiceInALargeRange) {
  for (const uint64_t n :
       {uint64_t{1'281'167}, (uint64_t{1} << 32) + 1, (uint64_t{1} << 61) + 1, uint64_t{1} << 62}) {
    const Permutation permutation(n, Key(n));
    const std::vector<uint64_t> values = Values(permutation, 20'000);
    EXPECT_EQ(std::set<uint64_t>(values.begin(), values.end()).size(), values.size()) << n;
    for (const uint64_t value : values) ASSERT_LT(value, n);
    EXPECT_LT(permutation(n - 1), n);
  }
}

// The values are those of a second implementation, in Python.
TEST(PermutationTest, GivesTheseValuesForEver) {
  const RandomKey key = HashToKey(std::array<uint64_t, 3>{1, 2, 3});
  EXPECT_THAT(Values(Permutation(10, key), 10), ElementsAre(3, 8, 0, 6, 4, 9, 7, 2, 1, 5));
  EXPECT_THAT(Values(Permutation(1'000'000'007, key), 4),
              ElementsAre(338376399, 348581248, 42788671, 678851992));
  EXPECT_THAT(Values(Permutation(uint64_t{1} << 62, key), 3),
              ElementsAre(2480843081598958119u, 316874137713360614u, 3209784771598360695u));
}

// Whether an odd number of swaps makes it.
bool IsOdd(std::vector<uint64_t> order) {
  bool odd = false;
  for (uint64_t i = 0; i < order.size(); ++i) {
    for (; order[i] != i; odd = !odd) std::swap(order[i], order[order[i]]);
  }
  return odd;
}

// How often each order of `n` comes over so many keys.
std::vector<uint64_t> OrderCounts(uint64_t n, size_t orders, uint64_t keys) {
  std::map<std::vector<uint64_t>, uint64_t> counts;
  for (uint64_t seed = 0; seed < keys; ++seed) ++counts[Values(Permutation(n, Key(seed)), n)];
  std::vector<uint64_t> values;
  for (const auto& [order, count] : counts) values.push_back(count);
  values.resize(orders);
  return values;
}

TEST(PermutationTest, AllOrdersOfALittleRangeAreEquallyLikely) {
  EXPECT_THAT(OrderCounts(2, 2, 24'000), LooksUniform());
  EXPECT_THAT(OrderCounts(3, 6, 24'000), LooksUniform());
  EXPECT_THAT(OrderCounts(4, 24, 24'000), LooksUniform());
  EXPECT_THAT(OrderCounts(5, 120, 60'000), LooksUniform());
}

// A Feistel network on more than two bits makes even permutations only.
TEST(PermutationTest, OddAndEvenOrdersAreEquallyLikely) {
  for (const uint64_t n : {5, 16, 64}) {
    std::vector<uint64_t> counts(2);
    for (uint64_t seed = 0; seed < 2000; ++seed)
      ++counts[IsOdd(Values(Permutation(n, Key(seed)), n))];
    EXPECT_THAT(counts, LooksUniform()) << n;
  }
}

// Rotations are bijections with every value at every place equally often, and yet no shuffle.
TEST(PermutationTest, RotationsWouldNotPassForAllOrders) {
  std::map<std::vector<uint64_t>, uint64_t> counts;
  for (uint64_t seed = 0; seed < 24'000; ++seed) {
    const uint64_t start = Permutation(4, Key(seed))(0);
    ++counts[{start, (start + 1) % 4, (start + 2) % 4, (start + 3) % 4}];
  }
  std::vector<uint64_t> values(24);
  for (const auto& [order, count] : counts) values[order[0]] = count;
  EXPECT_THAT(values, Not(LooksUniform()));
}

TEST(PermutationTest, NeighboursGoAnywhere) {
  constexpr uint64_t kSize = 1'000'003;
  const Permutation permutation(kSize, Key(1));
  std::vector<uint64_t> distances(100);
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint64_t distance = (permutation(i + 1) + kSize - permutation(i)) % kSize;
    ++distances.at(distance * 100 / kSize);
  }
  EXPECT_THAT(distances, LooksUniform());
}

TEST(PermutationTest, BothHalvesOfTheKeyCount) {
  const RandomKey key = Key(1);
  const std::vector<uint64_t> values = Values(Permutation(1000, key), 20);
  for (const int bit : {0, 31, 32, 63}) {
    const uint64_t flip = uint64_t{1} << bit;
    EXPECT_NE(Values(Permutation(1000, {key.low ^ flip, key.high}), 20), values) << bit;
    EXPECT_NE(Values(Permutation(1000, {key.low, key.high ^ flip}), 20), values) << bit;
  }
}

}  // namespace
}  // namespace echopipe
