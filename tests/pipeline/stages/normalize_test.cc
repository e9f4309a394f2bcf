#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::AllOf;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;

const WritingStage& AsWriting(const Stage& stage) {
  return dynamic_cast<const WritingStage&>(stage);
}

std::vector<float> Floats(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

TEST(NormalizeTest, MakesPlanesOrKeepsTheChannelsTogether) {
  const Tensor pixels =
      Picture(1, 2, 3, [](int, int x, int c) { return x == 0 ? 0 : 51 * (c + 1); });
  const std::string values = "mean: [0.5, 0, 1] std: [1, 2, 0.5]";
  const Tensor planes = Apply(*MakeStage(kNormalizeStage, values), pixels);
  EXPECT_EQ(planes.dtype(), DType::kFloat32);
  EXPECT_EQ(planes.shape(), Shape({3, 1, 2}));
  EXPECT_THAT(Floats(planes), Pointwise(FloatEq(), {-0.5F, -0.3F, 0.0F, 0.2F, -2.0F, -0.8F}));
  const Tensor together = Apply(*MakeStage(kNormalizeStage, values + " layout: HWC"), pixels);
  EXPECT_EQ(together.shape(), Shape({1, 2, 3}));
  EXPECT_THAT(Floats(together), Pointwise(FloatEq(), {-0.5F, 0.0F, -2.0F, -0.3F, 0.2F, -0.8F}));
}

// The distance in units of the last place of the exact value.
double UlpsFrom(double exact, float got) {
  const auto rounded = static_cast<float>(exact);
  const double ulp = std::nextafter(std::abs(rounded), INFINITY) - std::abs(rounded);
  return std::abs(got - exact) / ulp;
}

TEST(NormalizeTest, EveryValueIsWithinTwoUnitsInTheLastPlace) {
  const Tensor all = Picture(16, 16, 1, [](int y, int x, int) { return 16 * y + x; });
  for (const double mean : {0.485, 0.456, 0.406, 0.5, 0.0, 1.0, 0.1307, -3.7, 200.3, 1000.0}) {
    for (const double std : {0.229, 0.224, 0.225, 1.0, 0.3081, 1e-6, 1e6}) {
      const auto stage = MakeStage(
          kNormalizeStage, "mean: " + std::to_string(mean) + " std: " + std::to_string(std));
      const std::vector<float> got = Floats(Apply(*stage, all));
      for (int v = 0; v < 256; ++v) {
        // As float64 would have it without losing digits near the mean: mean is a decimal.
        const double exact = (v - 255 * std::stod(std::to_string(mean))) / (255 * std);
        ASSERT_LE(UlpsFrom(exact, got[static_cast<size_t>(v)]), 2)
            << v << " " << mean << " " << std;
      }
    }
  }
}

// The value of a float16's bits.
double ValueOf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits >> 15 == 0 ? 1 : -1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The float16 nearest to a float32, halves to even, as a value.
double RoundedToFloat16(float value) {
  const int exponent = std::max(std::ilogb(value), -14);
  const double unit = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::abs(rounded) >= 65536 ? std::copysign(INFINITY, value) : rounded;
}

TEST(NormalizeTest, AFloat16IsTheFloat32RoundedToTheNearest) {
  const Tensor all = Picture(16, 16, 1, [](int y, int x, int) { return 16 * y + x; });
  // Also those below 2^-14 (close to the mean, or std 1e6), and those that are too large.
  for (const double mean : {0.485, 0.5, 0.0, 1.0, 0.1307, 0.4980392, -3.7, 200.3}) {
    for (const double std : {0.229, 0.225, 1.0, 0.3081, 1e-5, 50.0, 2000.0, 1e6}) {
      const std::string fields = "mean: " + std::to_string(mean) + " std: " + std::to_string(std);
      const Tensor exact = Apply(*MakeStage(kNormalizeStage, fields), all);
      const Tensor halves = Apply(*MakeStage(kNormalizeStage, fields + " type: FLOAT16"), all);
      ASSERT_EQ(halves.dtype(), DType::kFloat16);
      ASSERT_EQ(halves.shape(), exact.shape());
      for (size_t i = 0; i < 256; ++i) {
        ASSERT_EQ(ValueOf(halves.as<uint16_t>()[i]), RoundedToFloat16(exact.as<float>()[i]))
            << fields << " " << i;
      }
    }
  }
}

TEST(NormalizeTest, AFloat16HalfwayBetweenTwoBecomesTheEvenOne) {
  // 17 v: from 2048 on a float16 is even, and every odd number is halfway.
  const std::string fields = "mean: 0 type: FLOAT16 std: 0.00023068050749711649";
  const auto stage = MakeStage(kNormalizeStage, fields);
  const Tensor together =
      Apply(*stage, Picture(16, 16, 1, [](int y, int x, int) { return 16 * y + x; }));
  for (int v = 0; v < 256; ++v) {
    const Tensor alone = Apply(*stage, Picture(1, 1, 1, [v](int, int, int) { return v; }));
    const auto exact = static_cast<float>(17 * v);
    ASSERT_EQ(ValueOf(alone.as<uint16_t>()[0]), RoundedToFloat16(exact));
    ASSERT_EQ(ValueOf(together.as<uint16_t>()[static_cast<size_t>(v)]), RoundedToFloat16(exact));
  }
}

TEST(NormalizeTest, Float16sLieWhereTheFloat32sWould) {
  for (const std::string layout : {"CHW", "HWC"}) {
    for (const auto& [height, width] : {std::pair{1, 1}, std::pair{3, 67}, std::pair{224, 224}}) {
      const Tensor pixels = Noise(height, width, 3);
      const Tensor exact = Apply(*MakeStage(kNormalizeStage, "layout: " + layout), pixels);
      const auto stage = MakeStage(kNormalizeStage, "type: FLOAT16 layout: " + layout);
      const Tensor halves = Apply(*stage, pixels);
      ASSERT_EQ(halves.shape(), exact.shape());
      ASSERT_EQ(halves.bytes().size(), exact.bytes().size() / 2);
      for (size_t i = 0; i < exact.as<float>().size(); ++i) {
        ASSERT_EQ(ValueOf(halves.as<uint16_t>()[i]), RoundedToFloat16(exact.as<float>()[i]));
      }
    }
  }
}

// All bits of the outputs for many sizes, layouts and alignments.
std::vector<uint8_t> ManyOutputs() {
  std::vector<uint8_t> all;
  const auto append = [&all](const Tensor& tensor) {
    all.insert(all.end(), tensor.bytes().begin(), tensor.bytes().end());
  };
  for (const char* fields : {"layout: CHW", "layout: HWC", "layout: CHW type: FLOAT16",
                             "layout: HWC type: FLOAT16 std: 30000"}) {
    const auto stage = MakeStage(kNormalizeStage, fields);
    for (const auto& [height, width] : {std::pair{224, 224}, std::pair{150, 151}}) {
      append(Apply(*stage, Noise(height, width, 3)));
    }
    for (int width = 1; width <= 200; ++width) append(Apply(*stage, Noise(1, width, 3)));
  }
  return all;
}

TEST(NormalizeTest, EveryInstructionSetGivesTheSameBits) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GE(targets.size(), 2U);
  const std::vector<uint8_t> best = ManyOutputs();
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_TRUE(ManyOutputs() == best) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(NormalizeTest, EveryPlaceGetsItsOwnPixelAndChannel) {
  const auto expected = [](int v, size_t c) {
    const double means[] = {0.485, 0.456, 0.406};
    const double stds[] = {0.229, 0.224, 0.225};
    return (v / 255.0 - means[c]) / stds[c];
  };
  const auto chw = MakeStage(kNormalizeStage, "");
  const auto hwc = MakeStage(kNormalizeStage, "layout: HWC");
  for (const auto& [height, width] : {std::pair{1, 1}, std::pair{3, 67}, std::pair{224, 224}}) {
    const Tensor pixels = Noise(height, width, 3);
    const std::vector<float> planes = Floats(Apply(*chw, pixels));
    const std::vector<float> together = Floats(Apply(*hwc, pixels));
    const auto count = static_cast<size_t>(height * width);
    for (size_t i = 0; i < count; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const double exact = expected(pixels.bytes()[3 * i + c], c);
        ASSERT_NEAR(planes[c * count + i], exact, 1e-6);
        ASSERT_NEAR(together[3 * i + c], exact, 1e-6);
      }
    }
  }
}

