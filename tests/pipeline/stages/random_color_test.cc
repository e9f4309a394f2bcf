// The stages that do one thing to the values of a picture with some probability.

#include <functional>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::StartsWith;

struct RandomColorCase {
  const char* name = "";
  const StageType* type = nullptr;
  std::string fields;
  double probability = 0.5;  ///< the default
  Tensor (*operation)(const Tensor& pixels, BufferPool& pool) = nullptr;
};

class RandomColorTest : public ::testing::TestWithParam<RandomColorCase> {
 protected:
  std::unique_ptr<Stage> Make(const std::string& more) const {
    return MakeStage(*GetParam().type, GetParam().fields + more);
  }
};

TEST_P(RandomColorTest, DoesWhatItIsCalledAfter) {
  BufferPool pool;
  const Tensor pixels =
      Picture(21, 22, 3, [](int y, int x, int c) { return 30 + (x * x + y * 7 + c * 50) % 200; });
  EXPECT_EQ(Bytes(Apply(*Make(" probability: 1"), pixels)),
            Bytes(GetParam().operation(pixels, pool)));
  EXPECT_NE(Bytes(GetParam().operation(pixels, pool)), Bytes(pixels));
}

TEST_P(RandomColorTest, APictureThatIsLeftAloneIsNotCopied) {
  const Tensor pixels = Noise(5, 5, 3);
  EXPECT_EQ(Apply(*Make(" probability: 0"), pixels).buffer(), pixels.buffer());
}

TEST_P(RandomColorTest, HasTorchvisionsProbability) {
  const auto stage = Make("");
  const Tensor pixels = Noise(21, 22, 3);
  int changes = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    changes += Apply(*stage, pixels, i).buffer() != pixels.buffer();
  }
  // Six standard deviations of a half are 300.
  EXPECT_NEAR(changes, 10'000 * GetParam().probability, 300);
}

TEST_P(RandomColorTest, ValidationNamesTheProbability) {
  for (const char* probability : {"-0.1", "1.1", "nan"}) {
    const std::string fields = GetParam().fields + " probability: " + probability;
    EXPECT_THAT(InvalidMessage(*GetParam().type, fields), StartsWith("probability: "));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomColorTest,
                         ::testing::Values(RandomColorCase{"grayscale", &kRandomGrayscaleStage, "",
                                                           0.1, &Grayscale}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RandomColorValidationTest, NamesTheField) {
  const auto bits = [](const char* fields) {
    return InvalidMessage(kRandomPosterizeStage, fields);
  };
  EXPECT_EQ(bits("bits: 8"), "");
  EXPECT_THAT(bits(""), StartsWith("bits: "));
  EXPECT_THAT(bits("bits: 9"), StartsWith("bits: "));
  const auto threshold = [](const char* fields) {
    return InvalidMessage(kRandomSolarizeStage, fields);
  };
  EXPECT_EQ(threshold("threshold: 0"), "");
  EXPECT_THAT(threshold(""), StartsWith("threshold: "));
  EXPECT_THAT(threshold("threshold: 255.5"), StartsWith("threshold: "));
  EXPECT_THAT(threshold("threshold: nan"), StartsWith("threshold: "));
  const auto factor = [](const char* fields) {
    return InvalidMessage(kRandomAdjustSharpnessStage, fields);
  };
  EXPECT_EQ(factor("factor: 0"), "");
  EXPECT_THAT(factor(""), StartsWith("factor: "));
  EXPECT_THAT(factor("factor: -1"), StartsWith("factor: "));
}

}  // namespace
}  // namespace echopipe::internal
