#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/echo/draw_random.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/tests/echo/echo_cases.h>
#include <echopipe/tests/echo/echo_model.h>

namespace echopipe {
namespace {

using testing::EchoCase;
using testing::EchoModel;
using testing::ModelRandom;

/// Feeds `items` items and drains; `buffer` is an EchoModel or an EchoOrder.
template <class Buffer, class OnDraw>
void FeedAndDrain(Buffer& buffer, uint64_t items, OnDraw on_draw) {
  while (true) {
    if (buffer.HasRoom()) {
      if (items-- == 0) break;
      buffer.Offer();
    } else {
      on_draw(*buffer.Draw());
    }
  }
  buffer.Close();
  while (const auto drawn = buffer.Draw()) on_draw(*drawn);
}

EchoModel UniformModel(const EchoOptions& options) {
  return EchoModel(options, [random = ModelRandom(options.seed, options.point)](
                                uint64_t draw, const std::vector<EchoModel::Item>& candidates) {
    return random.Below(draw, candidates.size());
  });
}

class EchoOrderAgainstTheModel : public ::testing::TestWithParam<double> {};

TEST_P(EchoOrderAgainstTheModel, AgreesDrawForDraw) {
  for (int i = 0; i < 5 * testing::kThoroughness; ++i) {
    const EchoCase c = testing::MakeEchoCase(1'000'000 + static_cast<uint64_t>(i), GetParam());
    EchoOrder order(c.options);
    EchoModel model = UniformModel(c.options);
    for (const uint64_t items : c.epochs) {
      std::vector<EchoOrder::Pick> picks;
      FeedAndDrain(order, items, [&](const EchoOrder::Pick& pick) { picks.push_back(pick); });
      size_t next = 0;
      FeedAndDrain(model, items, [&](const EchoModel::Item& item) {
        const EchoOrder::Pick pick = next < picks.size() ? picks[next] : EchoOrder::Pick{};
        ++next;
        ASSERT_EQ(pick.item, item.item) << c.ToString() << " draw " << item.last_draw;
        ASSERT_EQ(pick.use + 1, item.uses);
        ASSERT_EQ(pick.draw, item.last_draw);
        ASSERT_EQ(pick.age, item.last_draw - item.first_draw);
        ASSERT_EQ(pick.last, item.uses_left == 0);
      });
      ASSERT_FALSE(HasFailure());
      ASSERT_EQ(next, picks.size());
      ASSERT_EQ(order.exceptions(), model.exceptions());
      order.Reopen();
      model.Reopen();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Factors, EchoOrderAgainstTheModel, ::testing::ValuesIn(testing::kFactors));

/// Pearson's statistic in units of standard deviations above its mean, by the cube-root
/// approximation of Wilson and Hilferty (1931).
double DeviationsAboveMean(double chi_square, double degrees) {
  const double variance = 2 / (9 * degrees);
  return (std::cbrt(chi_square / degrees) - (1 - variance)) / std::sqrt(variance);
}

// One in a million samples of the right distribution lies beyond; seeds are fixed, so a test that
// has passed once passes always.
constexpr double kThreshold = 4.75;

struct SmallCase {
  uint64_t items = 0;
  double factor = 1;
  uint64_t shuffle_buffer = 1;
  uint64_t spacing = 0;
  bool grouped = false;

  EchoOptions Options(uint64_t seed) const {
    return {.factor = factor,
            .shuffle_buffer = shuffle_buffer,
            .spacing = spacing,
            .grouped = grouped,
            .seed = seed};
  }
};

void PrintTo(const SmallCase& c, std::ostream* out) {
  *out << c.items << " items, factor " << c.factor << ", shuffle_buffer " << c.shuffle_buffer
       << ", spacing " << c.spacing << (c.grouped ? ", grouped" : "");
}

constexpr SmallCase kSmallCases[] = {
    {.items = 3, .factor = 2, .shuffle_buffer = 2},
    {.items = 3, .factor = 10, .shuffle_buffer = 3, .spacing = 1},  // the fill target grows
    {.items = 4, .factor = 2, .shuffle_buffer = 3, .spacing = 2},
    {.items = 4, .factor = 1, .shuffle_buffer = 3, .spacing = 3},
    {.items = 4, .factor = 1.5, .shuffle_buffer = 3, .spacing = 3},
    {.items = 4, .factor = 2, .shuffle_buffer = 3, .spacing = 3},
    {.items = 4, .factor = 2.333333, .shuffle_buffer = 3, .spacing = 2},
    {.items = 2, .factor = 3, .shuffle_buffer = 2, .spacing = 2},
    {.items = 3, .factor = 8, .shuffle_buffer = 3},
    {.items = 3, .factor = 7, .shuffle_buffer = 3, .spacing = 2},
    {.items = 4, .factor = 5, .shuffle_buffer = 2, .grouped = true},
};

using Sequence = std::string;  // the items' digits

/// Every sequence that can come out, with its probability: all uniform choices, played through.
std::map<Sequence, double> ExactDistribution(const SmallCase& c) {
  std::map<Sequence, double> distribution;
  std::vector<size_t> choices;  // of one run
  std::vector<size_t> out_of;
  do {
    size_t made = 0;
    double probability = 1;
    EchoModel model(c.Options(0), [&](uint64_t, const std::vector<EchoModel::Item>& candidates) {
      if (made == choices.size()) {
        choices.push_back(0);
        out_of.push_back(candidates.size());
      }
      probability /= static_cast<double>(candidates.size());
      return choices[made++];
    });
    Sequence sequence;
    FeedAndDrain(model, c.items, [&](const EchoModel::Item& item) {
      sequence += static_cast<char>('0' + item.item);
    });
    distribution[sequence] += probability;
    while (!choices.empty() && choices.back() + 1 == out_of.back()) {
      choices.pop_back();
      out_of.pop_back();
    }
    if (!choices.empty()) ++choices.back();
  } while (!choices.empty());
  return distribution;
}

using Sampler = std::function<Sequence(uint64_t seed)>;

/// How far the sampled sequences are from the exact distribution; infinite if one is impossible.
double Deviations(const SmallCase& c, const Sampler& sample) {
  const std::map<Sequence, double> exact = ExactDistribution(c);
  const int samples = 2'000 * testing::kThoroughness;
  std::map<Sequence, int> counts;
  for (int seed = 0; seed < samples; ++seed) ++counts[sample(static_cast<uint64_t>(seed))];
  for (const auto& [sequence, count] : counts) {
    if (!exact.contains(sequence)) return INFINITY;
  }
  // Rare sequences are counted together, so that each class is expected often enough.
  double chi_square = 0;
  double classes = 0;
  double rare_expected = 0;
  double rare_count = 0;
  const auto add = [&](double expected, double count) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++classes;
  };
  for (const auto& [sequence, probability] : exact) {
    const double expected = probability * samples;
    if (expected >= 10) {
      add(expected, counts[sequence]);
    } else {
      rare_expected += expected;
      rare_count += counts[sequence];
    }
  }
  if (rare_expected >= 10) add(rare_expected, rare_count);
  return classes > 1 ? DeviationsAboveMean(chi_square, classes - 1) : 0;
}

Sequence SampleOrder(const SmallCase& c, uint64_t seed) {
  EchoOrder order(c.Options(seed));
  Sequence sequence;
  FeedAndDrain(order, c.items, [&](const EchoOrder::Pick& pick) {
    sequence += static_cast<char>('0' + pick.item);
  });
  return sequence;
}

class EchoDistribution : public ::testing::TestWithParam<SmallCase> {};

TEST_P(EchoDistribution, IsTheOneOfUniformChoicesAmongTheDrawableItems) {
  const double deviations =
      Deviations(GetParam(), [this](uint64_t seed) { return SampleOrder(GetParam(), seed); });
  EXPECT_LT(deviations, kThreshold);
}

TEST_P(EchoDistribution, ProbabilitiesOfAllSequencesSumToOne) {
  double sum = 0;
  for (const auto& [sequence, probability] : ExactDistribution(GetParam())) sum += probability;
  EXPECT_NEAR(sum, 1, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(SmallCases, EchoDistribution, ::testing::ValuesIn(kSmallCases));

TEST(EchoDistributionTest, ASmallCaseHasTheProbabilitiesWorkedOutByHand) {
  // Two of the items 0, 1, 2 are resident. The first, say 0, and the second draw take both, and
  // spacing makes the third 0 again, which leaves. So 2 comes in, and the fourth is 1 or 2.
  const std::map<Sequence, double> exact =
      ExactDistribution({.items = 3, .factor = 2, .shuffle_buffer = 3, .spacing = 2});
  EXPECT_EQ(exact, (std::map<Sequence, double>{
                       {"010122", 0.25}, {"010212", 0.25}, {"101022", 0.25}, {"101202", 0.25}}));
}

/// A picker with a bias, and the small case that shows it.
struct Bias {
  const char* name;
  SmallCase in;
  std::function<size_t(const ModelRandom&, uint64_t, const std::vector<EchoModel::Item>&)> pick;
};

void PrintTo(const Bias& bias, std::ostream* out) { *out << bias.name; }

const Bias kBiases[] = {
    {"among uses instead of items", kSmallCases[1],
     [](const ModelRandom& random, uint64_t draw, const std::vector<EchoModel::Item>& items) {
       uint64_t uses = 0;
       for (const EchoModel::Item& item : items) uses += item.uses_left;
       uint64_t use = random.Below(draw, uses);
       size_t index = 0;
       while (use >= items[index].uses_left) use -= items[index++].uses_left;
       return index;
     }},
    {"never the last", kSmallCases[2],
     [](const ModelRandom& random, uint64_t draw, const std::vector<EchoModel::Item>& items) {
       return size_t{random.Below(draw, std::max<size_t>(items.size() - 1, 1))};
     }},
    {"rounded to the nearest index", kSmallCases[4],
     [](const ModelRandom& random, uint64_t draw, const std::vector<EchoModel::Item>& items) {
       return size_t{random.Below(draw, 2 * items.size() - 1) + 1} / 2;
     }},
    {"one word for four draws", kSmallCases[5],
     [](const ModelRandom& random, uint64_t draw, const std::vector<EchoModel::Item>& items) {
       return size_t{random.Below(draw / 4 * 4, items.size())};
     }},
    {"modulo of three bits", kSmallCases[4],
     [](const ModelRandom& random, uint64_t draw, const std::vector<EchoModel::Item>& items) {
       return random.Below(draw, 8) % items.size();
     }},
};

class EchoBias : public ::testing::TestWithParam<Bias> {};

TEST_P(EchoBias, IsFound) {
  const auto sample = [](uint64_t seed) {
    EchoModel model(GetParam().in.Options(seed),
                    [random = ModelRandom(seed, 0)](
                        uint64_t draw, const std::vector<EchoModel::Item>& candidates) {
                      return GetParam().pick(random, draw, candidates);
                    });
    Sequence sequence;
    FeedAndDrain(model, GetParam().in.items, [&](const EchoModel::Item& item) {
      sequence += static_cast<char>('0' + item.item);
    });
    return sequence;
  };
  EXPECT_GT(Deviations(GetParam().in, sample), 2 * kThreshold);
}

INSTANTIATE_TEST_SUITE_P(Biases, EchoBias, ::testing::ValuesIn(kBiases));

// Over 3 * 2^30 a picker that never rejects takes every third number twice as often as the others.
constexpr uint32_t kLarge = 3u << 30;

double DeviationsOfLargeNumbers(const std::function<uint32_t(uint64_t draw)>& below) {
  const int samples = 2'000 * testing::kThoroughness;
  int counts[3][2] = {};  // by remainder, and by half of the range
  for (int draw = 0; draw < samples; ++draw) {
    const uint32_t number = below(static_cast<uint64_t>(draw));
    if (number >= kLarge) return INFINITY;
    ++counts[number % 3][number >= kLarge / 2];
  }
  double chi_square = 0;
  for (const auto& row : counts) {
    for (const int count : row) {
      chi_square += (count - samples / 6.0) * (count - samples / 6.0) / (samples / 6.0);
    }
  }
  return DeviationsAboveMean(chi_square, 5);
}

TEST(DrawRandomTest, IsUniformOverARangeThatNeedsRejections) {
  DrawRandom random(7, 1);
  EXPECT_LT(DeviationsOfLargeNumbers([&](uint64_t draw) { return random.Below(draw, kLarge); }),
            kThreshold);
}

TEST(DrawRandomTest, ATestOfItFindsPickersThatDoNotReject) {
  const ModelRandom random(7, 1);
  const auto word = [&](uint64_t draw) { return uint64_t{random.Block(draw / 4, 0)[draw % 4]}; };
  EXPECT_GT(DeviationsOfLargeNumbers(
                [&](uint64_t draw) { return static_cast<uint32_t>(word(draw) * kLarge >> 32); }),
            2 * kThreshold);
  EXPECT_GT(DeviationsOfLargeNumbers(
                [&](uint64_t draw) { return static_cast<uint32_t>(word(draw) % kLarge); }),
            2 * kThreshold);
}

TEST(DrawRandomTest, AgreesWithTheModelWhicheverDrawsWereAskedForBefore) {
  RandomStream sizes({.low = 3});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    DrawRandom random(seed, seed % 3);
    const ModelRandom model(seed, seed % 3);
    for (int i = 0; i < 100 * testing::kThoroughness; ++i) {
      const uint64_t draw = (uint64_t{sizes.Next()} << 32 | sizes.Next()) >> sizes.Below(64);
      const uint32_t n = (sizes.Next() >> sizes.Below(32)) | 1;
      ASSERT_EQ(random.Below(draw, n), model.Below(draw, n)) << draw << ' ' << n;
    }
  }
}

TEST(EchoOrderTest, GivesTheSameDrawsInEveryVersionAndOnEveryMachine) {
  EchoOrder order({.factor = 2.5, .shuffle_buffer = 8, .spacing = 4, .seed = 2024, .point = 1});
  Sequence sequence;
  FeedAndDrain(order, 16, [&](const EchoOrder::Pick& pick) {
    sequence += static_cast<char>('a' + pick.item);
  });
  EXPECT_EQ(sequence, "badcbadebfcdefghifkgihjlkhmljnompnjoplnp");
}

}  // namespace
}  // namespace echopipe