TEST(NormalizeTest, WritesTheSameIntoAPlaceInABatchAndNothingAroundIt) {
  for (const std::string layout : {"CHW", "HWC"}) {
    const auto stage = MakeStage(kNormalizeStage, "layout: " + layout);
    for (const auto& [height, width] : {std::pair{1, 1}, std::pair{5, 13}, std::pair{224, 224}}) {
      const Tensor pixels = Noise(height, width, 3);
      const std::vector<float> alone = Floats(Apply(*stage, pixels));
      for (const size_t before : {size_t{16}, size_t{17}}) {
        alignas(64) static float slot[17 + 3 * 224 * 224 + 1];
        std::fill(std::begin(slot), std::end(slot), 77.0F);
        AsWriting(*stage).WriteTo(pixels, reinterpret_cast<uint8_t*>(slot + before));
        EXPECT_EQ(std::memcmp(slot + before, alone.data(), alone.size() * sizeof(float)), 0);
        EXPECT_EQ(slot[before - 1], 77.0F);
        EXPECT_EQ(slot[before + alone.size()], 77.0F);
      }
    }
  }
}

TEST(NormalizeTest, SaysBeforehandWhatItWillWrite) {
  const Tensor gray = Noise(2, 3, 1);
  const auto chw = MakeStage(kNormalizeStage, "mean: 0.5 std: 0.5");
  const WritingStage::Output output = AsWriting(*chw).OutputFor(gray);
  EXPECT_EQ(output.dtype, DType::kFloat32);
  EXPECT_EQ(output.shape, Shape({1, 2, 3}));
  EXPECT_EQ(Apply(*chw, gray).shape(), output.shape);
}

