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
  const Tensor pixels = Noise(21, 22, 3);
  EXPECT_EQ(Bytes(Apply(*Make(" probability: 1"), pixels)),
            Bytes(GetParam().operation(pixels, pool)));
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

}  // namespace
}  // namespace echopipe::internal