TEST(NormalizeTest, ThreeMeansForOneChannelAreAMismatchThatNamesBoth) {
  const auto stage = MakeStage(kNormalizeStage, "std: 1");
  try {
    Apply(*stage, Noise(4, 5, 1));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("mean"), HasSubstr("[4, 5, 1]"),
                                    HasSubstr("3 channels"), StartsWith("image: ")));
  }
}

TEST(NormalizeTest, FloatsAreNoPicture) {
  const auto stage = MakeStage(kNormalizeStage, "");
  const Tensor floats = Apply(*stage, Noise(2, 2, 3));
  EXPECT_EQ(CodeOf([&] { Apply(*stage, floats); }), ErrorCode::kInvalidArgument);
}

TEST(NormalizeTest, ValidationNamesTheField) {
  const auto message = [](const char* fields) { return InvalidMessage(kNormalizeStage, fields); };
  EXPECT_EQ(message(""), "");
  EXPECT_THAT(message("mean: [1, 2]"), StartsWith("mean: "));
  EXPECT_THAT(message("mean: [1, 2, 3, 4]"), StartsWith("mean: "));
  EXPECT_THAT(message("mean: nan"), StartsWith("mean: "));
  EXPECT_THAT(message("mean: inf"), StartsWith("mean: "));
  EXPECT_THAT(message("std: 0"), StartsWith("std: "));
  EXPECT_THAT(message("std: [1, -1, 1]"), StartsWith("std: "));
  EXPECT_THAT(message("layout: 7"), StartsWith("layout: "));
  EXPECT_THAT(message("type: 7"), StartsWith("type: "));
}

}  // namespace
}  // namespace echopipe::internal
